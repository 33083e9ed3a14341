"""Follow the changes of a linear recursion round by round, in a Python worker or in the process.

`rounds_changes` runs in a Python worker that receives all rows, few of them changed:

    batches      rows with their derivations; old rows of sides; changes of sides and seeds
    changes      of the rows, and of their derivations

State:  none between flushes.
Cost:   O(rows + sides) to read them; derivations only from changed rows.

`follow_changes` computes how rows change from the number and the rounds of their derivations:

    derivations   of a row, from inputs and from existing rows
    founded       the derivations from inputs, or from rows of earlier rounds
    round         the round of its insertion; numbers increase over all flushes

    1. a change of the inputs changes the derivations of the rows that match it
    2. rows without a founded derivation leave, and their own derivations are subtracted
    3. absent rows with derivations enter, in a new round; their own derivations are added

A row exists if and only if it has a founded derivation, so that rows that derive each other in a
cycle do not keep each other. Rows that left in 2 and still have derivations return in 3.

Sound:  by the invariants of `reactive/engine/operators/fixpoint`. Each derivation reads one
        recursive row, so that a row alone determines its results, and all rows of a round are
        looked up in one batch.
State:  none; the caller looks up and stores the derivations.
Cost:   O(derivations that involve changed rows), and a look-up per round.
Source: [counting]; [elastic].

`DeltaRules` derives rows: it runs the rules of a linear recursion over given rows and sides.

State:  the rows of the sides, by the keys that the rules read.
Cost:   O(rows + derived rows), by generated loops; of sides, once until they are replaced.
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from optimizer import plan
from reactive import FixpointError
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.operators.loops.whole_round import compile_whole_round
from reactive.engine.reference.evaluate import evaluate_part
from reactive.engine.runtime.interrupts import reraise_asynchronous
from spark_backend.codec.arrow import arrow_type, from_arrow
from spark_backend.codec.schema import Plain, Record, Typed
from spark_backend.recursion.worker import ROWS, arrow_rows, worker_error
from spark_backend.tables.stateless import adopt_classes

Bag = Counter[Row]


KNOWN = ("derivations", "founded", "round")
"""The columns of the derivations of a row."""
NUMBERS = ("weight", *KNOWN)


@dataclass(frozen=True, slots=True)
class Program:
    """A linear recursion over its relations and then its sides, as `Recursive` of a level.

    `readers` are semi-joins of a relation with a side, numbered 0 and 1 in the semi-join; `reads`
    has the numbers of the two in the recursion, for each reader.
    """

    level: Any
    bodies: tuple[plan.Node | None, ...]
    readers: tuple[plan.Node, ...]
    reads: tuple[tuple[int, int], ...]
    limits: Limits


@dataclass(frozen=True, slots=True)
class RoundsTask:
    """The recursion that a worker follows: the program, as bytes, and the row types of the
    relations, the sides, and the seeds; `relations` names the relation of each seed."""

    program: bytes
    kept: tuple[Typed, ...]
    sides: tuple[Typed, ...]
    seeds: tuple[Typed, ...]
    relations: tuple[int, ...]

    @property
    def kinds(self) -> tuple[Typed, ...]:
        """The row types of the input: relations, sides, changes of sides, and changes of seeds."""
        return (*self.kept, *self.sides, *self.sides, *self.seeds)

    def ways(self, program: Program) -> DeltaRules:
        """Return the rules that derive rows."""
        may_be_nan = any(map(_has_floats, self.kept))
        return DeltaRules(program.bodies, program.level, len(self.sides), may_be_nan=may_be_nan)

    def of_seeds(self, bags: Sequence[Bag]) -> list[Bag]:
        """Return the changes of seeds, by relation."""
        found = [Counter[Row]() for _ in self.kept]
        for relation, bag in zip(self.relations, bags, strict=True):
            for row, weight in bag.items():
                found[relation][row] += weight
        return found


@dataclass(frozen=True, slots=True)
class WorkerInput:
    """The rows that a worker has received."""

    known: list[dict[Row, DerivationCounts]]
    before: list[Bag]
    changes: list[Bag]
    seeds: list[Bag]


class StoredDerivations:
    """All derivations, in dictionaries: a `Derivations`."""

    def __init__(self, task: RoundsTask, program: Program, given: WorkerInput) -> None:
        self._program, self._given = program, given
        self._ways = task.ways(program)
        self._at: bool | None = None
        changes = zip(given.before, given.changes, strict=True)
        self._after = [positive_rows(add_changes(bag, change)) for bag, change in changes]

    def known(self, relation: int, rows: Iterable[Row]) -> Mapping[Row, DerivationCounts]:
        return self._given.known[relation]

    def readers(self) -> Sequence[Iterable[Row]]:
        """Return, by relation, the rows from before the flush that match a changed row of a
        side."""
        program = self._program
        found: list[dict[Row, None]] = [{} for _ in program.bodies]
        for node, (relation, side) in zip(program.readers, program.reads, strict=True):
            changed, rows = self._given.changes[side], self._given.known[relation]
            if changed and rows:
                found[relation].update(dict.fromkeys(self._matching_rows(node, relation, side)))
        return found

    def _matching_rows(self, node: plan.Node, relation: int, side: int) -> list[Row]:
        """Return the rows of a relation from before the flush that match a changed row of a side,
        by the rule `node`."""
        ways = DeltaRules([node], self._program.level, 1, may_be_nan=False)
        ways.over([dict.fromkeys(self._given.changes[side], 1)])
        return list(ways.derive_rows([list(self._given.known[relation])])[0])

    def derive_rows(self, rows: Sequence[list[Row]], *, before: bool) -> Sequence[Bag]:
        """Return, by relation, the rows that `rows` derive, counted, with the sides before or after
        the change."""
        if self._at is not before:
            self._ways.over(
                [positive_rows(b) for b in self._given.before] if before else self._after
            )
            self._at = before
        return self._ways.derive_rows(rows)


def rounds_changes(
    task: bytes, classes: dict[str, bytes], first: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield how rows and their derivations change.

    Raises `RuntimeError`, made by `worker_error`, if the rules raise.

    Batches have the columns `kind`, the columns `NUMBERS`, and `row0` and so on; the row is in the
    column of its kind.
    """
    adopt_classes(classes)
    of: RoundsTask = pickle.loads(task)
    given = _read_input(of, batches)
    program = load_program(of.program)
    try:
        held = StoredDerivations(of, program, given)
        found = follow_changes(held, of.of_seeds(given.seeds), first, program.limits)
    except (Exception, SystemExit) as error:
        raise worker_error(error) from error
    for relation, some in enumerate(found):
        yield from _derivation_batches(of, relation, some)


def _read_input(of: RoundsTask, batches: Iterable[pa.RecordBatch]) -> WorkerInput:
    """Return the input of the worker: the existing rows with their derivations; the sides before
    the change; the changes of the sides and of the seeds."""
    kinds = of.kinds
    own, sides = len(of.kept), len(of.sides)
    known: list[dict[Row, list[int]]] = [{} for _ in range(own)]
    bags = [Counter[Row]() for _ in kinds[own:]]
    for batch in batches:
        for kind in batch.column("kind").unique().to_pylist():
            some = batch.filter(pc.equal(batch.column("kind"), kind))
            rows = from_arrow(kinds[kind], some.column(f"row{kind}"))
            if kind < own:
                add_derivations(known[kind], rows, some)
                continue
            bag = bags[kind - own]
            for row, weight in zip(rows, some.column("weight").to_pylist(), strict=True):
                bag[row] += weight
    return WorkerInput(
        list(map(existing_rows, known)), bags[:sides], bags[sides : 2 * sides], bags[2 * sides :]
    )


def add_derivations(known: dict[Row, list[int]], rows: Sequence[Row], columns: Any) -> None:
    """Add the derivations of rows to `known`; a row may be in `rows` several times, with a part of
    its derivations each."""
    parts = [columns.column(name).to_pylist() for name in KNOWN]
    for row, *more in zip(rows, *parts, strict=True):
        of = known.get(row)
        if of is None:
            known[row] = more
        else:
            known[row] = [a + b for a, b in zip(of, more, strict=True)]


def existing_rows(known: Mapping[Row, Sequence[int]]) -> dict[Row, DerivationCounts]:
    """Return the derivations of the rows that exist: their round is not 0."""
    return {row: DerivationCounts(*of) for row, of in known.items() if of[-1]}


def change_numbers(changes: Sequence[Change]) -> list[list[int]]:
    """Return the columns of `NUMBERS` of changes."""
    pairs = [(was, now) for _, was, now in changes]
    found = [[bool(now.round) - bool(was.round) for was, now in pairs]]
    found += [[now[place] - was[place] for was, now in pairs] for place in range(len(KNOWN))]
    return found


def _derivation_batches(
    of: RoundsTask, relation: int, some: list[Change]
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a relation in batches of `ROWS`; the columns of the other relations are
    null."""
    kept = of.kept[relation]
    for start in range(0, len(some), ROWS):
        part = some[start : start + ROWS]
        rows = arrow_rows(kept, [row for row, *_ in part])
        columns = [pa.array([relation] * len(part), pa.int32())]
        columns += [pa.array(values, pa.int64()) for values in change_numbers(part)]
        for place, other in enumerate(of.kept):
            own = place == relation
            columns.append(rows if own else pa.nulls(len(part), arrow_type(other)))
        names = ["kind", *NUMBERS, *(f"row{place}" for place in range(len(of.kept)))]
        yield pa.record_batch(columns, names)


def add_changes(bag: Bag, change: Bag) -> Bag:
    """Return the sum of both bags, as a new one; `bag` itself if `change` is empty."""
    if not change:
        return bag
    found = Counter(bag)
    for row, weight in change.items():
        found[row] += weight
    return found


def positive_rows(bag: Bag) -> Bag:
    """Return the rows with positive weights, with these weights."""
    return Counter({row: weight for row, weight in bag.items() if weight > 0})


def _has_floats(of: Typed) -> bool:
    """Return True if rows of a type may contain a float, and so a NaN."""
    if isinstance(of, Record):
        return any(map(_has_floats, of.fields))
    return not isinstance(of, Plain) or of.kind is float


@lru_cache(maxsize=16)
def load_program(data: bytes) -> Program:
    """Return the program of a task."""
    found: Program = pickle.loads(data)
    return found


MOST_SHOWN = 3


class DerivationCounts(NamedTuple):
    """The derivations of a row; its round is 0 if it does not exist."""

    derivations: int
    founded: int
    round: int


NOT_THERE = DerivationCounts(0, 0, 0)
_DERIVATIONS, _FOUNDED, _ROUND = range(3)


class Derivations(Protocol):
    """The source of derivations: the rules of a recursion, and the stored derivations of rows."""

    def known(self, relation: int, rows: Iterable[Row]) -> Mapping[Row, DerivationCounts]:
        """Return the stored derivations of rows, without rows that do not exist."""
        ...

    def readers(self) -> Sequence[Iterable[Row]]:
        """Return, by relation, the rows from before the flush that match a changed row of a side,
        and perhaps others."""
        ...

    def derive_rows(self, rows: Sequence[list[Row]], *, before: bool) -> Sequence[Bag]:
        """Return the rows of each relation that some rows derive, with their counts; with the rows
        of the sides from before the flush, or from after it."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum number of rounds, and the names of the relations for an error."""

    names: tuple[str, ...]
    most: int | None


Change = tuple[Row, DerivationCounts, DerivationCounts]
"""A row with its old and its new derivations."""


def follow_changes(
    of: Derivations, seeds: Sequence[Bag], first: int, limits: Limits
) -> list[list[Change]]:
    """Return how the derivations of the rows of each relation change.

    Parameters
    ----------
    seeds: the changes of the rows of each relation that are derived from inputs alone.
    first: the number of the first round, larger than the rounds of all rows.

    Raises
    ------
    FixpointError: rows still enter after `limits.most` rounds.
    """
    following = _ChangeFollower(of, len(limits.names))
    following.inputs_change(seeds)
    following.leave()
    following.enter(first, limits)
    return following.changes()


class _ChangeFollower:
    """Follow one change of the inputs: `inputs_change`, then `leave`, then `enter`.

    `_now` and `_was` are the looked-up derivations of rows, after and before the change.
    """

    def __init__(self, of: Derivations, relations: int) -> None:
        self._of = of
        self._now: list[dict[Row, list[int]]] = [{} for _ in range(relations)]
        self._was: list[dict[Row, DerivationCounts]] = [{} for _ in range(relations)]
        self._doubtful: list[set[Row]] = [set() for _ in range(relations)]
        """Existing rows that may have no founded derivation left."""
        self._waiting: list[dict[Row, None]] = [{} for _ in range(relations)]
        """Absent rows whose derivations have changed."""

    def inputs_change(self, seeds: Sequence[Bag]) -> None:
        """Count the derivations that rows of the inputs add and remove."""
        self._count(seeds, 0, 1)
        readers = [list(rows) for rows in self._of.readers()]
        for since, rows in self._by_round(readers).items():
            before = self._of.derive_rows(rows, before=True)
            found = self._of.derive_rows(rows, before=False)
            for bag, less in zip(found, before, strict=True):
                bag.subtract(less)
            self._count(found, since, 1)

    def leave(self) -> None:
        """Remove rows without a founded derivation, and the derivations from them."""
        while any(self._doubtful):
            doubtful, self._doubtful = self._doubtful, [set() for _ in self._doubtful]
            pairs = zip(self._now, doubtful, strict=True)
            leaving = [[row for row in rows if _has_to_leave(now[row])] for now, rows in pairs]
            by_round = self._by_round(leaving)
            for now, rows, waiting in zip(self._now, leaving, self._waiting, strict=True):
                for row in rows:
                    now[row][_ROUND] = 0
                waiting.update(dict.fromkeys(rows))
            for since, some in by_round.items():
                self._count(self._of.derive_rows(some, before=False), since, -1)

    def enter(self, first: int, limits: Limits) -> None:
        """Insert derived rows, round after round.

        Raises `FixpointError` after `limits.most` rounds.
        """
        number = first
        while True:
            waiting, self._waiting = self._waiting, [{} for _ in self._waiting]
            pairs = zip(self._now, waiting, strict=True)
            entering = [[row for row in rows if _may_enter(now[row])] for now, rows in pairs]
            if not any(entering):
                return
            if limits.most is not None and number - first >= limits.most:
                raise _endless_error(limits, entering)
            for now, rows in zip(self._now, entering, strict=True):
                for row in rows:
                    of = now[row]
                    of[_FOUNDED], of[_ROUND] = of[_DERIVATIONS], number
            self._count(self._of.derive_rows(entering, before=False), number, 1)
            number += 1

    def changes(self) -> list[list[Change]]:
        """Return the derivations of rows that differ from the stored ones."""
        return [
            [
                (row, was[row], after)
                for row, of in now.items()
                if (after := DerivationCounts(*of) if of[_ROUND] else NOT_THERE) != was[row]
            ]
            for now, was in zip(self._now, self._was, strict=True)
        ]

    def _by_round(self, rows: Sequence[list[Row]]) -> dict[int, list[list[Row]]]:
        """Group rows by the round of their insertion, and by relation."""
        found: dict[int, list[list[Row]]] = defaultdict(lambda: [[] for _ in self._now])
        for relation, some in enumerate(rows):
            self._look_up(relation, some)
            now = self._now[relation]
            for row in some:
                found[now[row][_ROUND]][relation].append(row)
        return found

    def _count(self, found: Sequence[Bag], since: int, sign: int) -> None:
        """Add derivations from rows of one round; `sign` is -1 to remove them."""
        for relation, bag in enumerate(found):
            self._look_up(relation, bag)
            now, waiting = self._now[relation], self._waiting[relation]
            doubtful = self._doubtful[relation]
            for row, count in bag.items():
                of = now[row]
                of[_DERIVATIONS] += sign * count
                if not of[_ROUND]:
                    waiting[row] = None
                elif since < of[_ROUND]:
                    of[_FOUNDED] += sign * count
                    if of[_FOUNDED] < 1:
                        doubtful.add(row)

    def _look_up(self, relation: int, rows: Iterable[Row]) -> None:
        """Look up the derivations of new rows."""
        now, was = self._now[relation], self._was[relation]
        new = [row for row in rows if row not in now]
        if new:
            known = self._of.known(relation, new)
            for row in new:
                was[row] = found = known.get(row, NOT_THERE)
                now[row] = list(found)


def _has_to_leave(of: list[int]) -> bool:
    return bool(of[_ROUND]) and of[_FOUNDED] < 1


def _may_enter(of: list[int]) -> bool:
    return not of[_ROUND] and of[_DERIVATIONS] > 0


def _endless_error(limits: Limits, entering: Sequence[list[Row]]) -> FixpointError:
    """Return the error for a fixpoint that exceeds its rounds, with some of the rows `entering`."""
    rows = [row for some in entering for row in some]
    shown = ", ".join(f"{row!r:.60}" for row in rows[:MOST_SHOWN])
    return FixpointError(
        f"fixpoint {', '.join(map(repr, limits.names))} has not come to an end after "
        f"{limits.most} rounds\n"
        f"  rows that still arrive: {shown}{', ...' * (len(rows) > MOST_SHOWN)}\n"
        "  bound what the step makes of a row, or raise max_rounds="
    )


class DeltaRules:
    """The rules of some relations, over these relations and then sides.

    Parameters
    ----------
    bodies: the rules of each relation; None for a relation without rules.
    may_be_nan: True if rows may contain a NaN; stored rows use one NaN object.
    """

    def __init__(
        self, bodies: Sequence[plan.Node | None], level: Any, sides: int, *, may_be_nan: bool
    ) -> None:
        self._own, self._level = len(bodies), level
        self._places = [place for place, body in enumerate(bodies) if body is not None]
        self._bodies = [body for body in bodies if body is not None]
        self._quick = compile_whole_round(self._bodies, self._own + sides, self._own)
        self._as_kept: Callable[[Row], Row] | None = canonical if may_be_nan else None
        self._sides: Sequence[Mapping[Row, int]] = ()

    def over(self, sides: Sequence[Mapping[Row, int]]) -> None:
        """Set the rows of the sides."""
        self._sides = sides
        if self._quick is not None:
            for place, bag in enumerate(sides, self._own):
                self._quick.begin(place, list(Counter(bag).elements()))

    def derive_rows(self, rows: Sequence[list[Row]]) -> list[Bag]:
        """Return the rows of each relation that rows derive, with their counts."""
        found = [Counter[Row]() for _ in range(self._own)]
        for place, made in zip(self._places, self._derive(rows), strict=True):
            found[place] = made
        return found

    def _derive(self, rows: Sequence[list[Row]]) -> list[Bag]:
        """Return the rows that `rows` derive, by relation: by generated loops, or, if these raise
        or there are none, by plain evaluation, whose exceptions are raised."""
        if self._quick is not None:
            try:
                made = self._quick.round(rows)
            except Exception as error:  # plain evaluation decides whether it counts
                reraise_asynchronous(error)
            else:
                return [Counter(self._canonical_rows(some)) for some in made]
        bags = [Counter(some) for some in rows] + [Counter(side) for side in self._sides]
        given = {(self._level, place): bag for place, bag in enumerate(bags)}
        return [evaluate_part(body, given) for body in self._bodies]

    def _canonical_rows(self, rows: list[Row]) -> Any:
        return rows if self._as_kept is None else map(self._as_kept, rows)
