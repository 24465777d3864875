"""The experiments that `make experiments` runs by name."""

from __future__ import annotations

import pytest

from onceover_demo.experiments.__main__ import main


def test_unknown_experiment_is_refused_and_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sink"]) == 2
    assert "unknown experiments sink; write sinks, or nothing for all" in capsys.readouterr().out
