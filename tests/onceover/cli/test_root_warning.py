from __future__ import annotations

from typing import cast

import pytest

from onceover.cli.root_warning import warn_of_foreign_root
from onceover.context import PipelineContext
from onceover.ledger.root import RootRefusedError
from onceover.model.root_ownership import RootProblem


class Context:
    ledger = None

    def __init__(self, is_known: bool) -> None:
        self._is_known = is_known

    def is_registered(self) -> bool:
        return self._is_known

    def require_own_root(self) -> None:
        raise RootRefusedError(RootProblem.LOST_LEDGER, "run `onceover ledger rebuild things`")


def test_lost_ledger_is_an_error_and_a_foreign_one_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_foreign_root(cast("PipelineContext", Context(is_known=True)))
    assert "warning: run `onceover ledger rebuild things`" in capsys.readouterr().err
    with pytest.raises(RootRefusedError):
        warn_of_foreign_root(cast("PipelineContext", Context(is_known=False)))
