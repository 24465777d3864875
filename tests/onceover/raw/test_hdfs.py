"""A client's login to HDFS, without a server: which client is made, its settings, and what lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from hdfs import HdfsError, InsecureClient

from onceover.errors import AccessDeniedError, ConfigurationError, UnreachableError
from onceover.raw import gssapi
from onceover.raw.gssapi import OTHER_CLOCK, LoginError
from onceover.raw.hdfs import connect_hdfs, translate_error
from onceover.raw.kerberos import require_ticket

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


def test_kerberos_logs_in_each_request_to_a_namenode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEOVER_HDFS_AUTH", "kerberos")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", "/none.keytab")
    monkeypatch.setenv("KRB5CCNAME", "MEMORY:none")
    made = connect_hdfs(WHERE)
    assert not isinstance(made, InsecureClient)
    assert made._session.trust_env is False
    named = "KRB5_CLIENT_KTNAME: /none.keytab is no keytab that this process may read; correct it"
    with pytest.raises(ConfigurationError, match=named):
        made.status("/")
    to_datanode = requests.Request("PUT", "http://127.0.0.1:2/webhdfs/v1/a?delegation=secret").prepare()
    assert "Authorization" not in made._session.auth(to_datanode).headers, "its own token is in the address"


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("KRB5_CONFIG", "/none.conf:/no-more.conf", r"KRB5_CONFIG: /none\.conf is no file that this process may read"),
        (
            "KRB5_CONFIG",
            "{folder}/krb5.conf",
            "Kerberos cannot read its settings; correct krb5.conf, or what KRB5_CONFIG",
        ),
        ("KRB5CCNAME", "NONE:", "there is no ticket"),
    ],
)
def test_kerberos_settings_that_are_none_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, named: str
) -> None:
    (tmp_path / "krb5.conf").write_text("[libdefaults\n foo")
    monkeypatch.setenv("ONCEOVER_HDFS_AUTH", "kerberos")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)
    monkeypatch.setenv("KRB5CCNAME", "MEMORY:none")
    monkeypatch.setenv(variable, value.format(folder=tmp_path))
    with pytest.raises(ConfigurationError, match=named):
        connect_hdfs(WHERE).status("/")


def test_missing_or_unknown_authentication_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("ONCEOVER_HDFS_AUTH", "kerberos")
    with pytest.raises(ConfigurationError, match="needs HADOOP_CONF_DIR"):
        connect_hdfs(WHERE)
    monkeypatch.setenv("ONCEOVER_HDFS_AUTH", "hope")
    with pytest.raises(ConfigurationError, match="set simple or kerberos"):
        connect_hdfs(WHERE)


def test_machine_without_kerberos_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def lack(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setenv("ONCEOVER_HDFS_AUTH", "kerberos")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.setattr(gssapi, "CDLL", lack)
    gssapi._load.cache_clear()
    with pytest.raises(ConfigurationError, match=r"install the package libgssapi-krb5-2 \(Debian, Ubuntu\)"):
        connect_hdfs(WHERE).status("/")


def test_refused_login_names_the_setting_that_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONCEOVER_HDFS_AUTH", raising=False)
    error = translate_error(WHERE, HdfsError("Authentication failure. Check your credentials."))
    assert isinstance(error, ConfigurationError)
    assert str(error) == f"HDFS at {WHERE} asks for a login; set ONCEOVER_HDFS_AUTH=kerberos"


@pytest.mark.parametrize("name", ["StandbyException", "RetriableException"])
def test_failover_is_an_outage_and_no_refusal(name: str) -> None:
    error = translate_error(WHERE, HdfsError("not supported in state standby", exception=name))
    assert isinstance(error, UnreachableError)
    assert "a failover ends by itself, and ONCEOVER_WEBHDFS names all NameNodes: http://A;http://B" in str(error)


def test_clock_that_kerberos_does_not_take_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(service: str, **how: bool) -> bytes:
        raise LoginError("Clock skew too great", OTHER_CLOCK)

    monkeypatch.setenv("KRB5CCNAME", "MEMORY:none")
    monkeypatch.setattr("onceover.raw.kerberos.make_token", refuse)
    with pytest.raises(AccessDeniedError, match=r"Clock skew too great, .*follow one time server"):
        require_ticket(WHERE)
