from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onceover.errors import ConfigurationError
from onceover_local.stack import place as module
from onceover_local.stack.place import Place, explain_unfit, list_orphans, list_roots, remove_elsewhere
from onceover_local.stack.ports import Ports

Said = list[tuple[str, str]]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only root for folders elsewhere, below a folder that others may enter, as /var/lib is."""
    root = tmp_path / "elsewhere"
    monkeypatch.setattr(module, "list_roots", lambda: (root,))
    return root


def make(local: Path, said: Said | None = None, part: str = "hdfs") -> Path:
    heard: Said = [] if said is None else said
    return _place(local).make_folder(part, lambda name, what: heard.append((name, what)))


def _place(local: Path) -> Place:
    return Place(local, local, Ports(local / "ports.json"))


def test_plain_path_keeps_data_in_its_own_folder(tmp_path: Path, elsewhere: Path) -> None:
    said: Said = []
    assert make(tmp_path / "plain", said) == tmp_path / "plain" / "hdfs"
    assert said == []
    assert not elsewhere.exists()


@pytest.mark.parametrize("name", ["with blank", "Blänk", "a%20b", "a,b"])
def test_awkward_path_gets_a_folder_elsewhere_and_says_so(tmp_path: Path, elsewhere: Path, name: str) -> None:
    said: Said = []
    found = make(tmp_path / name, said)
    assert found.parent == elsewhere
    assert found.stat().st_mode & 0o777 == 0o700
    assert said == [("hdfs", f"keeps its data in {found}, since {explain_unfit(tmp_path / name / 'hdfs')}")]
    assert repr(str(tmp_path / name)) in said[0][1]
    assert _place(tmp_path / name).get_folder("hdfs") == found
    assert make(tmp_path / name, said) == found
    assert len(said) == 1


def test_closed_folder_is_unfit_for_another_user_only(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert explain_unfit(closed / "postgres") == ""
    assert (
        str(closed) in explain_unfit(closed / "postgres", for_another_user=True) or not tmp_path.stat().st_mode & 0o001
    )


def test_root_that_others_may_write_to_is_passed_over(tmp_path: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    with pytest.raises(ConfigurationError, match=r"not ours, or others may write there.*set ONCEOVER_LOCAL to"):
        make(tmp_path / "with blank")
    assert list(elsewhere.iterdir()) == []


def test_data_in_a_path_that_became_awkward_is_refused(tmp_path: Path, elsewhere: Path) -> None:
    make(tmp_path / "plain")
    (tmp_path / "plain").rename(tmp_path / "with blank")
    with pytest.raises(ConfigurationError, match=r"holds the data of hdfs.*move it back to where it was"):
        make(tmp_path / "with blank")


def test_moved_stack_takes_its_data_along(tmp_path: Path, elsewhere: Path) -> None:
    found = make(tmp_path / "with blank")
    (tmp_path / "with blank").rename(tmp_path / "another blank")
    assert list(list_orphans()) == [(found, str(tmp_path / "with blank" / "hdfs"))]
    assert make(tmp_path / "another blank") == found
    assert list(list_orphans()) == []


def test_copied_stack_is_refused(tmp_path: Path, elsewhere: Path) -> None:
    found = make(tmp_path / "with blank")
    shutil.copytree(tmp_path / "with blank", tmp_path / "copied blank", symlinks=True)
    with pytest.raises(ConfigurationError, match=r"of which .*copied blank is a copy"):
        make(tmp_path / "copied blank")
    remove_elsewhere(tmp_path / "copied blank")
    assert found.is_dir()


def test_deleted_data_is_reported_as_gone(tmp_path: Path, elsewhere: Path) -> None:
    shutil.rmtree(make(tmp_path / "with blank"))
    with pytest.raises(ConfigurationError, match="whose data was deleted"):
        make(tmp_path / "with blank")


def test_removal_takes_only_the_stacks_own_files(tmp_path: Path, elsewhere: Path) -> None:
    local = tmp_path / "with blank"
    made = [make(local, part="hdfs"), make(local, part="kafka"), make(local / "demo", part="kafka")]
    strangers = tmp_path / "strangers"
    strangers.mkdir()
    (local / "linked").symlink_to(strangers)
    remove_elsewhere(local)
    assert not any(each.exists() for each in made)
    assert strangers.is_dir()


def test_next_start_elsewhere_names_folders_whose_stack_is_gone(tmp_path: Path, elsewhere: Path) -> None:
    left = make(tmp_path / "with blank")
    shutil.rmtree(tmp_path / "with blank")
    said: Said = []
    make(tmp_path / "next blank", said)
    assert said[1] == (
        "hdfs",
        f"{left} belonged to {tmp_path / 'with blank' / 'hdfs'}, which no longer exists; "
        "delete it, or move the stack back",
    )


def test_roots_of_an_ordinary_user_lie_in_their_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert list_roots({"HOME": "/home/a"})[0] == Path("/home/a/.local/state/onceover")
    assert list_roots({"HOME": "/home/a", "XDG_STATE_HOME": "/state"})[0] == Path("/state/onceover")


def test_path_is_judged_by_its_links_target(tmp_path: Path, elsewhere: Path) -> None:
    (tmp_path / "with blank").mkdir()
    (tmp_path / "plain").symlink_to(tmp_path / "with blank")
    assert make(tmp_path / "plain").parent == elsewhere


def test_parts_that_start_side_by_side_share_one_root(tmp_path: Path, elsewhere: Path) -> None:
    parts = [f"part{n}" for n in range(8)]
    start = threading.Barrier(len(parts))

    def made(part: str) -> Path:
        start.wait()
        return make(tmp_path / "with blank", part=part)

    for _ in range(20):
        shutil.rmtree(elsewhere, ignore_errors=True)
        shutil.rmtree(tmp_path / "with blank", ignore_errors=True)
        with ThreadPoolExecutor(len(parts)) as pool:
            assert {each.parent for each in pool.map(made, parts)} == {elsewhere}
        assert elsewhere.stat().st_mode & 0o777 == 0o711
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_foreign_files_in_a_root_are_not_read(tmp_path: Path, elsewhere: Path) -> None:
    (elsewhere / "planted").mkdir(parents=True)
    (elsewhere / "planted" / "belongs-to").symlink_to("/etc/passwd")
    elsewhere.chmod(0o777)
    assert list(list_orphans()) == []
