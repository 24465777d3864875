"""`onceover verify`: the proof of one window's certificate from raw and from the aggregates' rows."""

from __future__ import annotations

from onceover.audit import service as audit_service
from onceover.cli.arguments import PipelineName, WindowStart, get_user
from onceover.cli.audit_report import CODES, carry_out
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED
from onceover.cli.output import Answer, Table
from onceover.context import open_pipeline
from onceover.detection.future_range import resolve_window
from onceover.model.remedies import REBUILD, REREAD
from onceover.model.window import Window, format_moment

_SIDES = {"certificate": "certificate", "raw": "raw", "aggregates": "counted, by the ledger"}


@command(
    "onceover verify flights 2013-01-05T14:00Z",
    "onceover verify flights 2013-01-05T14:00Z --json",
    codes=CODES | {FAILED: "the sides differ, or the window has no certificate"},
)
def verify(pipeline: PipelineName, window: WindowStart) -> Answer:
    """Recompute a window's certificate from raw and from the rows of the aggregates, and name each difference.

    Reads the whole window file with Spark. Changes nothing but the ledger's table `onceover.action`, which keeps the
    result.
    """
    with open_pipeline(pipeline, "verify") as context:
        chosen, name = resolve_window(context, window), context.name
        audit_id = audit_service.request_audit(context, "window", start=chosen.start, end=chosen.end, who=get_user())
        result = carry_out(context, audit_id or 0)
    is_raw_right = result["raw"]["digest"] == result["certificate"]["digest"]
    return Answer(
        {"pipeline": name, "window": str(chosen), "local": chosen.local, "audit_id": audit_id, **result},
        [
            Table(
                [{"side": shown, **result[side]} for side, shown in _SIDES.items()],
                "side", ">records", "digest",
            ),
            *result["differences"],
            None if result["valid"]
            else f"Its certificate is no longer valid; `onceover explain {name} {chosen}` says why.",
            f"window {chosen.shown} of {name}: {'equal' if result['equal'] else 'NOT equal'}",
            describe_repair(name, chosen, is_raw_right=is_raw_right)
            if result["valid"] and not result["equal"] else None,
        ],
        0 if result["equal"] else FAILED,
    )  # fmt: skip


def describe_repair(name: str, window: Window, *, is_raw_right: bool) -> str:
    """Return what to do about a window that is not as its valid certificate says."""
    remedy = (REBUILD if is_raw_right else REREAD).fill(
        pipeline=name, window=str(window), end=format_moment(window.end)
    )
    if is_raw_right:
        return f"Raw holds what was certified. Rebuild the rows: `{remedy.command}`"
    return (
        "Raw does not hold what was certified. Bring the window file back, if you can; else read it again from Kafka: "
        f"`{remedy.command}`"
    )
