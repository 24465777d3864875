"""Decimal and hex digits to numbers, eight at a time: a 64-bit word, of which the first digit is the lowest byte."""

from __future__ import annotations

import numpy as np


def parse_decimal(digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers that rows (n x width) of at most 19 decimal digits write, and whether all are digits."""
    words = _make_words(digits)
    while words.shape[1] > 1 and (words[:, 0] == _repeat(ord("0"))).all():
        words = words[:, 1:]  # few numbers have all of their digits
    words = words ^ _repeat(ord("0"))
    is_valid = are_all((((words + _repeat(0x76)) | words) & _repeat(0x80)) == 0)
    words = (words * np.uint64(10) + (words >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    words = (words * np.uint64(100) + (words >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    words = (words * np.uint64(10_000) + (words >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return _join(words, 10**8), is_valid


def parse_hex(digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers that rows of at most 16 hex digits in lower case write, and whether all are such digits."""
    written = _make_words(digits)
    words = (written & _repeat(0x0F)) + ((written >> np.uint64(6)) & _repeat(1)) * np.uint64(9)
    is_letter = ((words + _repeat(6)) >> np.uint64(4)) & _repeat(1)
    again = words + _repeat(ord("0")) + is_letter * np.uint64(ord("a") - ord("9") - 1)
    is_valid = are_all((again == written) & ((words & _repeat(0xF0)) == 0))
    words = ((words << np.uint64(4)) | (words >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    words = ((words << np.uint64(8)) | (words >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    words = ((words << np.uint64(16)) | (words >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return _join(words, 1 << 32), is_valid


def _make_words(digits: np.ndarray) -> np.ndarray:
    """Return a row of words for each row of digits, with zeros before them."""
    rows, width = digits.shape
    padded = np.full((rows, -(-width // 8) * 8), ord("0"), np.uint8)
    padded[:, -width:] = digits
    return padded.view("<u8").astype(np.uint64, copy=False)


def _repeat(octet: int) -> np.uint64:
    """Return a word of that byte eight times."""
    return np.uint64(octet * 0x0101010101010101)


def are_all(flags: np.ndarray) -> np.ndarray:
    """Return whether all flags of each row are true; by columns, for rows are short."""
    result: np.ndarray = flags[:, 0].copy()
    for column in flags.T[1:]:
        result &= column
    return result


def _join(words: np.ndarray, factor: int) -> np.ndarray:
    numbers: np.ndarray = words[:, 0].copy()
    for column in words.T[1:]:
        numbers *= np.uint64(factor)
        numbers += column
    return numbers
