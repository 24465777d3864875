"""The page's answers: pipelines, the strip of windows, trouble, a window, its numbers, runs and actions, for JSON.

Functions that take a connection read one snapshot of the ledger, for at most 3 seconds a statement: their connection
must not be in a transaction. Nothing here writes.
"""

from onceover.explain.page.history import PastAction, list_holes, read_history
from onceover.explain.page.ingest import IngestLine, read_ingest
from onceover.explain.page.losses import Loss, list_losses
from onceover.explain.page.numbers import read_numbers
from onceover.explain.page.pipelines import PipelineLine, list_pipelines
from onceover.explain.page.run import RequestProgress, read_request, read_run
from onceover.explain.page.strip import Strip, read_strip
from onceover.explain.page.trouble import TroubledRange, TroublePage, list_trouble
from onceover.explain.page.window import read_window

__all__ = [
    "IngestLine",
    "Loss",
    "PastAction",
    "PipelineLine",
    "RequestProgress",
    "Strip",
    "TroublePage",
    "TroubledRange",
    "list_holes",
    "list_losses",
    "list_pipelines",
    "list_trouble",
    "read_history",
    "read_ingest",
    "read_numbers",
    "read_request",
    "read_run",
    "read_strip",
    "read_window",
]
