from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from onceover.errors import TerminalError, TransientError
from onceover_local.stack import jars
from onceover_local.stack.jars import ROOTS, Jar


def silent(part: str, what: str) -> None:
    pass


@pytest.mark.parametrize("part", ROOTS)
def test_lock_holds_its_roots_and_every_jar_once(part: str) -> None:
    locked = jars.read_locked(part)
    assert set(ROOTS[part]) <= {jar.coordinate for jar in locked}
    assert len({jar.name for jar in locked}) == len(locked)
    assert all(len(jar.sha256) == 64 for jar in locked)


@pytest.mark.parametrize("part", ["hbase", "hdfs", "yarn"])
def test_lock_leaves_out_clients_of_what_no_server_here_talks_to(part: str) -> None:
    """HBase's and HDFS's own tests show that their servers start without them."""
    names = " ".join(jar.coordinate for jar in jars.read_locked(part))
    for other in ("mssql", "HikariCP", "ehcache", "jets3t", "jsch", "okhttp", "okio"):
        assert other not in names


class Shop:
    """A repository on the net that answers every request with one file."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content
        self.asked = 0
        self.away_for = 0

    def resolve(self, scratch: Path) -> Path:
        self.asked += 1
        if self.content is None or self.asked <= self.away_for:
            (scratch / "it.jar").write_bytes(b"half")
            raise ConnectionError("no route")
        if (scratch / "it.jar").exists():  # as jgo does with a file of any origin
            return scratch / "it.jar"
        (scratch / "it.jar").write_bytes(self.content)
        return scratch / "it.jar"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    found = Shop(b"right")
    monkeypatch.setattr(jars, "_PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(jars, "_make_context", lambda repository=None: repository)
    monkeypatch.setattr(jars, "_find_place", lambda context, jar: tmp_path / "m2" / jar.name)
    monkeypatch.setattr(jars, "read_locked", lambda part: [Jar("g:a:1", hashlib.sha256(b"right").hexdigest())])

    def make_artifact(scratch: Path, jar: Jar) -> SimpleNamespace:
        return SimpleNamespace(resolve=lambda: found.resolve(scratch))

    monkeypatch.setattr(jars, "_make_artifact", make_artifact)
    return found


def test_jar_is_fetched_once_and_then_found_offline(shop: Shop, tmp_path: Path) -> None:
    assert jars.fetch_class_path("kafka", silent) == str(tmp_path / "m2" / "a-1.jar")
    shop.content = None
    assert jars.fetch_class_path("kafka", silent) == str(tmp_path / "m2" / "a-1.jar")
    assert shop.asked == 1


def test_archive_is_fetched_under_its_own_ending(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = [Jar("g:a:1:all:tar.gz", hashlib.sha256(b"right").hexdigest())]
    monkeypatch.setattr(jars, "read_locked", lambda part: locked)
    assert jars.fetch_archive("registry", silent) == tmp_path / "m2" / "a-1-all.tar.gz"


@pytest.mark.parametrize("part", ROOTS)
def test_locked_names_are_those_of_the_repository(part: str) -> None:
    context = jars._make_context()
    for jar in jars.read_locked(part):
        assert jars._find_place(context, jar).name == jar.name


def test_partial_jar_of_an_interrupted_download_is_fetched_again(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "m2").mkdir()
    (tmp_path / "m2" / "a-1.jar").write_bytes(b"rig")
    jars.fetch_class_path("kafka", silent)
    assert (tmp_path / "m2" / "a-1.jar").read_bytes() == b"right"


def test_jar_that_differs_from_the_lock_is_refused_and_not_kept(shop: Shop, tmp_path: Path) -> None:
    shop.content = b"wrong"
    with pytest.raises(TerminalError, match="g:a:1 has SHA-256"):
        jars.fetch_class_path("kafka", silent)
    assert list((tmp_path / "m2").iterdir()) == []


def test_network_that_fails_for_a_moment_is_retried(shop: Shop, tmp_path: Path) -> None:
    shop.away_for = 2
    assert jars.fetch_class_path("kafka", silent) == str(tmp_path / "m2" / "a-1.jar")
    assert shop.asked == 3


def test_error_without_a_network_names_the_jar_and_the_remedy(shop: Shop) -> None:
    shop.content = None
    with pytest.raises(TransientError, match=r"could not fetch g:a:1 \(ConnectionError: no route\); check the network"):
        jars.fetch_class_path("kafka", silent)
