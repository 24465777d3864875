r"""Window file lines as Spark SQL: records to lines, lines to records, the digests of both. No Python touches a row.

`model.line` is the reference. What may be used here on bytes that need not be UTF-8: `replace`, `substring_index`,
`contains` and `concat` work byte by byte, and casts between binary and string change no byte. `substring` is exact on
binary only: on a string it counts characters by their first bytes and reads past the end of a truncated one.
`translate`, `split` and `regexp_replace` decode and lose bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceover.model import line
from onceover.model.digest import HALVES, SEEDS
from onceover.model.offsets import LARGEST_END

_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))  # backslash first
_UNESCAPES = (("\\\\", "\\x"), ("\\t", "\t"), ("\\n", "\n"), ("\\r", "\r"), ("\\x", "\\"))  # no escape is \x
_LOW = 0xFFFFFFFF
_ALL = 2**31 - 1


def framed(generation: str) -> Callable[[DataFrame], DataFrame]:
    """Adds `id` (34 bytes), `content` and `line` (with its newline), all binary.

    Takes kafka_partition, offset, kafka_timestamp (ms), key, headers (escaped already), value, event_ms and reason; a
    record without event_ms is framed for quarantine. An append is a newline and then lines. Fails the query, rather
    than write what cannot be read back, where event_ms is wider than its field or both it and reason are null.
    """

    def add(records: DataFrame) -> DataFrame:
        return (
            records.withColumns({"id": _id(F.lit(generation)), "content": _content()})
            .withColumn("line", F.concat(F.lit(b" "), _event_time(), F.lit(b" "), F.col("content"), _reason()))
            .withColumn("line", _with_crc(F.col("id"), F.col("line")))
        )

    return add


def parse_lines() -> Callable[[DataFrame], DataFrame]:
    """Adds what a line holds to the text lines in `value`; each column costs only what reads it.

    `intact` (well formed, and the CRC is right), generation string, kafka_partition int, offset bigint, event_ms bigint
    (null in quarantine), kafka_timestamp bigint, id, content, key, headers (still escaped), payload: binary, and in
    quarantine the `quarantined_for` string. `value` stays the line: Kafka's value is `payload` until `as_records`.
    Where `intact` is false the rest means nothing, but nothing throws. Empty lines are not intact: leave them out
    with `not_empty`.
    """
    return lambda lines: lines.withColumns(
        {
            "intact": _intact(),
            "generation": _text(line.GENERATION),
            "kafka_partition": _number(line.KAFKA_PARTITION, "int"),
            "offset": _number(line.OFFSET, "bigint"),
            "event_ms": _number(line.EVENT_TIME, "bigint"),
            "kafka_timestamp": _number(line.KAFKA_TIMESTAMP, "bigint"),
            "id": _slice(line.ID),
            "content": _bytes(_without_reason(_from(_bytes(F.col("value")), line.CONTENT.start).cast("string"), 4)),
            "key": _unescaped(_key_field()),
            "headers": _headers_field(),
            "payload": _unescaped(_value_field()),
            "quarantined_for": F.when(
                _quarantined(), _unescaped(F.substring_index(_fields(), "\t", -1)).cast("string")
            ),
        }
    )


def as_records(lines: DataFrame) -> DataFrame:
    """Parsed lines under the column names that the Kafka reader gives: `payload` becomes `value`, the text goes, and
    why it was quarantined."""
    return lines.drop("value", "quarantined_for").withColumnRenamed("payload", "value")


def as_framed(records: DataFrame) -> DataFrame:
    """Adds the `id` and `content` that a line of these records has, to what `framed` takes and their generation."""
    return records.withColumns({"id": _id(F.col("generation")), "content": _content()})


def not_empty() -> Column:
    """Whether the text line in `value` is one at all."""
    return F.col("value") != ""


def slice_framed() -> tuple[Column, Column]:
    """Return ID and content of the framed `line`, whose content has `content_bytes` bytes."""
    start = line.CONTENT.start + 1  # SQL counts from 1
    return F.substring("line", line.ID.start + 1, line.ID.stop), F.expr(f"substring(line, {start}, content_bytes)")


def digest_halves(record_id: Column, content: Column) -> tuple[Column, Column, Column, Column]:
    """One record's share of a digest: unsigned 32-bit halves as bigints, in the order of `model.digest.Digest`."""
    first, second = (F.xxhash64(F.lit(seed), record_id, content) for seed in SEEDS)
    return (
        F.shiftrightunsigned(first, 32).alias("high1"),
        first.bitwiseAND(F.lit(_LOW)).alias("low1"),
        F.shiftrightunsigned(second, 32).alias("high2"),
        second.bitwiseAND(F.lit(_LOW)).alias("low2"),
    )


def add_halves(records: DataFrame) -> DataFrame:
    """Add the digest's halves of each record's `id` and `content`, named as in HALVES."""
    return records.withColumns(dict(zip(HALVES, digest_halves(F.col("id"), F.col("content")), strict=True)))


def hash_content() -> Column:
    """Return a record's halves as 32 hex digits, by which a person names a content; the hash covers the ID too."""
    return F.lower(F.concat(*(F.lpad(F.hex(half), 8, "0") for half in HALVES)))


def aggregate_digest(record_id: Column, content: Column) -> tuple[Column, Column, Column, Column, Column]:
    """The aggregates records, high1, low1, high2, low2: the fields of a `Digest`, zeros for no rows."""
    high1, low1, high2, low2 = digest_halves(record_id, content)
    return (
        F.count(F.lit(1)).alias("records"),
        F.coalesce(F.sum(high1), F.lit(0)).alias("high1"),
        F.coalesce(F.sum(low1), F.lit(0)).alias("low1"),
        F.coalesce(F.sum(high2), F.lit(0)).alias("high2"),
        F.coalesce(F.sum(low2), F.lit(0)).alias("low2"),
    )


def _id(generation: Column) -> Column:
    dash, kafka_partition = F.lit("-"), _padded(F.col("kafka_partition"), 5)
    return F.concat(generation, dash, kafka_partition, dash, _padded(F.col("offset"), 19)).cast("binary")


def _content() -> Column:
    tab = F.lit("\t")
    headers = F.coalesce(F.col("headers"), F.lit(b"")).cast("string")
    key, value = _escaped_nullable(F.col("key")), _escaped_nullable(F.col("value"))
    return F.concat(_kafka_timestamp(), tab, key, tab, headers, tab, value).cast("binary")


def _kafka_timestamp() -> Column:
    digits = F.col("kafka_timestamp").cast("string")
    below_zero = F.concat(F.lit("-"), F.lpad(F.substring(digits, 2, 19), 19, "0"))  # -2^63 has no absolute value
    return F.when(F.col("kafka_timestamp") < 0, below_zero).otherwise(F.lpad(digits, 20, "0"))


def _event_time() -> Column:
    event_ms = F.col("event_ms")
    refused = F.raise_error(F.concat(F.lit("event_ms is wider than 13 digits: "), event_ms.cast("string")))
    return (
        F.when(event_ms.isNull(), F.lit(line.NO_EVENT_TIME))
        .when(event_ms.between(0, line.MAX_EVENT_MS), _padded(event_ms, 13).cast("binary"))
        .otherwise(refused.cast("binary"))
    )


def _reason() -> Column:
    """The fifth field with its TAB, for records in quarantine."""
    missing = F.raise_error(F.lit("a record has neither event_ms nor a reason")).cast("string")
    reason = F.concat(F.lit("\t"), F.coalesce(_escaped(F.col("reason")), missing)).cast("binary")
    return F.when(F.col("event_ms").isNotNull(), F.lit(b"")).otherwise(reason)


def _with_crc(record_id: Column, rest: Column) -> Column:
    """`rest` begins with the space before the event time, which replaces the one before the CRC."""
    return F.concat(record_id, F.lit(b" "), _crc(F.concat(record_id, rest)).cast("binary"), rest, F.lit(b"\n"))


def _crc(covered: Column) -> Column:
    return F.lower(F.hex(F.crc32(covered).cast("int").cast("binary")))  # of four bytes: always eight digits


def _padded(number: Column, digits: int) -> Column:
    return F.lpad(number.cast("string"), digits, "0")


def _escaped(text: Column) -> Column:
    special = F.contains(text, F.lit("\\"))
    escaped = text
    for plain, written in _ESCAPES:
        special = special | F.contains(text, F.lit(plain))
        escaped = F.replace(escaped, F.lit(plain), F.lit(written))
    return F.when(special, escaped).otherwise(text)


def _escaped_nullable(data: Column) -> Column:
    return F.when(data.isNull(), F.lit(r"\N")).otherwise(_escaped(data.cast("string")))


def _unescaped(field: Column) -> Column:
    plain = field
    for written, replacement in _UNESCAPES:
        plain = F.replace(plain, F.lit(written), F.lit(replacement))
    plain = F.when(F.contains(field, F.lit("\\")), plain).otherwise(field)
    return F.when(field != r"\N", plain).cast("binary")


def _intact() -> Column:
    """The CRC proves a line; that its fields can be read keeps out foreign lines that happen to carry a right one.

    The space after the CRC is compared with it, since the CRC does not cover that space.
    """
    covered = F.concat(_slice(slice(0, line.CRC.start)), _from(_bytes(F.col("value")), line.EVENT_TIME.start))
    intact = F.concat(_crc(covered), F.lit(" ")) == _text(slice(line.CRC.start, line.EVENT_TIME.start))
    for part, kind in ((line.KAFKA_PARTITION, "int"), (line.OFFSET, "bigint"), (line.KAFKA_TIMESTAMP, "bigint")):
        intact = intact & _number(part, kind).isNotNull()
    intact = intact & (_number(line.OFFSET, "bigint") < LARGEST_END)
    in_quarantine = (_slice(line.EVENT_TIME) == F.lit(line.NO_EVENT_TIME)) & _fields_are(4)
    fields = F.when(_number(line.EVENT_TIME, "bigint").isNull(), in_quarantine).otherwise(_fields_are(3))
    return intact & (_text(slice(line.KAFKA_TIMESTAMP.stop, line.PREFIX_BYTES)) == "\t") & fields


def _fields_are(number: int) -> Column:
    """Whether that many fields follow the prefix. The last one, mostly the value, is scanned once."""
    before = F.octet_length(F.substring_index(_fields(), "\t", number - 1))
    last = _from(_bytes(_fields()), before + 1).cast("string")
    return (before < F.octet_length(_fields())) & ~F.contains(last, F.lit("\t"))


def _quarantined() -> Column:
    return _slice(slice(line.EVENT_TIME.start, line.EVENT_TIME.start + 1)) == F.lit(b"-")


def _without_reason(text: Column, fields: int) -> Column:
    return F.when(_quarantined(), F.substring_index(text, "\t", fields)).otherwise(text)


def _fields() -> Column:
    """What follows the prefix. Fields are cut by length from here: `substring_index` searches slowly."""
    return _from(_bytes(F.col("value")), line.PREFIX_BYTES).cast("string")


def _key_field() -> Column:
    return F.substring_index(_fields(), "\t", 1)


def _headers_field() -> Column:
    return _from(_bytes(F.substring_index(_fields(), "\t", 2)), F.octet_length(_key_field()) + 1)


def _value_field() -> Column:
    before = F.octet_length(F.substring_index(_fields(), "\t", 2))
    return _without_reason(_from(_bytes(_fields()), before + 1).cast("string"), 1)


def _text(part: slice) -> Column:
    return _slice(part).cast("string")


def _number(part: slice, kind: str) -> Column:
    return _text(part).try_cast(kind)


def _slice(part: slice) -> Column:
    return F.substring(_bytes(F.col("value")), part.start + 1, part.stop - part.start)


def _from(data: Column, start: Column | int) -> Column:
    """The bytes from a position (the first is 0) to the end."""
    return F.substring(data, start + 1, _ALL)


def _bytes(text: Column) -> Column:
    return text.cast("binary")
