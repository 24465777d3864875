"""The client of a schema registry with Confluent's API."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from onceover.config.endpoints import address, read_secret
from onceover.deadline import call_within
from onceover.errors import ConfigurationError, RegistryAwayError
from onceover.formats.undecodable import UndecodableError

USER_INFO: Final = "ONCEOVER_REGISTRY_USER_INFO"
"""USER:PASSWORD; the name with `_FILE` behind it names a file that holds them."""
_SECONDS: Final = 3.0
_ANSWER_SECONDS: Final = 10.0
"""For a whole answer: the client's own limit is one for each part of it."""
_NO_SCHEMA: Final = 40403
"""Confluent's code for an ID or a GUID that the registry does not have."""
_LARGEST_ID: Final = (1 << 24) - 1
"""Registries count from 1: a larger one is most likely none at all, and such reasons would be as many as records."""
_NOT_FOUND_FOR: Final = 300.0
"""Seconds until a registry is asked again for an ID that it did not have: records of it may come by the thousand."""
_not_found: dict[tuple[str, int | str], float] = {}


def locate_registry() -> str:
    """Return the registry's URL. Raises UnreachableError if it is not set, ConfigurationError for one that is no URL,
    or has credentials in it, which logs would show."""
    url = address("registry")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ConfigurationError(
            f"ONCEOVER_REGISTRY is no URL such as https://registry.example.com; credentials belong into {USER_INFO}"
        )
    return url


def count_subjects(url: str) -> int:
    """Return how many subjects the registry has. Raises RegistryAwayError if it does not say so."""
    try:
        return len(_ask(url, lambda client: client.get_subjects()))
    except Exception as error:  # as in `fetch_schema`
        raise RegistryAwayError(f"the registry at {url} does not answer ({_name(error)})") from error


def fetch_schema(url: str, name: int | str, kind: str) -> str:
    """Return the text of the schema of that ID or GUID, and kind, `avro` or `protobuf`. Raises as `find_schema`."""
    found, text = find_schema(url, name)
    if found != kind:
        raise UndecodableError(f"schema {name} is one of {found}")
    return text


def find_schema(url: str, name: int | str) -> tuple[str, str]:
    """Return the kind and the text of the schema of that ID or GUID. Raises UndecodableError if the registry has none
    that can be read, RegistryAwayError if it does not answer."""
    asked_at = _not_found.get((url, name))
    if asked_at is not None and time.monotonic() < asked_at + _NOT_FOUND_FOR:
        raise _refuse(name)
    from confluent_kafka.schema_registry.error import SchemaRegistryError  # 0.3 s that others need not pay

    try:
        schema = _ask(
            url, lambda client: client.get_schema(name) if isinstance(name, int) else client.get_schema_by_guid(name)
        )
    except SchemaRegistryError as error:
        if error.error_code != _NO_SCHEMA:  # a proxy, or a wrong path, answers 404 too
            raise _explain(url, name, f"status {error.http_status_code}") from error
        _not_found[url, name] = time.monotonic()
        raise _refuse(name) from error
    except Exception as error:  # the client passes on those of whichever HTTP library it uses
        raise _explain(url, name, _name(error)) from error
    if not isinstance(schema.schema_str, str) or not schema.schema_str:
        raise _explain(url, name, "an answer without a schema")
    if schema.references:
        raise UndecodableError(f"schema {name} refers to other subjects' schemas")
    return (schema.schema_type or "AVRO").lower(), schema.schema_str


def _refuse(name: int | str) -> UndecodableError:
    is_large = isinstance(name, int) and name > _LARGEST_ID
    return UndecodableError(f"schema {'with an ID of 32 bits' if is_large else name} is not in the registry")


def _explain(url: str, name: int | str, why: str) -> RegistryAwayError:
    return RegistryAwayError(f"schema {name} is not known yet, and the registry at {url} does not give it ({why})")


def _name(error: Exception) -> str:
    """Return what an error is: a client's own text may hold credentials."""
    return str(error) if isinstance(error, ConfigurationError) else type(error).__name__


def _ask(url: str, request: Callable[[Any], Any]) -> Any:
    """Return the answer to what `request` asks of the client. Raise TimeoutError for one that never ends."""
    client = _open(url)
    try:
        return call_within(_ANSWER_SECONDS, lambda: request(client))
    except TimeoutError:
        client.close()
        _open.cache_clear()
        raise


@lru_cache(maxsize=8)
def _open(url: str) -> Any:
    from confluent_kafka.schema_registry import SchemaRegistryClient  # 0.3 s that others need not pay

    settings: dict[str, Any] = {"url": url, "timeout": _SECONDS, "max.retries": 0}
    if user_info := read_secret(USER_INFO):
        settings["basic.auth.user.info"] = user_info
    try:
        return SchemaRegistryClient(settings)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"SSL_CERT_FILE names no certificates, or {USER_INFO} is no USER:PASSWORD") from error
