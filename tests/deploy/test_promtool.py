"""Where promtool is looked for, in which order, and what a person reads who has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.deploy import promtool
from tests.programs import write_python_program

APT = """
    from pathlib import Path
    Path("prometheus_1_amd64.deb").touch()
"""
DPKG = """
    import sys
    from pathlib import Path
    program = Path(sys.argv[3]) / "usr" / "bin" / "promtool"
    program.parent.mkdir(parents=True)
    program.write_text(Path(sys.argv[2]).name)
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout on a machine without promtool; returns its only folder on PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.delenv("ONCEOVER_PROMTOOL", raising=False)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(promtool, "ROOT", tmp_path)
    return programs


def test_named_promtool_is_taken_before_that_of_path(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_python_program(bare / "promtool", "")
    assert promtool.find_promtool() == str(bare / "promtool")
    monkeypatch.setenv("ONCEOVER_PROMTOOL", "/opt/promtool")
    assert promtool.find_promtool() == "/opt/promtool"


def test_promtool_of_the_package_is_fetched_once(bare: Path) -> None:
    write_python_program(bare / "apt-get", APT)
    write_python_program(bare / "dpkg-deb", DPKG)
    found = Path(promtool.find_promtool())
    assert found == bare.parent / ".local" / "prometheus" / "promtool"
    assert found.read_text() == "prometheus_1_amd64.deb"
    (bare / "apt-get").unlink()
    assert promtool.find_promtool() == str(found)
    assert sorted(each.name for each in found.parent.iterdir()) == ["lock", "promtool"]


def test_machine_without_promtool_skips_with_a_remedy(bare: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"apt-get install prometheus.* ONCEOVER_PROMTOOL"):
        promtool.find_promtool()
    write_python_program(bare / "apt-get", "raise SystemExit(100)")
    with pytest.raises(pytest.skip.Exception, match=r"exit status 100.*apt-get install prometheus"):
        promtool.find_promtool()
