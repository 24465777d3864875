"""The pipelines of a project: found by name, read all at once, and kept apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.onceover.config.small_pipeline import SMALLEST, written

from onceover.config.endpoints import home
from onceover.config.mistakes import MistakesError
from onceover.config.pipelines import find, names, read_valid
from onceover.errors import ConfigurationError, UsageError

PROJECT = Path(__file__).parents[3]


def test_a_pipeline_is_looked_up_and_never_a_path(tmp_path: Path) -> None:
    written(tmp_path, SMALLEST)
    (tmp_path / "outside.toml").write_text(SMALLEST)

    assert find("orders", tmp_path).name == "orders"
    for typed in ("../outside", "orders.toml", "", "order*", str(tmp_path / "pipelines" / "orders"), "a" * 10_000):
        with pytest.raises(UsageError, match="there is no pipeline"):
            find(typed, tmp_path)


def test_an_unknown_pipeline_is_answered_with_the_nearest_known(tmp_path: Path) -> None:
    written(tmp_path, SMALLEST)

    with pytest.raises(UsageError, match=r"there is no pipeline 'order'; did you mean `orders`\?"):
        find("order", tmp_path)
    with pytest.raises(UsageError, match="there is no pipeline 'zzz'; known are orders"):
        find("zzz", tmp_path)


def test_all_pipelines_are_read_or_all_mistakes_reported(tmp_path: Path) -> None:
    written(tmp_path, SMALLEST)
    written(tmp_path, SMALLEST, "returns.toml")

    valid, mistakes = read_valid(tmp_path)
    assert [pipeline.name for pipeline in valid] == list(names(tmp_path)) == ["orders", "returns"]
    assert not mistakes

    written(tmp_path, "x", "aaa.toml")
    written(tmp_path, "y = 1", "zzz.toml")
    again, mistakes = read_valid(tmp_path)
    assert again == valid
    assert {mistake.file for mistake in mistakes} == {"pipelines/aaa.toml", "pipelines/zzz.toml"}


def test_two_pipelines_do_not_share_a_consumer_group(tmp_path: Path) -> None:
    written(tmp_path, SMALLEST)
    written(tmp_path, SMALLEST + '[ingest]\ngroup = "onceover-orders"\n', "returns.toml")

    valid, (mistake,) = read_valid(tmp_path)
    assert [pipeline.name for pipeline in valid] == ["orders"]
    assert "pipeline orders keeps its offsets under the same group" in str(mistake)


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("storage.raw_root", '[storage]\nraw_root = "/onceover/raw/orders/compacting"\n'),
        ("storage.raw_root", '[storage]\nraw_root = "/onceover/raw/orders"\n'),
        ("ingest.offset_path", '[ingest]\noffset_store = "hdfs"\noffset_path = "/onceover/raw/orders/x/y"\n'),
    ],
)
def test_path_inside_another_pipeline_s_folder_is_refused(tmp_path: Path, key: str, more: str) -> None:
    written(tmp_path, SMALLEST)
    written(tmp_path, SMALLEST + more, "returns.toml")

    message = f"returns.toml: {key}: .* is inside /onceover/raw/orders, where pipeline orders keeps its raw"
    with pytest.raises(MistakesError, match=message) as caught:
        find("returns", tmp_path)
    assert read_valid(tmp_path)[1] == list(caught.value.mistakes)
    assert find("orders", tmp_path).name == "orders"


def test_path_that_only_begins_like_another_folder_is_accepted(tmp_path: Path) -> None:
    written(tmp_path, SMALLEST)
    written(tmp_path, SMALLEST + '[storage]\nraw_root = "/onceover/raw/orders2"\n', "returns.toml")
    written(tmp_path, SMALLEST + '[storage]\nraw_root = "/else/orders"\n', "third.toml")

    valid, mistakes = read_valid(tmp_path)
    assert (len(valid), mistakes) == (3, [])


def test_home_is_the_variables_folder_or_the_packages(tmp_path: Path) -> None:
    written(tmp_path, SMALLEST)

    assert home({"ONCEOVER_HOME": str(tmp_path)}) == tmp_path
    assert home({}) == PROJECT
    for wrong in (str(tmp_path / "pipelines"), "relative"):
        with pytest.raises(ConfigurationError, match="set ONCEOVER_HOME to the absolute path"):
            home({"ONCEOVER_HOME": wrong})


def test_a_pipeline_is_read_without_spark(tmp_path: Path) -> None:
    code = (
        "import sys, onceover.config.pipelines as p; p.find('flights'); print([m for m in sys.modules if 'spark' in m])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
