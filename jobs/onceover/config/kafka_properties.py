"""The properties of librdkafka that an operator may set, and the source of each.

Allowed properties are in the pipeline's `[kafka]` table. Secret ones come from the environment (`sasl.password` from
ONCEOVER_KAFKA_SASL_PASSWORD, or from the file that ONCEOVER_KAFKA_SASL_PASSWORD_FILE names), are read where a client is
made, and are never part of a Spark plan; on a cluster name the file for the executors too
(`spark.executorEnv.ONCEOVER_KAFKA_SASL_PASSWORD_FILE`). Onceover sets or refuses all others: its guarantees depend on
them, or they have no use here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from onceover.config.endpoints import read_secret
from onceover.errors import ConfigurationError

ALLOWED = frozenset(
    """
    api.version.request.timeout.ms broker.address.family broker.address.ttl client.dns.lookup client.id client.rack
    connections.max.idle.ms fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes
    fetch.queue.backoff.ms fetch.wait.max.ms max.partition.fetch.bytes metadata.max.age.ms queued.max.messages.kbytes
    queued.min.messages receive.message.max.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    retry.backoff.max.ms retry.backoff.ms sasl.kerberos.keytab
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal sasl.kerberos.service.name sasl.mechanism
    sasl.mechanisms sasl.oauthbearer.client.id sasl.oauthbearer.extensions sasl.oauthbearer.method
    sasl.oauthbearer.scope sasl.username security.protocol
    socket.connection.setup.timeout.ms socket.keepalive.enable socket.nagle.disable socket.receive.buffer.bytes
    socket.timeout.ms ssl.ca.location ssl.certificate.location ssl.cipher.suites ssl.crl.location ssl.curves.list
    ssl.endpoint.identification.algorithm ssl.key.location ssl.keystore.location ssl.sigalgs.list
    """.split()  # noqa: SIM905 - a table of words
)
SECRET = frozenset(
    """
    sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.password ssl.key.password ssl.key.pem
    ssl.keystore.password
    """.split()  # noqa: SIM905 - a table of words
)
DEPLOYED = frozenset({"sasl.kerberos.kinit.cmd", "sasl.oauthbearer.token.endpoint.url"})
"""Properties for the environment only, as secrets are: one runs as a shell's command, the other is sent a secret."""
_PLAIN = re.compile(r"[A-Za-z0-9._/@-]+")
_DEFAULTS = {
    # The default, ten seconds, is as long as a request may take: the client would miss a broker that came back.
    "reconnect.backoff.max.ms": "1000",
}


def name_variable(name: str) -> str:
    """Return the environment variable of a property: `sasl.password` -> `ONCEOVER_KAFKA_SASL_PASSWORD`."""
    return "ONCEOVER_KAFKA_" + name.upper().replace(".", "_")


def explain_refusal(name: str) -> tuple[str, str] | None:
    """Return why a pipeline's TOML may not set a property, and the remedy; None if the TOML may set it."""
    if name in ALLOWED:
        return None
    if name in SECRET:
        variable = name_variable(name)
        remedy = f"put it into the environment as {variable}, or into a file named there as {variable}_FILE"
        return "a secret does not belong in this file", remedy
    if name in DEPLOYED:
        return "a command or an address does not belong in this file", (
            f"put it into the environment as {name_variable(name)}"
        )
    if name in ("bootstrap.servers", "metadata.broker.list"):
        return "an address does not belong in this file", "put it into the environment as ONCEOVER_KAFKA"
    return "not one of the client properties a pipeline may set", "remove it; group and isolation are in [ingest]"


def explain_bad_value(name: str, value: str) -> tuple[str, str] | None:
    """Return why a property may not have that value, and the remedy; None if it may. librdkafka writes Kerberos' names
    into a command for a shell."""
    if name.startswith("sasl.kerberos.") and name not in DEPLOYED and not _PLAIN.fullmatch(value):
        return f"{value[:80]!r} is not valid", "take letters, digits, dots, _, -, / and @"
    return None


def build_client_properties(
    bootstrap: str, properties: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the properties of every client: address, the pipeline's properties, and the secrets of the environment.

    Raise ConfigurationError for a property or a value that is not allowed.
    """
    refusals = [
        f"{name}: {why[0]}; {why[1]}"
        for name, value in sorted(properties.items())
        if (why := explain_refusal(name) or explain_bad_value(name, value))
    ]
    if refusals:
        raise ConfigurationError(f"[kafka] of the pipeline's TOML: {'; '.join(refusals)}")
    variables = {name: read_secret(name_variable(name), environment) for name in SECRET | DEPLOYED}
    secrets = {name: value for name, value in variables.items() if value is not None}
    # log_level: the error callback gets what librdkafka would print to stderr, and our errors quote it in one line.
    return {**_DEFAULTS, **properties, **secrets, "bootstrap.servers": bootstrap, "log_level": "0"}
