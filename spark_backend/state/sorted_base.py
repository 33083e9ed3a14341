"""The base of a table in the order of a column: rows with some values are found by bisection.

    base/left/.../b=0, b=1, ...  --sorted by row.customer-->  a file of Arrow, mapped into memory
    10,000 customers             --bisection-->               their rows

Who looks for many keys has to read most buckets of a base, as keys are spread over all of them. A
base does not change until another takes its place, so that the second such look-up copies it,
sorted, and later ones take no time by its size. The copy has no name, so it goes with the process;
what of it is in memory are pages of a file, which the system takes back as it needs.

State:  a copy for each base that is looked through again and again, as large as its rows.
Cost:   O(keys * log rows) for a look-up; O(rows * log rows) once for each base.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_backend.state.manifest import Segment

MOST_SORTED = 1 << 27
"""Bytes of all copies that a state has."""
MOST_PACKED = 1 << 25
"""Bytes that the files of a base take at most of which there is a copy."""
FEW_SOUGHT = 100_000
"""Rows of a base up to which they are looked through each time."""
Column = tuple[str, ...]
"""A column by its path."""


@dataclass(frozen=True, slots=True)
class SortedBase:
    """Rows in the order of a column of integers, of which `keys` are those that are not null."""

    rows: pa.Table
    keys: npt.NDArray[np.int64]

    def having(self, values: pa.Array) -> pa.Table:
        """The rows that have one of some values in the column."""
        asked = np.sort(values.to_numpy(zero_copy_only=False))
        start = np.searchsorted(self.keys, asked, "left")
        count = np.searchsorted(self.keys, asked, "right") - start
        before = np.cumsum(count) - count
        return self.rows.take(np.repeat(start - before, count) + np.arange(count.sum()))


class SortedBases:
    """The copies of a state, one for a table."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[str, Column]] = {}
        self._made: dict[str, tuple[tuple[str, Column], SortedBase | None]] = {}

    def near(
        self,
        table: str,
        segments: Sequence[Segment],
        near: Sequence[Segment],
        column: Column,
        read: Callable[[Sequence[Segment]], pa.Table],
    ) -> SortedBase | None:
        """The copy of the base of a table, made where much of it is looked through again.

        Parameters
        ----------
        near: what is looked through of the segments.
        """
        bases = [s for s in segments if s.is_base]
        if len(bases) != 1 or bases[0].bytes > MOST_PACKED:
            return None
        rows = sum(s.rows for s in near if s.is_base)
        is_much = rows >= FEW_SOUGHT and 2 * rows >= bases[0].rows
        return self.of(table, bases[0].folder, column, partial(read, bases) if is_much else None)

    def of(
        self, table: str, folder: str, column: Column, read: Callable[[], pa.Table] | None
    ) -> SortedBase | None:
        """The copy of a base; None the first time that it is asked for, or if there can be none.

        Parameters
        ----------
        folder: of the base, of which each table has one at a time.
        read: gives its rows, where they are needed; None if it is not to be made now.
        """
        of = folder, column
        made = self._made.get(table)
        if made is not None and made[0] == of:
            return made[1]
        if made is not None and made[0][0] != folder:
            del self._made[table]
        if read is None:
            return None
        if self._asked.get(table) != of:
            self._asked[table] = of
            return None
        self._made.pop(table, None)
        found = self._copied(read(), column)
        self._made[table] = of, found
        return found

    def _copied(self, rows: pa.Table, column: Column) -> SortedBase | None:
        taken = sum(copy.rows.nbytes for _, copy in self._made.values() if copy is not None)
        leaf = _leaf(rows, column)
        if leaf.type != pa.int64() or taken + rows.nbytes > MOST_SORTED:
            return None
        order = pc.sort_indices(leaf)  # nulls come last
        with suppress(OSError):  # there is no room for it
            mapped = _mapped(rows.take(order).combine_chunks())
            keys = _leaf(mapped, column).combine_chunks()
            return SortedBase(mapped, keys.slice(0, len(keys) - keys.null_count).to_numpy())
        return None


def _leaf(rows: pa.Table, column: Column) -> pa.ChunkedArray:
    name, *path = column
    return pc.struct_field(rows[name], path) if path else rows[name]


def _mapped(rows: pa.Table) -> pa.Table:
    """The same rows, of a file that has no name any more."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        pass
    try:
        with pa.ipc.new_file(file.name, rows.schema) as out:
            out.write_table(rows)
        return pa.ipc.open_file(pa.memory_map(file.name)).read_all()
    finally:
        with suppress(OSError):  # Windows does not let it go
            Path(file.name).unlink()
