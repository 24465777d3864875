"""The hashes of a line are XXH3's: other values would make every line in raw a corrupt one."""

from __future__ import annotations

from onceover.lines.hashes import CONTENT_HASH, LINE_HASH, hash_contents, hash_lines


def test_hashes_of_nothing_are_those_that_xxhash_publishes() -> None:
    """The values of xxHash's own `xsum_sanity_check.c`, without a seed."""
    assert LINE_HASH(b"") == 0x2D06800538D394C2
    assert CONTENT_HASH(b"").hex() == "99aa06d3014798d86001c324468d497f"


def test_arrays_of_hashes_have_each_in_its_row() -> None:
    texts = [memoryview(text) for text in (b"", b"a", b"many more bytes than that" * 20)]
    assert hash_lines(texts, 3).tolist() == list(map(LINE_HASH, texts))
    rows = [b"".join(int(part).to_bytes(4) for part in row) for row in hash_contents(texts, 3)]
    assert rows == list(map(CONTENT_HASH, texts))
    assert hash_contents([], 0).shape == (0, 4)
