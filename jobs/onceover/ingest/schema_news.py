"""New schemas of values, announced as ingest meets them, with their difference to the contract's."""

from __future__ import annotations

import logging
from collections.abc import Set
from typing import Final

from onceover.errors import OnceoverError
from onceover.formats.avro import values as avro
from onceover.formats.protobuf import values as protobuf
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.writer_schemas import WriterSchema, list_judged, record_schemas
from onceover.model.contract import Contract
from onceover.raw.schema_files import SchemaFiles

log = logging.getLogger(__name__)
_LONGEST: Final = 500
"""Characters of a difference that the ledger and the log have."""


class SchemaNews:
    """Those of one driver's pipeline, by the files that its tasks have written. The ledger keeps them."""

    def __init__(
        self, connection: Connection, epoch: Epoch, registered: RegisteredPipeline, schemas: SchemaFiles
    ) -> None:
        self._connection, self._epoch, self._registered, self._schemas = connection, epoch, registered, schemas
        judged = list_judged(connection, registered.name)
        self._known = {name for name, version in judged.items() if version == registered.contract_version}
        self._restore(judged.keys())

    def tell(self) -> None:
        """Announce the schemas that are new since the last call, or for this version of the contract."""
        contract = self._registered.contract
        if not contract.needs_registry:
            return
        found = []
        for name in sorted(self._schemas.list_names() - self._known):
            try:
                is_read, difference = _explain(self._schemas.read_by_text(name), contract)
            except OnceoverError as error:  # what needs the schema fails by itself
                is_read, difference = False, str(error)
            difference = difference[:_LONGEST]
            found.append(WriterSchema(name, is_read, difference))
            fate = "is read" if is_read else "its records go to quarantine"
            say = log.info if is_read else log.warning
            say("new schema %s: %s%s", name, fate, f" ({difference})" if difference else "")
        if found:
            record_schemas(self._connection, self._epoch, self._registered.contract_version, found)
            self._known |= {each.name for each in found}

    def _restore(self, names: Set[str]) -> None:
        """Ask the registry for those that raw has lost."""
        for name in sorted(names - self._schemas.list_names()) if names else ():
            try:
                self._schemas.read_by_text(name)
                log.warning("schema %s was missing from raw; it is there again, from the registry", name)
            except OnceoverError as error:
                log.error("schema %s is missing from raw, and repairs need it: %s", name, error)


def _explain(writer: str, contract: Contract) -> tuple[bool, str]:
    """Compare with the schema of values, and where they are not read by it, with that of keys."""
    of_value = _compare(writer, contract.format, contract.reader_schema, contract.message)
    of_key = _compare(writer, contract.key_format, contract.key_schema, contract.key_message)
    is_of_key = of_key is not None and (of_value is None or (of_key[0] and not of_value[0]))
    return (of_key if is_of_key else of_value) or (True, "")


def _compare(writer: str, form: str, reader: str, message: str) -> tuple[bool, str] | None:
    if form == "protobuf":
        return protobuf.explain_difference(writer, reader, message)
    return avro.explain_difference(writer, reader) if form == "avro" else None
