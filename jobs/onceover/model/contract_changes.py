"""What of a contract may change by a cutover, and what needs a pipeline of its own.

Records from both sides of a cutover stand in the same window files and count into the same rows of the same table. So
both versions must agree on where a window begins and ends, on what a row is, and on what each of its old columns means.
"""

from __future__ import annotations

from onceover.model.pipeline import Contract


def changed(old: Contract, new: Contract) -> list[str]:
    """The parts of a contract that are not the same in both."""
    before, after = old.definition(), new.definition()
    return sorted(part for part in before.keys() | after.keys() if before.get(part) != after.get(part))


def added(old: Contract, new: Contract) -> list[str]:
    """The measures that only the new one has."""
    known = {measure.name for measure in old.measures}
    return [measure.name for measure in new.measures if measure.name not in known]


def refused(old: Contract, new: Contract) -> list[str]:
    """What cannot be cut over, each as a few words; nothing if all of it can, as far as is known without Spark."""
    found = [part for part in ("topic", "window_minutes") if getattr(old, part) != getattr(new, part)]
    before, after = {key.name for key in old.keys}, {key.name for key in new.keys}
    found += [f"key {name} is new" for name in sorted(after - before)]
    found += [f"key {name} is gone" for name in sorted(before - after)]
    operations = {measure.name: measure.operation for measure in new.measures}
    for measure in old.measures:
        now = operations.get(measure.name)
        if now is None:
            found.append(f"measure {measure.name} is gone")
        elif now != measure.operation:
            found.append(f"measure {measure.name} is a {now}, not a {measure.operation}")
    return found
