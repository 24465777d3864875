"""A client's login to HDFS. Without a Kerberos server the tests show only which client is made, and its settings."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import requests
from hdfs import HdfsError, InsecureClient

from onceover.errors import ConfigurationError, UnreachableError
from onceover.raw.hdfs import connect_hdfs, translate_error

WHERE = "http://127.0.0.1:1"


def test_hdfs_without_a_setting_uses_simple_authentication(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONCEOVER_HDFS_AUTH", raising=False)
    assert isinstance(connect_hdfs(WHERE), InsecureClient)


def test_own_authority_is_believed_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    assert connect_hdfs(WHERE)._session.verify is True
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/ca.pem")
    assert connect_hdfs(WHERE)._session.verify == "/ca.pem"
    assert connect_hdfs(WHERE)._session.trust_env is False


def test_kerberos_logs_in_with_its_own_client(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ticket(requests.auth.AuthBase):
        def __init__(self, mutual_authentication: int) -> None:
            self.mutual_authentication = mutual_authentication

    package = ModuleType("requests_kerberos")
    package.HTTPKerberosAuth, package.OPTIONAL = Ticket, 2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "requests_kerberos", package)
    monkeypatch.delitem(sys.modules, "hdfs.ext.kerberos", raising=False)
    monkeypatch.setenv("ONCEOVER_HDFS_AUTH", "kerberos")
    made = connect_hdfs(WHERE)
    assert type(made).__name__ == "KerberosClient"
    assert isinstance(made._session.auth, Ticket)
    assert made._session.trust_env is False


def test_missing_or_unknown_authentication_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests_kerberos", None)
    monkeypatch.delitem(sys.modules, "hdfs.ext.kerberos", raising=False)
    monkeypatch.setenv("ONCEOVER_HDFS_AUTH", "kerberos")
    with pytest.raises(ConfigurationError, match=r"pip install 'hdfs\[kerberos\]'"):
        connect_hdfs(WHERE)
    monkeypatch.setenv("ONCEOVER_HDFS_AUTH", "hope")
    with pytest.raises(ConfigurationError, match="set simple or kerberos"):
        connect_hdfs(WHERE)


@pytest.mark.parametrize("name", ["StandbyException", "RetriableException"])
def test_failover_is_an_outage_and_no_refusal(name: str) -> None:
    error = translate_error(WHERE, HdfsError("not supported in state standby", exception=name))
    assert isinstance(error, UnreachableError)
    assert "a failover ends by itself, and ONCEOVER_WEBHDFS names all NameNodes: http://A;http://B" in str(error)
