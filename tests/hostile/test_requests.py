"""Forms, confs and names that hold anything: one printable line of refusal, or the very value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from tests.hostile.canaries import require_harmless
from tests.hostile.texts import make_text, make_value
from tests.hostile.tries import few_or_all

from onceover.cli.arguments import require_reason
from onceover.config.duration import parse_duration
from onceover.config.pipelines import find_file, names
from onceover.errors import UsageError
from onceover.model.offsets import parse_range
from onceover.model.reason import REASON_LENGTH, clean_reason
from onceover.model.window import parse_moment
from onceover.model.windowing import Windowing
from onceover_airflow.run_request import RunRequest, chosen_name
from onceover_airflow.windows import DataInterval

HALF = 600
FIELDS = ("from", "to", "reason", "force", "dry_run", "pipeline")
GOOD = {"from": "2013-01-01T05:00Z", "to": "2013-01-01T06:00Z", "reason": "why not", "force": False, "dry_run": False}
INTERVALS = (DataInterval(None, None), DataInterval(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC)))


def explain_refusal(attempt: Callable[[], object]) -> str | None:
    """Return what is wrong with a refusal, None if it is one printable line or none at all."""
    try:
        attempt()
    except UsageError as error:
        said = str(error)
        return None if said.isprintable() and len(said) <= 500 else f"said {said[:300]!r}"
    except Exception as error:  # noqa: BLE001 - this is what a try looks for
        return f"{type(error).__name__}: {str(error)[:150]}"
    return None


@few_or_all(HALF)
def test_request_of_hostile_fields_is_refused_in_one_line(tmp_path: Path, count: int) -> None:
    def attempt(number: int) -> str | None:
        random = Random(number)
        params: dict[str, Any] = dict(GOOD)
        for field in random.sample(FIELDS, random.choice((1, 1, 2, 6))):
            params[field] = make_value("forms", number * 10 + len(field), str(tmp_path / "canary"))
        made: list[RunRequest] = []
        needed = random.random() < 0.5
        interval = random.choice(INTERVALS)
        wrong = explain_refusal(
            lambda: made.append(RunRequest.from_run(params, interval, windowing=Windowing(60), reason_needed=needed))
        )
        for request in made:
            reason = params["reason"]
            if request.reason != (" ".join(reason.split()) or None if isinstance(reason, str) else None):
                return f"the reason became {request.reason!r}"
            if (request.force, request.dry_run) != (params["force"], params["dry_run"]):
                return "a flag became another"
        return wrong or explain_refusal(lambda: chosen_name(params.get("pipeline")))

    require_harmless(attempt, count, tmp_path)


@few_or_all(HALF)
def test_hostile_text_is_refused_in_one_line(tmp_path: Path, count: int) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "things.toml").touch()
    doors: tuple[Callable[[str], object], ...] = (
        parse_moment, lambda text: Windowing(60).parse_window(text), parse_range, parse_duration, clean_reason,
        lambda text: Windowing(60).parse_range(text, "2013-01-01T06:00Z"), lambda text: find_file(text, tmp_path),
        lambda text: Windowing(60).parse_range("2013-01-01T05:00Z", text),
        lambda text: require_reason(text, "a repair"),
    )  # fmt: skip

    def attempt(number: int) -> str | None:
        text, door = make_text("texts", number, str(tmp_path / "canary")), doors[number % len(doors)]
        return explain_refusal(lambda: door(text))

    require_harmless(attempt, count, tmp_path)
    assert names(tmp_path) == ("things",)
    assert len(clean_reason("a" * REASON_LENGTH) or "") == REASON_LENGTH, "and what is right is kept"
