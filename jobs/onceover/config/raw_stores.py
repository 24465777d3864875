"""The raw stores that `[storage] raw_store` may name: those of this package, and plug-ins of others."""

from __future__ import annotations

import os
from typing import Final

from onceover.config.endpoints import PARTS
from onceover.errors import ConfigurationError

VARIABLE: Final = "ONCEOVER_RAW_STORES"
"""The variable that names plug-ins: `NAME=MODULE:CLASS`, separated by commas."""
_OWN: Final = {
    "hdfs": "onceover.raw.native_store:open_hdfs",
    "hbase": "onceover.raw.hbase_store:HBaseStore",
}

# Their addresses are other servers': a plug-in takes its own from ONCEOVER_NAME.
_TAKEN: Final = {*_OWN, *PARTS, "http", "https", "home", "local", "pipelines"}


def list_raw_stores() -> dict[str, str]:
    """Return `MODULE:CLASS` of each store, by its name. Raise ConfigurationError for a wrong variable."""
    plug_ins = [each.strip().partition("=") for each in os.environ.get(VARIABLE, "").split(",") if each.strip()]
    for name, _, place in plug_ins:
        module, colon, class_name = place.partition(":")
        if not (name.isidentifier() and colon and class_name.isidentifier() and module) or name in _TAKEN:
            raise ConfigurationError(f"{VARIABLE}: write NAME=MODULE:CLASS with a new name, not {name}={place}")
    return _OWN | {name: place for name, _, place in plug_ins}
