"""The headers of records as a map, for SQL. Raw keeps them as Kafka has them, in order and with repeated names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from onceover.lines.escapes import unescape_headers

TYPE = pa.map_(pa.string(), pa.binary())


def read_header_maps(headers: pa.Array) -> pa.Array:
    """Return a map of name to value for each escaped field of headers, empty without headers.

    The last header of a name counts, as in Kafka's `lastHeader`. Null where a name is not UTF-8: the client library
    does not say which headers such a record has.
    """
    names: list[str] = []
    values: list[bytes | None] = []
    ends, is_null = [0], []
    for field in headers.to_pylist():
        found = dict(unescape_headers(field or b""))
        is_null.append(any(isinstance(name, bytes) for name in found))
        if not is_null[-1]:
            names += found  # type: ignore[arg-type]
            values += found.values()
        ends.append(len(names))
    offsets = pa.array(np.array(ends, np.int32))
    keys, items = pa.array(names, pa.string()), pa.array(values, pa.binary())
    return pa.MapArray.from_arrays(offsets, keys, items, TYPE, mask=pa.array(is_null, pa.bool_()))
