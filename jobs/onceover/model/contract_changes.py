"""Changes that a cutover may make; any other needs a pipeline of its own.

Records from both sides of a cutover share window files and rows of the aggregates. So both versions must agree on the
bounds of a window, on the keys of a row, and on the meaning of each old column.
"""

from __future__ import annotations

from onceover.model.contract import Contract, list_written_measures, name_in_toml


def list_changed_parts(old: Contract, new: Contract) -> list[str]:
    """Return the parts that differ, as a TOML names them."""
    before, after = old.definition(), new.definition()
    changed = (part for part in before.keys() | after.keys() if before.get(part) != after.get(part))
    in_toml = {"horizon_ms": "bounds.horizon", "skew_ms": "bounds.skew", "reader_schema": "schema_file",
               "key_schema": "key_schema_file", "derived": "measures",
               "zone_changes": "time zone data", "zone_data": "time zone data"}  # fmt: skip
    return sorted({in_toml.get(part, part) for part in changed})


def list_added_measures(old: Contract, new: Contract) -> list[str]:
    """Return the names, as a TOML has them, of the measures that only the new contract has."""
    old_names = {measure.name for measure in old.measures}
    added = [each for each in list_written_measures(new) if each.name not in old_names]
    return list(dict.fromkeys(name_in_toml(new, measure).split(".")[1] for measure in added))


def list_refused_changes(old: Contract, new: Contract) -> list[str]:
    """Return in a few words each change that a cutover cannot make; Spark may refuse further ones."""
    refused = [part for part in ("topic", "window_minutes", "window_zone") if getattr(old, part) != getattr(new, part)]
    before, after = {key.name for key in old.keys}, {key.name for key in new.keys}
    refused += [f"key {name} is new" for name in sorted(after - before)]
    refused += [f"key {name} is gone" for name in sorted(before - after)]
    operations = {measure.name: measure.operation for measure in new.measures}
    for measure in old.measures:
        now = operations.get(measure.name)
        if now is None:
            refused.append(f"measure {measure.name} is gone")
        elif now != measure.operation:
            refused.append(f"measure {measure.name} is a {now}, not a {measure.operation}")
    kept, had = ({each.name: each for each in of.derived} for of in (new, old))
    for each in old.derived:
        if (now_derived := kept.get(each.name)) is None:
            refused.append(f"measure {each.name} is no longer an {each.operation}")
        elif now_derived.scale != each.scale:
            refused.append(f"measure {each.name} has the scale {now_derived.scale}, not {each.scale}")
    names = {measure.name for measure in old.measures}
    refused += [
        f"measure {part} becomes a part of {each.name}"
        for each in new.derived if each.name not in had for part in each.parts if part in names
    ]  # fmt: skip
    return refused
