"""The contracts beside raw: each file is what its name says, and all versions are there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from onceover.errors import TerminalError, UsageError
from onceover.lines.contract_names import name_contract
from onceover.model.contract import Contract, Contracts, Cutovers, Key
from onceover.model.json_text import to_json
from onceover.model.measures import Measure
from onceover.model.offsets import KafkaPartition
from onceover.raw import contract_files
from onceover.raw.contract_files import keep_contracts, read_contracts
from onceover.raw.layout import Layout
from onceover.raw.sealed_json import seal

FOLDER = "/raw/things/contracts"
LAYOUT = Layout("/raw", "things")
FIRST = Contract(
    "t", 5, "json", "at BIGINT, n INT", (), "value.at", "", (Key("k", "value.k"),), (Measure("n", "sum", "value.n"),),
    None, None,
)  # fmt: skip
SECOND, THIRD = replace(FIRST, event_time="value.at + 1"), replace(FIRST, event_time="value.at + 2")


def name(contract: Contract, version: int) -> str:
    return f"{name_contract(contract, version)}.json"


def write(contract: Contract, cutovers: list[list[object]] | None = None) -> bytes:
    return seal({"name": "any", "contract": contract, "cutovers": cutovers or [], "columns": {}})


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files of the folder, by name."""
    files: dict[str, bytes] = {}

    class Files:
        def __init__(self, address: str) -> None: ...

        def list_files(self, folder: str) -> list[tuple[str, int]]:
            assert folder == FOLDER
            return [(name, len(content)) for name, content in files.items()]

        def read(self, path: str) -> bytes | None:
            return files.get(path.removeprefix(f"{FOLDER}/"))

        def create(self, path: str, content: bytes) -> None:
            files[path.removeprefix(f"{FOLDER}/")] = content

    monkeypatch.setattr(contract_files, "open_store", Files)
    return files


def test_contracts_are_read_from_version_1_on(stored: dict[str, bytes]) -> None:
    assert read_contracts("", LAYOUT) is None
    versions = [replace(FIRST, event_time=f"value.at + {n}") for n in range(1, 12)]
    stored |= {name(each, n): write(each) for n, each in enumerate(versions, 1)}
    stored |= {f".{name(FIRST, 12)}.0.tmp": b"half", "README": b"a person's"}
    assert read_contracts("", LAYOUT) == Contracts(tuple(versions), Cutovers(11))


def test_cutovers_are_read_with_their_version(stored: dict[str, bytes]) -> None:
    stored |= {
        name(FIRST, 1): write(FIRST),
        name(SECOND, 2): write(SECOND, [["00c0ffee", 0, 7], ["00c0ffee", 3, 0]]),
        name(THIRD, 3): write(THIRD, [["00c0ffee", 0, 9]]),
    }
    contracts = read_contracts("", LAYOUT)
    assert contracts is not None
    assert contracts.cutovers == Cutovers(
        3, {KafkaPartition("00c0ffee", 0): {2: 7, 3: 9}, KafkaPartition("00c0ffee", 3): {2: 0}}
    )


DAMAGED = {
    **{"empty": b"", "torn": b"{", "list": b"[]", "object": b"{}", "number": b"7", "deep": b"[" * 100_000},
    **{"bare": b'{"contract": {}}', "no object": b'{"contract": []}', "another": write(SECOND)},
    "no cutovers": seal({"contract": FIRST}),
    "no hash": to_json({"contract": FIRST, "cutovers": []}).encode(),
    "short": write(FIRST, [["00c0ffee", 0]]),
    "no generation": write(FIRST, [["zz", 0, 1]]),
    **{f"offset {each}": write(FIRST, [["00c0ffee", 0, each]]) for each in (1.9, -5, 10**30)},
    "twice": write(FIRST, [["00c0ffee", 0, 1], ["00c0ffee", 0, 2]]),
    "changed": write(FIRST, [["00c0ffee", 0, 1200]]).replace(b"1200", b"1300"),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_contract_is_refused_by_its_path(stored: dict[str, bytes], content: bytes) -> None:
    stored[name(FIRST, 1)] = content
    with pytest.raises(TerminalError, match=f"{FOLDER}/{name(FIRST, 1)} is not the contract that its name"):
        read_contracts("", LAYOUT)


@pytest.mark.parametrize("wrong", ["V1.json", "V0-0123456789abcdef.json", "R1-0123456789abcdef.json"])
def test_file_that_names_no_contract_is_refused(stored: dict[str, bytes], wrong: str) -> None:
    stored[wrong] = write(FIRST)
    with pytest.raises(TerminalError, match=f"{wrong} is not the contract"):
        read_contracts("", LAYOUT)


def test_changed_definition_is_refused(stored: dict[str, bytes]) -> None:
    values = json.loads(write(FIRST))
    values["contract"]["schema"] = "at BIGINT, n BIGINT"
    stored[name(FIRST, 1)] = json.dumps(values).encode()
    with pytest.raises(TerminalError, match="put the file back from a backup"):
        read_contracts("", LAYOUT)


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ([(SECOND, 1, ())], r"V1-\w+\.json and \S+V1-\w+\.json are both version 1"),
        ([(THIRD, 3, ())], r"has version 3 of the contract and lacks version 2"),
        ([(replace(FIRST, window_minutes=60), 2, ())], r"cannot be of one pipeline \(window_minutes\)"),
        ([(SECOND, 2, (7,)), (THIRD, 3, (6,))], f"{name(THIRD, 3)} begins before .*{name(SECOND, 2)} does"),
    ],
)
def test_contracts_that_do_not_follow_each_other_are_refused(
    stored: dict[str, bytes], others: list[tuple[Contract, int, tuple[int, ...]]], why: str
) -> None:
    stored[name(FIRST, 1)] = write(FIRST)
    for contract, version, cutovers in others:
        stored[name(contract, version)] = write(contract, [["00c0ffee", 0, offset] for offset in cutovers])
    with pytest.raises(TerminalError, match=why):
        read_contracts("", LAYOUT)


def test_missing_files_are_written_and_others_refused(stored: dict[str, bytes]) -> None:
    names = {name_contract(FIRST, 1): write(FIRST), name_contract(SECOND, 2): write(SECOND)}
    keep_contracts("", LAYOUT, names, names.__getitem__)
    assert read_contracts("", LAYOUT) == Contracts((FIRST, SECOND), Cutovers(2))
    keep_contracts("", LAYOUT, names, dict[str, bytes]().__getitem__)
    with pytest.raises(UsageError, match=rf"does not know the contract of {FOLDER}/{name(SECOND, 2)}.*migrate things"):
        keep_contracts("", LAYOUT, list(names)[:1], names.__getitem__)
