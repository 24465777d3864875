"""Bytes that are no value give a reason for their row only, and every value beside them stays what it is."""

from __future__ import annotations

import random
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import pytest
from tests.onceover.formats.avro.avro_kinds import AvroKind, render
from tests.onceover.formats.avro.decoding import NotAvroError, decode
from tests.onceover.formats.avro.drawing import Drawing
from tests.onceover.formats.avro.encoding import encode
from tests.onceover.formats.avro.reading import read
from tests.onceover.formats.avro.test_generated_values import make_plain

SCHEMAS = [pytest.param(50, id="few"), pytest.param(500, id="all", marks=pytest.mark.rare)]


def find_expected(writer: AvroKind, values: list[bytes], left_out: Collection[str]) -> list[Any]:
    """Return each value's row, None where it is none."""
    kept = AvroKind("record", fields=[each for each in writer.fields if each[0] not in left_out])
    rows: list[Any] = []
    for value in values:
        try:
            rows.append(make_plain(kept, decode(writer, value, left_out), is_in_micros=True))
        except NotAvroError:
            rows.append(None)
    return rows


def draw(number: int) -> tuple[Drawing, AvroKind, AvroKind, list[str]]:
    """Return a writer's record, a reader's, and the names of the fields that the reader leaves out."""
    drawing = Drawing(random.Random(number))
    writer = drawing.draw_record()
    more = [(f"x{place}", drawing.draw(writer.namespace, 0, is_free=True)) for place in range(number % 3)]
    reader = AvroKind("record", name=writer.name, namespace=writer.namespace, fields=writer.fields)
    fields = drawing.chance.sample([*writer.fields, *more], len(writer.fields) + len(more))
    writer = AvroKind("record", name=writer.name, namespace=writer.namespace, fields=fields)
    reader.fields = [each for each in fields if each not in more]
    return drawing, writer, reader, [name for name, _ in more]


def check(writer: AvroKind, reader: AvroKind, left_out: Collection[str], values: list[bytes], where: str) -> int:
    """Compare all rows; return how many are none."""
    found, reasons = read(values, render(reader), render(writer))
    expected = find_expected(writer, values, left_out)
    for value, row, reason, wanted in zip(values, found, reasons, expected, strict=True):
        assert repr(row) == repr(wanted), f"{where}: {value!r} {reason}"
        assert (reason is None) == (row is not None), f"{where}: {value!r} {reason}"
    return sum(row is None for row in expected)


def mutate(value: bytes, chance: random.Random) -> bytes:
    data = bytearray(value)
    at = chance.randrange(len(data) + 1)
    change = chance.randrange(5)
    if change == 0 and at < len(data):
        data[at] ^= 1 << chance.randrange(8)
    elif change == 1 and at < len(data):
        data[at] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
    elif change == 2:
        data[at:at] = chance.choice((b"\0", b"\x80", b"\xff" * 9, b"\xff" * 10 + b"\1", chance.randbytes(3)))
    elif change == 3:
        del data[at : at + chance.randint(1, 3)]
    else:
        data[at:] = chance.randbytes(chance.randrange(20))
    return bytes(data)


@pytest.mark.parametrize("count", SCHEMAS)
def test_mutations_are_read_or_refused_as_the_decoder_does(count: int) -> None:
    refused = 0
    for number in range(count):
        drawing, writer, reader, left_out = draw(number)
        good = [encode(writer, drawing.draw_value(writer), drawing.chance) for _ in range(20)]
        bad = [mutate(drawing.chance.choice(good), drawing.chance) for _ in range(80)]
        values = drawing.chance.sample([*good, *bad], 100)
        refused += check(writer, reader, left_out, values, f"schema {number}")
    assert count * 20 < refused < count * 80


@pytest.mark.parametrize("count", SCHEMAS)
def test_every_cut_of_a_value_is_refused(count: int) -> None:
    for number in range(count):
        drawing, writer, reader, left_out = draw(number)
        value = encode(writer, drawing.draw_value(writer), drawing.chance)[:200]
        cuts = [part for length in range(len(value)) for part in (value[:length], value)]
        check(writer, reader, left_out, cuts, f"schema {number}")


@pytest.mark.parametrize("count", SCHEMAS)
def test_bytes_behind_a_value_are_refused(count: int) -> None:
    for number in range(count):
        drawing, writer, reader, _ = draw(number)
        good = [encode(writer, drawing.draw_value(writer), drawing.chance) for _ in range(3)]
        found, reasons = read([each + b"\0" for each in good] + good, render(reader), render(writer))
        assert reasons == ["bytes behind the Avro value"] * 3 + [None] * 3, f"schema {number}"
        assert found[:3] == [None] * 3


@pytest.mark.parametrize("count", SCHEMAS)
def test_random_bytes_are_read_or_refused_as_the_decoder_does(count: int) -> None:
    for number in range(count):
        drawing, writer, reader, left_out = draw(number)
        values = [drawing.chance.randbytes(drawing.chance.randrange(40)) for _ in range(100)]
        check(writer, reader, left_out, values, f"schema {number}")


@pytest.mark.parametrize("count", SCHEMAS)
def test_reason_of_a_row_is_the_same_in_any_batch(count: int) -> None:
    for number in range(count):
        drawing, writer, reader, _ = draw(number)
        good = [encode(writer, drawing.draw_value(writer), drawing.chance) for _ in range(5)]
        values = [mutate(each, drawing.chance) for each in good * 4]
        alone = [read([value], render(reader), render(writer))[1][0] for value in values]

        together = read(values, render(reader), render(writer))[1]
        reverse = read(values[::-1], render(reader), render(writer))[1]

        assert together == alone, f"schema {number}"
        assert reverse == alone[::-1], f"schema {number}"


def test_batch_cut_anywhere_reads_as_its_values_do() -> None:
    drawing, writer, reader, left_out = draw(11)
    values = [encode(writer, drawing.draw_value(writer), drawing.chance) for _ in range(30)]
    whole = b"".join(values)
    for _ in range(50):
        cuts = sorted(drawing.chance.sample(range(len(whole)), 29))
        parts = [whole[start:end] for start, end in pairwise([0, *cuts, len(whole)])]
        check(writer, reader, left_out, parts, f"cuts {cuts}")
