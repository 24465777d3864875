"""What a person decides, as tasks: the loss that is accepted, the rows that are restored, who works on windows.

Each is one short task over the function that the command line calls; who did it is Airflow's user.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from onceover.errors import UsageError
from onceover.model.dag_run import DagRun
from onceover.model.json_text import to_plain
from onceover.model.offsets import parse_range as parse_offsets
from onceover_airflow.assets import DUE_ALIAS, announce_soon
from onceover_airflow.params import LOSSES
from onceover_airflow.pipeline_operator import PipelineOperator
from onceover_airflow.requester import name_requester
from onceover_airflow.run_request import (
    choose_range,
    read_flag,
    read_param,
    read_reason,
    require_reason,
    require_text,
)


class AcceptLossOperator(PipelineOperator):
    """Declares offsets lost, and names the windows that may lack their records, as `onceover accept-loss`."""

    def execute(self, context: Context) -> dict[str, Any]:
        from onceover.detection.future_range import reject_future_range
        from onceover.detection.holes import accept_loss
        from onceover.explain.actions import describe_accepted_loss

        params, who = context["params"], name_requester(context["dag_run"])
        reason, kind = require_reason(params, "accepting a loss"), require_text(params, "kind")
        if kind not in LOSSES:
            raise UsageError(f"'kind' is {kind[:40]!r}; choose one of {', '.join(LOSSES)}")
        span = parse_offsets(require_text(params, "offsets"))
        with self.open("accept-loss") as opened:
            windows = reject_future_range(opened, choose_range(params, opened.windowing))
            opened.require_same_contract()
            lost, reopened = accept_loss(opened, span, windows, who, reason, unreadable=kind == "unreadable")
        self.log.info("%s", describe_accepted_loss(span.source, lost, reopened, windows))
        offsets = sum(map(len, lost))
        return {"pipeline": opened.name, "offsets": offsets, "ranges": len(lost), "reopened": len(reopened)}


class RestoreOperator(PipelineOperator):
    """Puts rows that a repair replaced back into the aggregates, as `onceover restore`; the window is blocked."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(outlets=[DUE_ALIAS], **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        from onceover.detection.future_range import resolve_window
        from onceover.explain.actions import describe_restore
        from onceover.repair.revisions import restore_revision

        params, run = context["params"], context["dag_run"]
        reason = require_reason(params, "a restore")
        revision = read_param(params, "revision", int, "give a whole number, or leave it out")
        with self.open("restore") as opened:
            window = resolve_window(opened, require_text(params, "window"))
            opened.require_own_root()
            known = opened.read_registration()
            of_run = DagRun(run.dag_id, run.run_id)
            done = restore_revision(
                opened.ledger, known, window.start, revision, name_requester(run), reason, dag_run=of_run
            )
            announce_soon(context, opened.ledger, [opened.name])
        self.log.info("%s", describe_restore(window, done))
        result: dict[str, Any] = to_plain(done)
        return {"pipeline": opened.name, "window": str(window), **result}


class TakeOperator(PipelineOperator):
    """Takes windows for a ticket, or releases them, as `onceover take`."""

    def execute(self, context: Context) -> dict[str, Any]:
        from onceover.detection.future_range import cut_future_range
        from onceover.explain.actions import describe_taking
        from onceover.ledger import takings
        from onceover.model.ticket import clean_ticket

        params, who = context["params"], name_requester(context["dag_run"])
        why, release = read_reason(params), read_flag(params, "release")
        if release and params.get("ticket"):
            raise UsageError("'release' releases windows for which no ticket is named: clear 'ticket', or 'release'")
        ticket = None if release else clean_ticket(require_text(params, "ticket"))
        with self.open("take") as opened:
            span = cut_future_range(opened, choose_range(params, opened.windowing))
            of_range = (opened.ledger, opened.read_registration().name, span, who)
            if ticket is None:
                windows, others = takings.release_windows(*of_range, why)
            else:
                windows, others = takings.take_windows(*of_range, ticket, why)
        verb = "released" if ticket is None else "taken"
        self.log.info("%s", describe_taking(verb, windows, others))
        return {"pipeline": opened.name, verb: windows, "from": sorted({each.who for each in others})}
