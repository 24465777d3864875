"""A compacted file gives the text that it was made of, to any zstd tool too, or an error that names it."""

from __future__ import annotations

import itertools
import struct
import subprocess
import sys
from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest
import xxhash
import zstandard
from tests.onceover.raw.files_in_memory import FileInMemory

from onceover.errors import TerminalError, UnreachableError
from onceover.lines.chunks import LONGEST
from onceover.raw import zstd_file
from onceover.raw.zstd_file import compress_lines, read_frames

PATH = "/raw/t/2026-03-01/1200.0.zst"
LINES = [b"%d %s" % (n, Random(n).randbytes(n % 60).hex().encode()) for n in range(2000)]
TEXT = b"".join(line + b"\n" for line in LINES)
FRAME = 10_000


def _cut(text: bytes, size: int) -> Iterator[memoryview]:
    for start in range(0, len(text), size):
        yield memoryview(text)[start : start + size]


@pytest.fixture(autouse=True)
def _frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd_file, "FRAME", FRAME)


@pytest.fixture
def file() -> bytes:
    return b"".join(compress_lines(_cut(TEXT, 3_000)))


def _read(data: bytes, start: int = 0, end: int | None = None, chunk: int = 1_000) -> bytes:
    pieces = list(read_frames(FileInMemory(data).open, PATH, len(data), start, end, chunk))
    assert all(bytes(text).endswith(b"\n") for text in pieces)
    return b"".join(pieces)


def _join(*frames: bytes, texts: list[bytes], **changed: int) -> bytes:
    """Return a file of these frames, whose table says that they hold these texts, but for what is `changed`."""
    table = b"".join(
        struct.pack("<3I", changed.get("stored", len(frame)), changed.get("text", len(text)),
                    xxhash.xxh64_intdigest(text) & 0xFFFFFFFF)
        for frame, text in zip(frames, texts, strict=True)
    )  # fmt: skip
    footer = struct.pack("<IBI", len(frames), 0x80, 0x8F92EAB1)
    return b"".join(frames) + struct.pack("<II", 0x184D2A5E, len(table) + len(footer)) + table + footer


def _compress(text: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(text, asbytes=True))


@pytest.mark.parametrize("size", [1, 777, 50_000, 10**6])
def test_text_returns_whatever_pieces_it_came_in(size: int) -> None:
    file = b"".join(compress_lines(_cut(TEXT, size)))
    assert _read(file) == TEXT
    assert file == b"".join(compress_lines([memoryview(TEXT)]))
    assert _read(b"".join(compress_lines([]))) == b""


def test_zstds_own_library_reads_the_text(file: bytes) -> None:
    """As `zstdcat` does: frame after frame, the table skipped."""
    with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as reader:
        assert reader.read() == TEXT


def test_frames_hold_whole_lines_and_longer_lines_alone() -> None:
    text = b"a\n" * 10 + b"x" * 25_000 + b"\n" + b"b\n" * 9_000
    file = b"".join(compress_lines(_cut(text, 4_096)))
    frames = zstd_file._read_table(bytearray(file), len(file))["text"].tolist()
    assert frames == [20, 25_001, FRAME, 8_000]
    assert b"".join(read_frames(FileInMemory(file).open, PATH, len(file))) == text


@pytest.mark.parametrize("tail", [100, 400, 1 << 20])
def test_splits_of_a_file_hold_its_lines_once(monkeypatch: pytest.MonkeyPatch, file: bytes, tail: int) -> None:
    monkeypatch.setattr(zstd_file, "_TAIL", max(tail, 17 + 12 * 13))
    bounds = [0, 1, 4, 5, 999, 1_000, 30_000, len(file) - 300, len(file)]
    splits = [_read(file, start, end) for start, end in itertools.pairwise(bounds)]
    assert b"".join(splits) == TEXT
    assert sum(bool(split) for split in splits) > 2


def test_small_file_is_one_request_and_a_large_one_two(monkeypatch: pytest.MonkeyPatch, file: bytes) -> None:
    for tail, requests in (
        (1 << 20, [(0, len(file))]),
        (1_000, [(len(file) - 1_000, len(file)), (0, len(file) - 173)]),
    ):
        monkeypatch.setattr(zstd_file, "_TAIL", tail)
        held = FileInMemory(file)
        list(read_frames(held.open, PATH, len(file)))
        assert held.asked == requests


def test_pieces_are_bounded(file: bytes) -> None:
    pieces = list(read_frames(FileInMemory(file).open, PATH, len(file), chunk=500))
    assert max(map(len, pieces)) <= 650
    assert b"".join(pieces) == TEXT


def test_line_too_long_to_be_ours_is_never_a_frame_of_ours() -> None:
    assert zstd_file._MOST > LONGEST, "the longest line and its newline fit"


WHOLE = _compress(TEXT[:5_000])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it has no table of frames"),
        (b"x" * 16, "it has no table of frames"),
        (WHOLE, "it has no table of frames"),
        (TEXT, "it has no table of frames"),
        (b"PAR1" * 100, "it has no table of frames"),
        (_join(WHOLE, texts=[TEXT[:5_000]])[:-1], "it has no table of frames"),
        (_join(WHOLE, texts=[TEXT[:5_000]])[1:], "its table of frames is another file's"),
        (_join(WHOLE, texts=[TEXT[:5_000]], stored=9), "its table of frames is another file's"),
        (_join(WHOLE, texts=[TEXT[:5_000]], text=0), "its table of frames is another file's"),
        (_join(WHOLE, texts=[TEXT[:5_000]], text=4_999), "frame 0: .*Destination buffer is too small"),
        (_join(WHOLE, texts=[TEXT[:5_000]], text=5_001), "frame 0: Corrupt ZSTD compressed data"),
        (_join(WHOLE, texts=[TEXT[:5_000]], text=2**31), "its table of frames is another file's"),
        (_join(WHOLE, texts=[TEXT[1:5_001]]), "frame 0: its hash differs"),
        (_join(WHOLE, b"", texts=[TEXT[:5_000], b""]), "its table of frames is another file's"),
        (_join(WHOLE + WHOLE, texts=[TEXT[:5_000]]), "frame 0: .*Destination buffer is too small"),
        (_join(b"\x50\x2a\x4d\x18\x04\0\0\0abcd", texts=[b"abcd"]), "frame 0: Corrupt ZSTD compressed data"),
        (_join(b"no frame", texts=[b"no"]), "frame 0: ZSTD decompression failed"),
    ],
)  # fmt: skip
def test_what_compaction_did_not_write_is_a_named_error(data: bytes, why: str) -> None:
    with pytest.raises(TerminalError, match=rf"^{PATH} is not as compaction wrote it: {why}.*`onceover explain`"):
        _read(data)


@pytest.mark.parametrize("tail", [1_000, 1 << 20])
def test_damaged_bytes_are_an_error_or_change_nothing(monkeypatch: pytest.MonkeyPatch, file: bytes, tail: int) -> None:
    monkeypatch.setattr(zstd_file, "_TAIL", tail)
    random, errors = Random(7), list[str]()
    cases = [file[:n] for n in (0, 1, 17, 1_000, len(file) // 2, len(file) - 1)]
    cases += [random.randbytes(len(file)), file + b"x", file * 2, file[1:], file[5_000:]]
    for _ in range(300):
        at = random.randrange(len(file)) if random.random() < 0.7 else len(file) - 1 - random.randrange(200)
        cases.append(file[:at] + random.randbytes(1) + file[at + 1 :])
    for data in cases:
        try:
            text = _read(data)
        except TerminalError as error:
            errors.append(str(error))
        else:
            assert text == TEXT, "a byte that says nothing of the text"
    assert len(errors) > len(cases) - 12
    assert all(error.startswith(f"{PATH} is not as compaction wrote it: ") for error in errors)
    assert not any("\n" in error for error in errors)


def test_frame_that_expands_without_end_takes_bounded_memory() -> None:
    code = """
import resource
from tests.onceover.raw.test_zstd_file import _join, _compress, _read
from onceover.errors import TerminalError
bomb = _compress(bytes(1 << 30))
resource.setrlimit(resource.RLIMIT_AS, (int(open("/proc/self/statm").read().split()[0]) * 4096 + (300 << 20),) * 2)
for text in (1 << 30, 1 << 20, 60 << 20):
    try:
        _read(_join(bomb, texts=[b"x"], text=text))
    except TerminalError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert [line.partition(": ")[2].partition(";")[0] for line in done.stdout.splitlines()] == [
        "its table of frames is another file's",
        *["frame 0: ZSTD decompression failed: Destination buffer is too small"] * 2,
    ]


def test_file_that_cannot_be_read_is_the_stores_error(monkeypatch: pytest.MonkeyPatch, file: bytes) -> None:
    for tail in (1_000, 1 << 20):
        monkeypatch.setattr(zstd_file, "_TAIL", tail)
        for at in (5, len(file) // 2, len(file) - 1):
            with pytest.raises(UnreachableError, match="a DataNode does not answer"):
                list(read_frames(FileInMemory(file, broken=at).open, PATH, len(file)))
