"""Which windows a compaction would write, as the command line asks. Plain values in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onceover.window import WindowRange

if TYPE_CHECKING:
    from onceover.ledger.compactions import Due


def due(pipeline_name: str, older_than_ms: int, window_range: WindowRange | None) -> list[Due]:
    """The certified windows of the range (all without one) that are not compacted yet and that nothing has come to for
    so long, in order. Writes nothing."""
    from onceover.endpoints import address
    from onceover.ledger import compactions
    from onceover.ledger.catalog import require_same_contract
    from onceover.ledger.database import connect, require_current
    from onceover.pipelines import find

    pipeline = find(pipeline_name)
    start, end = (window_range.start, window_range.end) if window_range else (None, None)
    with connect(address("postgres"), f"onceover compact {pipeline.name}") as connection:
        require_current(connection)
        require_same_contract(connection, pipeline)
        return compactions.due(connection, pipeline.name, older_than_ms, start, end)
