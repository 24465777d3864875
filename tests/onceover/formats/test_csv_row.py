"""A row of CSV becomes the JSON object of its fields."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import duckdb
import pytest

from onceover.formats.csv_row import CsvField, CsvReader
from onceover.formats.undecodable import LARGEST, UndecodableError
from onceover.model.contract import CsvLayout

ALPHABET = "ab ,;|\"'\n\\\tø漢\u2028{}0"


def read_strings(row: bytes, layout: CsvLayout, fields: int) -> list[str | None]:
    reader = CsvReader(layout, [CsvField(f"c{number}", "string") for number in range(fields)])
    return list(json.loads(reader.read(row)).values())


@pytest.mark.parametrize(("separator", "quote"), [(",", '"'), (";", "'"), ("\t", '"')])
def test_fields_are_what_duckdb_reads(tmp_path: Path, separator: str, quote: str) -> None:
    chance = random.Random(5)
    rows = [["".join(chance.choices(ALPHABET, k=chance.randrange(6))) or "x" for _ in range(4)] for _ in range(25_000)]
    text = io.StringIO()
    csv.writer(text, delimiter=separator, quotechar=quote, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    (tmp_path / "rows.csv").write_text(text.getvalue())
    options = {"header": False, "sep": separator, "quotechar": quote, "escapechar": quote, "all_varchar": True}
    read = duckdb.read_csv(str(tmp_path / "rows.csv"), **options)
    expected = [list(row) for row in read.fetchall()]

    found = []
    for row in rows:
        one = io.StringIO()
        csv.writer(one, delimiter=separator, quotechar=quote, lineterminator="\r\n").writerow(row)
        found.append(read_strings(one.getvalue().encode(), CsvLayout(separator, quote, ""), 4))

    assert found == expected == rows


@pytest.mark.parametrize("number", ["0", "-0", "12", "1.50", "1e2", "-1.5E-3", "9" * 40])
def test_number_is_written_as_it_is(number: str) -> None:
    reader = CsvReader(CsvLayout(",", '"', ""), [CsvField("n", "number")])

    assert reader.read(number.encode()) == f'{{"n":{number}}}'.encode()


@pytest.mark.parametrize(
    "text", ["+5", "007", " 1", "1 ", ".5", "1.", "NaN", "Infinity", "0x10", "1_000", "١٢", "1\n2", "1" * 1_001, "true"]
)
def test_text_that_is_no_json_number_stays_a_string(text: str) -> None:
    reader = CsvReader(CsvLayout(",", '"', ""), [CsvField("n", "number")])

    assert json.loads(reader.read(f'"{text}"'.encode())) == {"n": text}


def test_true_and_false_are_the_booleans() -> None:
    reader = CsvReader(CsvLayout(",", '"', "-"), [CsvField(name, "boolean") for name in "abcd"])

    assert reader.read(b"true,false,-,1") == b'{"a":true,"b":false,"c":null,"d":"1"}'


def test_null_is_the_text_of_the_layout() -> None:
    assert read_strings(b"NULL,,null", CsvLayout(",", '"', "NULL"), 3) == [None, "", "null"]
    assert read_strings(b'"",', CsvLayout(",", '"', ""), 2) == [None, None]


def test_names_and_texts_cannot_leave_their_strings() -> None:
    reader = CsvReader(CsvLayout(",", '"', ""), [CsvField('a","b', "string")])

    assert json.loads(reader.read(b'"x"",""c"":""1\\\x00"')) == {'a","b': 'x","c":"1\\\x00'}


@pytest.mark.parametrize("row", [b'"a', b'"a"b', b"a\nb", b"a\rb", b'a\n"b"'])
def test_what_is_not_one_row_is_refused(row: bytes) -> None:
    with pytest.raises(UndecodableError, match=r"^not one CSV row$"):
        read_strings(row, CsvLayout(",", '"', ""), 1)


@pytest.mark.parametrize("row", [b"\xff", b"\xc3", b"\xed\xa0\x80"])
def test_row_that_is_not_utf8_is_refused(row: bytes) -> None:
    with pytest.raises(UndecodableError, match=r"^not UTF-8$"):
        read_strings(row, CsvLayout(",", '"', ""), 1)


def test_row_has_its_largest_size_as_json() -> None:
    row = b"x" * (LARGEST - len('{"c0":""}'))

    assert read_strings(row, CsvLayout(",", '"', ""), 1) == [row.decode()]
    for larger in (row + b"x", b"\0" * (LARGEST // 6), b"x" * (LARGEST + 1), b"," * (30 << 20)):
        with pytest.raises(UndecodableError, match=r"^more than 4 MiB of CSV$"):
            read_strings(larger, CsvLayout(",", '"', ""), 1)
