"""What reads unions, arrays, maps and records of all values of a batch, by what reads their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onceover.formats.avro.cursor import MAX_ITEMS, Cursor
from onceover.formats.avro.scalars import Bytes, Constant, TypeReader


@dataclass(frozen=True, slots=True)
class Union:
    """The number of a branch, and its value."""

    type: pa.DataType
    branches: Sequence[TypeReader]

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        chosen = self._choose(cursor, rows)
        parts = [branch.read(cursor, rows[chosen == number]) for number, branch in enumerate(self.branches)]
        return pa.concat_arrays(parts).take(_find_places(chosen))

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        chosen = self._choose(cursor, rows)
        for number, branch in enumerate(self.branches):
            if len(of_branch := rows[chosen == number]):
                branch.skip(cursor, of_branch)

    def _choose(self, cursor: Cursor, rows: np.ndarray) -> np.ndarray:
        return cursor.read_choice(rows, len(self.branches), "Avro with a number beyond a union's types")


@dataclass(frozen=True, slots=True)
class Items:
    """Blocks of an array's items, or of a map's keys and values; `keys` is None of an array."""

    type: pa.DataType
    path: str
    item: TypeReader
    keys: Bytes | None = None

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        places, keys, items = [np.empty(0, np.int64)], [], []

        def read_one(active: np.ndarray) -> None:
            places.append(active)
            if self.keys:
                keys.append(self.keys.read(cursor, rows[active]))
            items.append(self.item.read(cursor, rows[active]))

        self._walk(cursor, rows, read_one)
        of_rows = np.concatenate(places)
        order = pa.array(np.argsort(of_rows, kind="stable"))
        offsets = np.zeros(len(rows) + 1, np.int32)
        offsets[1:] = np.cumsum(np.bincount(of_rows, minlength=len(rows)))
        values = _join(items, self.type.item_type if self.keys else self.type.value_type).take(order)
        if not self.keys:
            return pa.ListArray.from_arrays(pa.array(offsets), values, self.type)
        names = _join(keys, pa.string()).take(order)
        self._refuse_repeated(cursor, rows[np.sort(of_rows)], names)
        return pa.MapArray.from_arrays(pa.array(offsets), names, values, self.type)

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        rows = cursor.descend(rows)

        def skip_one(active: np.ndarray) -> None:
            if self.keys:
                self.keys.skip(cursor, rows[active])
            self.item.skip(cursor, rows[active])

        self._walk(cursor, rows, skip_one)
        cursor.depth -= 1

    def _walk(self, cursor: Cursor, rows: np.ndarray, take_one: Callable[[np.ndarray], None]) -> None:
        """Call with the places in `rows` that have a next item, until none has."""
        left = np.zeros(len(rows), np.int64)
        active = np.arange(len(rows))
        while len(active):
            empty = active[left[active] == 0]
            if len(empty):
                left[empty] = self._read_counts(cursor, rows[empty])
                active = active[left[active] > 0]
                if not len(active):
                    return
            take_one(active)
            left[active] -= 1
            active = active[~cursor.is_refused[rows[active]]]

    def _read_counts(self, cursor: Cursor, rows: np.ndarray) -> np.ndarray:
        count = cursor.read_longs(rows)
        if len(sized := np.flatnonzero(count < 0)):
            cursor.read_longs(rows[sized])  # the block's bytes, to skip it by
            count[sized] = -count[sized]
        cursor.items[rows] += np.where(count > MAX_ITEMS, MAX_ITEMS, count)
        many = (count < 0) | (count > MAX_ITEMS) | (cursor.items[rows] > MAX_ITEMS)
        cursor.refuse(rows[many], f"Avro with more than {MAX_ITEMS} items")
        count[many] = 0
        return count

    def _refuse_repeated(self, cursor: Cursor, rows: np.ndarray, names: pa.Array) -> None:
        if not len(names):
            return
        pairs = rows * len(names) + pc.dictionary_encode(names).indices.to_numpy()
        _, first, count = np.unique(pairs, return_index=True, return_counts=True)
        cursor.refuse(np.unique(rows[first[count > 1]]), f"field {self.path}: one key twice")


@dataclass(slots=True)
class RecordReader:
    """A record's fields in the writer's order, each with its place among the reader's, None to skip it."""

    type: pa.DataType = field(default_factory=pa.null)
    steps: list[tuple[TypeReader, int | None]] = field(default_factory=list)
    constants: list[tuple[Constant, int]] = field(default_factory=list)

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        found: dict[int, pa.Array] = {}
        for step, place in self.steps:
            if place is None:
                step.skip(cursor, rows)
            else:
                found[place] = step.read(cursor, rows)
        found |= {place: constant.read(cursor, rows) for constant, place in self.constants}
        return pa.StructArray.from_arrays([found[place] for place in range(len(found))], fields=list(self.type))

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        rows = cursor.descend(rows)
        for step, _ in self.steps if len(rows) else ():
            step.skip(cursor, rows)
        cursor.depth -= 1


def _find_places(chosen: np.ndarray) -> pa.Array:
    """Return where each row's value is in the arrays of the branches, one behind the other."""
    places = np.empty(len(chosen), np.int64)
    places[np.argsort(chosen, kind="stable")] = np.arange(len(chosen))
    return pa.array(places)


def _join(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays(parts) if parts else pa.nulls(0, kind)
