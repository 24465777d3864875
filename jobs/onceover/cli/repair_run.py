"""The run of a repair that a person requested: Spark's job, the rows read back, and the judgement of the range."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from onceover.cli.output import print_progress
from onceover.cli.repair_report import Result
from onceover.cli.spark_entry import make_command, run_entry
from onceover.context import PipelineContext
from onceover.detection.detect import Detection
from onceover.detection.holes import explain_holes
from onceover.ledger.windows import list_windows
from onceover.model.window import WindowRange
from onceover.repair import confirmation
from onceover.repair.range_outcome import judge_range


def carry_out(context: PipelineContext, window_range: WindowRange, detection: Detection) -> Result:
    """Repair what the detection of this range requested."""
    result = Result(detection)
    if detection.request_id is not None:
        print_progress(
            f"judged {detection.judged} windows: {detection.certified} certified, {len(detection.failed)} to repair"
            + (f", {len(detection.read_again)} holes to read again from Kafka" if detection.read_again else "")
            + "; starting Spark"
        )
        code = run_entry(make_command("repair.py", "--pipeline", context.name, "--request", str(detection.request_id)))
        # Even after a failed job, published rows are read back, so that no window stays unconfirmed.
        done = confirmation.confirm(context, detection.request_id)
        # Holes that were read again have closed since.
        detection = replace(detection, findings=explain_holes(context, detection.findings))
        result = Result(detection, done, code)
    elif not detection.judged:
        windows = list_windows(context.ledger, context.name, None, window_range.start, window_range.end)
        result = replace(result, unjudged=Counter(str(row["state"]) for row in windows))
    return replace(result, requested=judge_range(context, window_range, result.confirmation))
