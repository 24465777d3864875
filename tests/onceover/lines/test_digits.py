"""Digits in arrays are the numbers that Python reads, and any other byte among them is found."""

from __future__ import annotations

import numpy as np
import pytest

from onceover.lines.digits import parse_decimal, parse_hex

DECIMAL, HEX = b"0123456789", b"0123456789abcdef"


def _draw(width: int, digits: bytes, seed: int) -> np.ndarray:
    """Return rows of digits, and rows of which one byte is any byte."""
    drawn = np.random.default_rng(seed)
    rows = np.frombuffer(digits, np.uint8)[drawn.integers(0, len(digits), (5000, width))]
    rows[2000:][np.arange(3000), drawn.integers(0, width, 3000)] = drawn.integers(0, 256, 3000)
    rows[0], rows[1] = digits[-1], digits[0]
    return rows


@pytest.mark.parametrize("width", [1, 5, 8, 13, 16, 19])
def test_decimal_digits_are_read_as_by_python(width: int) -> None:
    rows = _draw(width, DECIMAL, width)
    numbers, is_valid = parse_decimal(rows)
    texts = [row.tobytes() for row in rows]
    assert is_valid.tolist() == [all(octet in DECIMAL for octet in text) for text in texts]
    assert numbers[is_valid].tolist() == [int(text) for text, valid in zip(texts, is_valid, strict=True) if valid]


@pytest.mark.parametrize("width", [1, 8, 16])
def test_hex_digits_are_read_as_by_python(width: int) -> None:
    rows = _draw(width, HEX, width)
    numbers, is_valid = parse_hex(rows)
    texts = [row.tobytes() for row in rows]
    assert is_valid.tolist() == [all(octet in HEX for octet in text) for text in texts]
    assert numbers[is_valid].tolist() == [int(text, 16) for text, valid in zip(texts, is_valid, strict=True) if valid]


@pytest.mark.parametrize("octet", range(256))
def test_every_byte_that_is_no_digit_is_found(octet: int) -> None:
    for parse, digits in ((parse_decimal, DECIMAL), (parse_hex, HEX)):
        rows = np.full((8, 8), ord("9"), np.uint8)
        np.fill_diagonal(rows, octet)
        assert parse(rows)[1].tolist() == [octet in digits] * 8
