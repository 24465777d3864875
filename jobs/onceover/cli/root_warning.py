"""The warning of commands that only read: the raw root may not be this ledger's."""

from __future__ import annotations

from onceover.cli.output import print_progress
from onceover.context import PipelineContext
from onceover.errors import TerminalError, TransientError


def warn_of_foreign_root(context: PipelineContext) -> None:
    """Print why commands that write would refuse the raw root, if they would. Prints nothing while HDFS does not
    answer. Raises as a connection to the ledger does, and RootRefusedError if the ledger does not know the pipeline."""
    _ = context.ledger
    try:
        context.require_own_root()
    except TransientError:
        return
    except TerminalError as error:
        if not context.is_registered():
            raise
        print_progress(f"warning: {error}")
