"""A broker of a test's own that takes clients only over TLS and with a password, under certificates made here."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from onceover_local.stack.kafka import Kafka
from onceover_local.stack.place import Place
from onceover_local.stack.ports import LOOPBACK, Ports
from onceover_local.stack.process import wait_for

USER, PASSWORD = "onceover", "correct horse; battery=staple"


class SecureKafka(Kafka):
    """The embedded broker with one more listener."""

    ports = (*Kafka.ports, "kafka-sasl")

    def __init__(self, place: Place, keys: Path) -> None:
        super().__init__(place)
        self._keys = keys

    @property
    def secure_address(self) -> str:
        return f"{LOOPBACK}:{self._place.ports['kafka-sasl']}"

    def make_settings(self, data: Path) -> dict[str, object]:
        settings = super().make_settings(data)
        for name in ("listeners", "advertised.listeners"):
            settings[name] = f"{settings[name]},SASL_SSL://{self.secure_address}"
        login = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return {
            **settings,
            "listener.security.protocol.map": f"{settings['listener.security.protocol.map']},SASL_SSL:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{login} required user_{USER}="{PASSWORD}";',
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._keys,
            # Rights are asked for where a resource has any; clients of the other listener may do everything.
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "true",
        }


@contextmanager
def open_secure_kafka(folder: Path) -> Iterator[tuple[SecureKafka, Path]]:
    """The broker, up, and the file of the authority that signed its certificate."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = make_certificates(folder)
    ports = Ports(folder / "ports.json")
    broker = SecureKafka(Place(folder, folder, ports), folder / "server.pem")
    ports.settle(broker.ports)
    broker.process.start(broker.prepare(lambda part, what: None))
    try:
        wait_for(broker.is_ready, broker.start_s, "the broker")
        yield broker, authority
    finally:
        broker.process.stop(broker.stop_s)


def make_certificates(folder: Path) -> Path:
    """Write server.pem, key and chain, readable by its owner only; return the file of the authority's certificate."""
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's authority")])
    now = datetime.now(UTC)

    def signed(name: x509.Name, key: ec.EllipticCurvePrivateKey, of: x509.ExtensionType) -> x509.Certificate:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(authority_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(of, critical=isinstance(of, x509.BasicConstraints))
            .sign(authority_key, hashes.SHA256())
        )

    authority = signed(authority_name, authority_key, x509.BasicConstraints(ca=True, path_length=None))
    server = signed(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")]),
        server_key,
        x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))]),
    )
    keys = folder / "server.pem"
    keys.touch(mode=0o600)
    keys.write_bytes(
        server_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + server.public_bytes(Encoding.PEM)
        + authority.public_bytes(Encoding.PEM)
    )
    found = folder / "authority.pem"
    found.write_bytes(authority.public_bytes(Encoding.PEM))
    return found
