from __future__ import annotations

import pytest

from onceover.config.kafka_properties import (
    ALLOWED,
    DEPLOYED,
    SECRET,
    build_client_properties,
    explain_refusal,
    name_variable,
)
from onceover.errors import ConfigurationError


def test_an_allowed_property_reaches_the_client() -> None:
    made = build_client_properties("b:9092", {"security.protocol": "SSL"}, {})
    assert made["security.protocol"] == "SSL"
    assert made["bootstrap.servers"] == "b:9092"


def test_a_secret_is_taken_from_the_environment_only() -> None:
    made = build_client_properties("b:9092", {}, {"ONCEOVER_KAFKA_SASL_PASSWORD": "s3cret"})
    assert made["sasl.password"] == "s3cret"
    assert not ALLOWED & SECRET
    with pytest.raises(ConfigurationError, match=r"sasl\.password: a secret.*ONCEOVER_KAFKA_SASL_PASSWORD"):
        build_client_properties("b:9092", {"sasl.password": "s3cret"}, {})


@pytest.mark.parametrize(
    "name",
    ["auto.offset.reset", "enable.auto.commit", "group.id", "isolation.level", "enable.partition.eof", "nonsense"],
)
def test_a_property_that_the_guarantees_hang_on_is_refused(name: str) -> None:
    assert "not one of" in (explain_refusal(name) or ("",))[0]


def test_an_address_is_sent_to_the_environment() -> None:
    assert "ONCEOVER_KAFKA" in (explain_refusal("bootstrap.servers") or ("", ""))[1]


def test_every_refused_property_is_named_in_one_line() -> None:
    with pytest.raises(ConfigurationError) as refused:
        build_client_properties("b:9092", {"nonsense": "1", "group.id": "g"}, {})
    assert "nonsense" in str(refused.value)
    assert "group.id" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", sorted(DEPLOYED))
def test_command_and_endpoint_come_from_the_environment_only(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name}: .*as {name_variable(name)}"):
        build_client_properties("b:9092", {name: "x"}, {})
    assert build_client_properties("b:9092", {}, {name_variable(name): "x"})[name] == "x"


@pytest.mark.parametrize("name", ["sasl.kerberos.principal", "sasl.kerberos.keytab", "sasl.kerberos.service.name"])
def test_kerberos_name_that_a_shell_would_run_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}: .*is not valid; take letters"):
        build_client_properties("b:9092", {name: "me; touch /tmp/x"}, {})
    assert build_client_properties("b:9092", {name: "/etc/me.keytab"}, {})[name] == "/etc/me.keytab"
