"""Changes that a cutover may make; any other needs a pipeline of its own.

Records from both sides of a cutover share window files and rows of the aggregates. So both versions must agree on the
bounds of a window, on the keys of a row, and on the meaning of each old column.
"""

from __future__ import annotations

from onceover.model.contract import Contract, list_written_measures, name_in_toml
from onceover.model.measures import SKIPPED


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
    operations, now = _list_operations(old), _list_operations(new)
    refused += [f"measure {name} is gone" for name in operations if name not in now]
    refused += [
        f"measure {name} is {_add_article(now[name])}, not {_add_article(operation)}"
        for name, operation in operations.items()
        if now.get(name, operation) != operation
    ]
    scales = {each.name: each.scale for each in new.derived}
    refused += [
        f"measure {each.name} has the scale {scales[each.name]}, not {each.scale}"
        for each in old.derived
        if each.name in scales and now[each.name] == each.operation and scales[each.name] != each.scale
    ]
    if unskipped := sorted((_list_skipping(old) - _list_skipping(new)) & now.keys()):
        refused.append(f"on_null no longer skips for measure {' and '.join(unskipped)}")
    return refused


def _list_operations(contract: Contract) -> dict[str, str]:
    """Return the operation of each measure, both as a TOML has them."""
    return dict(name_in_toml(contract, measure).split(".")[1:] for measure in list_written_measures(contract))


def _list_skipping(contract: Contract) -> set[str]:
    counted = {measure.sql for measure in contract.measures if measure.operation == SKIPPED}
    return {name_in_toml(contract, each).split(".")[1] for each in contract.measures if each.name in counted}


def _add_article(operation: str) -> str:
    return f"{'an' if operation.startswith('a') else 'a'} {operation}"
