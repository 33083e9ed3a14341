"""What runs in a Python worker for a recursion by rounds: all rows are there, and few change.

    batches      rows with what is known of them; sides as they were; how sides and seeds change
    changes      of the rows, and of what is known of them (`counted.py`)

State:  none between flushes.
Cost:   O(rows + sides) to take them in; derivations only of rows that change.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimizer import plan
from reactive.engine.collections.zset import Row
from spark_backend.codec.arrow import arrow_type, from_arrow
from spark_backend.codec.schema import Plain, Record, Typed
from spark_backend.recursion.counted import Change, Known, Limits, followed
from spark_backend.recursion.derived import Ways
from spark_backend.recursion.worker import ROWS, arrow_rows, told
from spark_backend.tables.worker import adopt

Bag = Counter[Row]
KNOWN = ("derivations", "founded", "round")
"""The columns of what is known of a row."""
NUMBERS = ("weight", *KNOWN)


@dataclass(frozen=True, slots=True)
class Program:
    """What a recursion comes down to, over its relations and then its sides, as `Recursive` of a
    level.

    `readers` are semi-joins of a relation with a side, which are 0 and 1 there; `reads` says which
    these are.
    """

    level: Any
    bodies: tuple[plan.Node | None, ...]
    readers: tuple[plan.Node, ...]
    reads: tuple[tuple[int, int], ...]
    limits: Limits


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker needs to know: the program, as bytes, and what rows are of the relations, the
    sides, and the seeds, of which `relations` says what they are of."""

    program: bytes
    kept: tuple[Typed, ...]
    sides: tuple[Typed, ...]
    seeds: tuple[Typed, ...]
    relations: tuple[int, ...]

    @property
    def kinds(self) -> tuple[Typed, ...]:
        """Of what a worker is given: relations, sides, their changes, and changes of seeds."""
        return (*self.kept, *self.sides, *self.sides, *self.seeds)

    def ways(self, program: Program) -> Ways:
        """What derives rows."""
        may_be_nan = any(map(_has_floats, self.kept))
        return Ways(program.bodies, program.level, len(self.sides), may_be_nan=may_be_nan)

    def of_seeds(self, bags: Sequence[Bag]) -> list[Bag]:
        """The changes of seeds, by relation."""
        found = [Counter[Row]() for _ in self.kept]
        for relation, bag in zip(self.relations, bags, strict=True):
            for row, weight in bag.items():
                found[relation][row] += weight
        return found


@dataclass(frozen=True, slots=True)
class Given:
    """What a worker has been given."""

    known: list[dict[Row, Known]]
    before: list[Bag]
    changes: list[Bag]
    seeds: list[Bag]


class Held:
    """All that is known, in dictionaries: `counted.Derivations`."""

    def __init__(self, task: Task, program: Program, given: Given) -> None:
        self._program, self._given = program, given
        self._ways = task.ways(program)
        self._at: bool | None = None
        changes = zip(given.before, given.changes, strict=True)
        self._after = [present(added(bag, change)) for bag, change in changes]

    def known(self, relation: int, rows: Iterable[Row]) -> Mapping[Row, Known]:
        return self._given.known[relation]

    def readers(self) -> Sequence[Iterable[Row]]:
        program = self._program
        found: list[dict[Row, None]] = [{} for _ in program.bodies]
        for node, (relation, side) in zip(program.readers, program.reads, strict=True):
            changed, rows = self._given.changes[side], self._given.known[relation]
            if changed and rows:
                found[relation].update(dict.fromkeys(self._meeting(node, relation, side)))
        return found

    def _meeting(self, node: plan.Node, relation: int, side: int) -> list[Row]:
        ways = Ways([node], self._program.level, 1, may_be_nan=False)
        ways.over([dict.fromkeys(self._given.changes[side], 1)])
        return list(ways.derived([list(self._given.known[relation])])[0])

    def derived(self, rows: Sequence[list[Row]], *, before: bool) -> Sequence[Bag]:
        if self._at is not before:
            self._ways.over([present(b) for b in self._given.before] if before else self._after)
            self._at = before
        return self._ways.derived(rows)


def changes(
    task: bytes, classes: dict[str, bytes], first: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """How rows change, and what is known of them.

    Batches have the columns `kind`, those of `NUMBERS`, and `row0` and so on, of which the one of
    the kind has the row.
    """
    adopt(classes)
    of: Task = pickle.loads(task)
    given = _taken(of, batches)
    program = loaded(of.program)
    try:
        held = Held(of, program, given)
        found = followed(held, of.of_seeds(given.seeds), first, program.limits)
    except (Exception, SystemExit) as error:
        raise told(error) from error
    for relation, some in enumerate(found):
        yield from _batches(of, relation, some)


def _taken(of: Task, batches: Iterable[pa.RecordBatch]) -> Given:
    kinds = of.kinds
    own, sides = len(of.kept), len(of.sides)
    known: list[dict[Row, list[int]]] = [{} for _ in range(own)]
    bags = [Counter[Row]() for _ in kinds[own:]]
    for batch in batches:
        for kind in batch.column("kind").unique().to_pylist():
            some = batch.filter(pc.equal(batch.column("kind"), kind))
            rows = from_arrow(kinds[kind], some.column(f"row{kind}"))
            if kind < own:
                add_known(known[kind], rows, some)
                continue
            bag = bags[kind - own]
            for row, weight in zip(rows, some.column("weight").to_pylist(), strict=True):
                bag[row] += weight
    return Given(list(map(there, known)), bags[:sides], bags[sides : 2 * sides], bags[2 * sides :])


def add_known(known: dict[Row, list[int]], rows: Sequence[Row], columns: Any) -> None:
    """Add what is known of rows up, from columns that have it in parts."""
    parts = [columns.column(name).to_pylist() for name in KNOWN]
    for row, *more in zip(rows, *parts, strict=True):
        of = known.get(row)
        if of is None:
            known[row] = more
        else:
            known[row] = [a + b for a, b in zip(of, more, strict=True)]


def there(known: Mapping[Row, Sequence[int]]) -> dict[Row, Known]:
    """What is known of rows that are there."""
    return {row: Known(*of) for row, of in known.items() if of[-1]}


def numbers(changes: Sequence[Change]) -> list[list[int]]:
    """The columns of `NUMBERS`: by how much they change."""
    pairs = [(was, now) for _, was, now in changes]
    found = [[bool(now.round) - bool(was.round) for was, now in pairs]]
    found += [[now[place] - was[place] for was, now in pairs] for place in range(len(KNOWN))]
    return found


def _batches(of: Task, relation: int, some: list[Change]) -> Iterator[pa.RecordBatch]:
    kept = of.kept[relation]
    for start in range(0, len(some), ROWS):
        part = some[start : start + ROWS]
        rows = arrow_rows(kept, [row for row, *_ in part])
        columns = [pa.array([relation] * len(part), pa.int32())]
        columns += [pa.array(values, pa.int64()) for values in numbers(part)]
        for place, other in enumerate(of.kept):
            own = place == relation
            columns.append(rows if own else pa.nulls(len(part), arrow_type(other)))
        names = ["kind", *NUMBERS, *(f"row{place}" for place in range(len(of.kept)))]
        yield pa.record_batch(columns, names)


def added(bag: Bag, change: Bag) -> Bag:
    """Both together."""
    if not change:
        return bag
    found = Counter(bag)
    for row, weight in change.items():
        found[row] += weight
    return found


def present(bag: Bag) -> Bag:
    """The rows that are there."""
    return Counter({row: weight for row, weight in bag.items() if weight > 0})


def _has_floats(of: Typed) -> bool:
    if isinstance(of, Record):
        return any(map(_has_floats, of.fields))
    return not isinstance(of, Plain) or of.kind is float


@lru_cache(maxsize=16)
def loaded(data: bytes) -> Program:
    """The program of a task."""
    found: Program = pickle.loads(data)
    return found
