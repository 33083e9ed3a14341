"""A recursion by rounds in a flush that the process does: it looks up what it meets, in each round.

    rows of a round --keys--> rows of sides that have them --ways--> rows that they derive
                                                           --rows--> what is known of these

Of a table of few rows all are taken at first, so that a round reads no file. A change that goes
through many rows, or many rounds that have to look into files, is left to a job.

State:  none beside the tables; what has been looked up, during a flush.
Cost:   O(derivations that rows that change are part of), and some milliseconds for a look-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reactive.engine.collections.zset import Row
from reactive.engine.reference.bags import Bag
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.hashing import flattened_values, leaves
from spark_backend.codec.schema import Typed
from spark_backend.direct.flush import NOTHING, DirectFlush, TooMany, check_fetched
from spark_backend.direct.lookup import Leaves, Lookup, fields_of
from spark_backend.recursion.counted import Known, followed
from spark_backend.recursion.rounds_worker import (
    NUMBERS,
    Task,
    add_known,
    loaded,
    numbers,
    present,
    there,
)
from spark_backend.state.tables import TableSpec
from spark_backend.steps.join import Arranged

if TYPE_CHECKING:
    from spark_backend.recursion.by_rounds import Read

MOST_TAKEN = 20_000
"""Rows of a table up to which all are taken when one is asked for."""
MOST_LOOKED_UP = 300
"""Look-ups in files of a flush."""


class DirectRounds:
    """The relations of a recursion.

    Parameters
    ----------
    specs: the tables of what is known of their rows.
    """

    def __init__(self, task: Task, specs: Sequence[TableSpec], read: Read) -> None:
        self._task, self._specs, self._read = task, specs, read

    def changes(self, flush: DirectFlush, first: int) -> list[Bag]:
        """How the rows of the relations change; their rounds are numbered from the first on."""
        task, read = self._task, self._read
        sides = [flush.delta(side) for side in read.sides]
        seeds = task.of_seeds([flush.delta(seed) for seed in read.seeds])
        if not any(sides) and not any(seeds):
            return [NOTHING for _ in task.kept]
        program = loaded(task.program)
        met = _Met(flush, task, self._specs, read, sides)
        found = followed(met, seeds, first, program.limits)
        shown = []
        for spec, kept, some in zip(self._specs, task.kept, found, strict=True):
            of = numbers(some)
            if some:
                columns: dict[str, pa.Array] = {"row": to_arrow(kept, [row for row, *_ in some])}
                for name, values in zip(NUMBERS, of, strict=True):
                    columns[name] = pa.array(values, pa.int64())
                flush.put(spec, columns)
            rows = zip(some, of[0], strict=True)
            shown.append(Counter({row: weight for (row, *_), weight in rows if weight}))
        for asked in read.asked:
            flush.add(asked.own.spec, task.kept[asked.relation], shown[asked.relation])
            flush.add(asked.other.spec, asked.other.source.kept, sides[asked.side])
        return shown


class _Met:
    """What a flush looks up: `counted.Derivations`."""

    def __init__(
        self,
        flush: DirectFlush,
        task: Task,
        specs: Sequence[TableSpec],
        read: Read,
        changes: Sequence[Bag],
    ) -> None:
        self._flush, self._asked, self._changes = flush, read.asked, changes
        self._ways = task.ways(loaded(task.program))
        self._looks = _Looks(flush)
        self._known = [_Known(self._looks, *pair) for pair in zip(specs, task.kept, strict=True)]
        self._others = [_ByKey(self._looks, asked.other) for asked in read.asked]
        self._size = 0

    def known(self, relation: int, rows: Iterable[Row]) -> Mapping[Row, Known]:
        wanted = list(rows)
        self._size += len(wanted)
        check_fetched(self._size)
        return self._known[relation].of(wanted)

    def readers(self) -> Sequence[Iterable[Row]]:
        found: list[dict[Row, None]] = [{} for _ in self._known]
        for asked in self._asked:
            keys = asked.other.keys_of(self._changes[asked.side])
            if keys:
                self._looks.count()
                rows = present(asked.own.direct_having(self._flush, keys))
                key_of = asked.own.side.key_of
                found[asked.relation].update((row, None) for row in rows if key_of(row) in keys)
        return found

    def derived(self, rows: Sequence[list[Row]], *, before: bool) -> Sequence[Bag]:
        sides: list[dict[Row, int]] = [{} for _ in self._changes]
        for asked, others in zip(self._asked, self._others, strict=True):
            keys = asked.own.keys_of(rows[asked.relation])
            sides[asked.side].update(others.having(keys))
        if not before:
            for side, change in zip(sides, self._changes, strict=True):
                for row, weight in change.items():
                    side[row] = side.get(row, 0) + weight
        check_fetched(sum(map(len, sides)))
        self._ways.over([present(Counter(side)) for side in sides])
        return self._ways.derived(rows)


class _Looks:
    """How often files are looked into."""

    def __init__(self, flush: DirectFlush) -> None:
        self.flush, self._count = flush, 0

    def count(self) -> None:
        """Note a look-up.

        Raises
        ------
        TooMany: there have been many.
        """
        self._count += 1
        if self._count > MOST_LOOKED_UP:
            raise TooMany("a recursion of many rounds")

    def are_few(self, spec: TableSpec) -> bool:
        """Whether all rows of a table are taken."""
        return self.flush.tables.rows_near(spec) <= MOST_TAKEN


class _Known:
    """What is known of the rows of a relation."""

    def __init__(self, looks: _Looks, spec: TableSpec, kept: Typed) -> None:
        self._looks, self._spec, self._kept = looks, spec, kept
        self._lookup = Lookup(leaves(kept), fields_of(kept, "row"))
        self._all: Mapping[Row, Known] | None = None

    def of(self, rows: Sequence[Row]) -> Mapping[Row, Known]:
        """Of some rows, perhaps also of others."""
        if self._all is not None:
            return self._all
        self._looks.count()
        tables = self._looks.flush.tables
        if self._looks.are_few(self._spec):
            self._all = self._read(tables.all_rows(self._spec))
            return self._all
        keys = {tuple(flattened_values(self._kept, row)) for row in rows}
        return self._read(self._looks.flush.found(self._spec, self._lookup, keys))

    def _read(self, found: Any) -> Mapping[Row, Known]:
        known: dict[Row, list[int]] = {}
        if found.num_rows:
            add_known(known, from_arrow(self._kept, found.column("row").combine_chunks()), found)
        return there(known)


class _ByKey:
    """The rows of a side, as of before, by a key."""

    def __init__(self, looks: _Looks, of: Arranged) -> None:
        self._looks, self._of = looks, of
        self._rows: dict[Leaves, dict[Row, int]] = {}
        self._has_all = False

    def having(self, keys: set[Leaves]) -> dict[Row, int]:
        """The rows that have keys, with their weights; perhaps others."""
        missing = keys - self._rows.keys()
        if missing and not self._has_all:
            self._fetch(missing)
        found: dict[Row, int] = {}
        for key in keys:
            found.update(self._rows.get(key, {}))
        return found

    def _fetch(self, keys: set[Leaves]) -> None:
        self._looks.count()
        of, flush = self._of, self._looks.flush
        self._has_all = self._looks.are_few(of.spec)
        if self._has_all:
            rows = flush.all_rows(of.spec, of.source.kept)
        else:
            rows = of.direct_having(flush, keys)
            self._rows.update((key, {}) for key in keys)
        for key, some in of.by_key(rows.items()).items():
            if self._has_all or key in keys:
                self._rows[key] = dict(some)
