"""Recursion evaluated from scratch, semi-naively: each round follows the changes of the last one.

    reach = edges U select(join(reach, edges))

    round     1         2                         3
    change    edges     select(join(c1, edges))   select(join(c2, edges))    ... until there is none

After each round the relations equal a recomputation of their bodies, for bodies of any kind: rows
may also be deleted, as when one is beaten (`keep=`). Relations outside the recursion change in the
first round only. An inner fixpoint continues from its last state.

State: `changes.py`.
Cost:  that of the changes, and one look at each part per round.
Source: [dbsp] section 4, semi-naive evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from optimizer import plan
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.row_fields import with_field
from reactive.engine.collections.sorting import Rank, ranker
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.reference.asking import inputs_of, reads, relations_asked
from reactive.engine.reference.bags import Bag, Of, apply_changes, bag_delta, caller, make_bag, net
from reactive.engine.reference.changes import change_of_node
from reactive.engine.reference.parts import Constant, InputRows, NodeChange
from reactive.engine.runtime.progress import SILENT, Progress
from reactive.errors import FixpointError

RECURSIONS = (plan.Fixpoint, plan.Component, plan.Iterate)
Place = tuple[Any, int]
"""A recursive relation: the level of its definition, and its index in that definition."""
Changes = Mapping[Place, Bag]
Known = Mapping[Place, NodeChange]
"""The parts that stand for recursive relations."""


def least_fixpoint(node: plan.Fixpoint, outside: Of, progress: Progress = SILENT) -> list[Bag]:
    """Return all relations of a fixpoint, starting empty; `outside` returns rows of other nodes."""
    return _Fixpoint(node, outside, (), progress).follow({})


def iterate_bodies(node: plan.Iterate, outside: Of, progress: Progress = SILENT) -> list[Bag]:
    """Return the rows of the relations after all rounds.

    These are `times` rounds, or rounds until no change is passed on; raises `FixpointError` if
    that takes more than `max_rounds`.
    """
    rows = [outside(start) for start in node.starts]
    if node.times == 0:
        return rows
    own = [(node.level, index) for index in range(len(rows))]
    circuit = _Circuit(node.bodies, outside, own)
    tolerances = node.tolerances if node.times is None else ()
    made = list(map(Bag, circuit.step(dict(zip(own, rows, strict=True)))))
    rows, changes = _passed_on(rows, made, tolerances, node.starts)
    for number in range(1, node.max_rounds if node.times is None else node.times):
        if not any(changes):
            return rows
        progress.round(node.names[0], number)
        _all_grown(made, circuit.step(dict(zip(own, changes, strict=True))))
        rows, changes = _passed_on(rows, made, tolerances, node.starts)
    if node.times is None and any(changes):
        names = ", ".join(map(repr, node.names))
        raise FixpointError(f"iterate {names} has not settled after {node.max_rounds} rounds")
    return rows


def _passed_on(
    before: list[Bag],
    made: list[Bag],
    tolerances: Sequence[plan.Tolerance | None],
    starts: Sequence[plan.Node],
) -> tuple[list[Bag], list[Bag]]:
    """Return the rows that the next round starts with, and how they differ from the last ones."""
    rows = [make_bag(bag) for bag in made]
    for index, tolerance in enumerate(tolerances):
        if tolerance is not None:
            rows[index] = _keep_near_rows(tolerance, before[index], made[index], starts[index])
    return rows, [bag_delta(now, was) for now, was in zip(rows, before, strict=True)]


def _keep_near_rows(tolerance: plan.Tolerance, before: Bag, made: Bag, start: plan.Node) -> Bag:
    """Replace rows whose value has hardly changed by their previous rows."""
    value, key = caller(tolerance.value, start), caller(tolerance.by, start)
    known = {key(row): row for row in before}
    rows = Bag()
    for row, weight in made.items():
        old = known.get(key(row), row)
        is_near = old is not row and abs(value(row) - value(old)) < tolerance.least
        rows[old if is_near else row] += weight
    return rows


class _Fixpoint:
    """The relations of a fixpoint, which continue from their last state.

    After deletions, other rows may still be derived from the deleted rows: then all is recomputed;
    so also where one row of each key is kept.
    """

    def __init__(
        self, node: plan.Fixpoint, outside: Of, around: Iterable[Place], progress: Progress
    ) -> None:
        self._node = node
        self._outside = outside
        self._around = {place: Bag() for place in around}
        self._progress = progress
        self._begin()

    def follow(self, changes: Changes) -> list[Bag]:
        """Return the changes of the relations, given the changes of the relations around."""
        for place, change in changes.items():
            apply_changes(self._around[place], change)
        if not self._has_begun:
            return self._rounds(changes)
        if not any(changes.values()):
            return [Bag() for _ in self._relations]
        if any(self._node.best) or _shrinks(changes.values()):
            return self._recompute()
        found = self._rounds(changes)
        return found if not _shrinks(found) else _all_grown(found, self._recompute())

    def _begin(self) -> None:
        """Start again, with all relations empty."""
        own = [(self._node.level, index) for index in range(len(self._node.bodies))]
        self._circuit = _Circuit(self._node.bodies, self._outside, (*self._around, *own))
        self._relations = [relation_change(best) for best in self._node.best]
        self._rows = [Bag() for _ in own]
        self._has_begun = False

    def _recompute(self) -> list[Bag]:
        """Run all rounds again, and return the changes from the rows before."""
        before = self._rows
        self._begin()
        self._rounds(self._around)
        return [bag_delta(rows, was) for rows, was in zip(self._rows, before, strict=True)]

    def _rounds(self, changes: Changes) -> list[Bag]:
        """Follow changes until there are none; return the total changes of the relations.

        Raises `FixpointError` after too many rounds.
        """
        self._has_begun = True
        totals = [Bag() for _ in self._rows]
        most = self._node.max_rounds
        for number in count() if most is None else range(most + 2):
            self._progress.round(self._node.names[0], number)
            made = self._circuit.step(changes)
            found = [
                relation.take(change)
                for relation, change in zip(self._relations, made, strict=True)
            ]
            if not any(found):
                self._check_settled()
                return totals
            _all_grown(totals, found)
            _all_grown(self._rows, found)
            changes = {(self._node.level, index): change for index, change in enumerate(found)}
        raise FixpointError(f"fixpoint {', '.join(self._node.names)} does not come to an end")

    def _check_settled(self) -> None:
        """Raise `FixpointError` if a value is not the join of the values that are derived."""
        for name, relation in zip(self._node.names, self._relations, strict=True):
            if isinstance(relation, _JoinedRows) and not relation.is_settled():
                raise FixpointError(f"fixpoint {name!r} is not monotone")


def _all_grown(bags: list[Bag], changes: list[Bag]) -> list[Bag]:
    """Add changes to bags in place, and return the bags."""
    for bag, change in zip(bags, changes, strict=True):
        apply_changes(bag, change)
    return bags


def _shrinks(changes: Iterable[Bag]) -> bool:
    return any(weight < 0 for change in changes for weight in change.values())


def relation_change(
    best: plan.Best | plan.JoinedValue | None,
) -> _DistinctRows | _BestRows | _JoinedRows:
    """Return what makes the change of a relation of the change of its body."""
    if isinstance(best, plan.JoinedValue):
        return _JoinedRows(best)
    return _DistinctRows() if best is None else _BestRows(best)


class _DistinctRows:
    """A relation that has each row once."""

    def __init__(self) -> None:
        self._derived = Bag()

    def take(self, change: Bag) -> Bag:
        """Add derivations of rows; return the rows that now have a first one, or none."""
        found, derived = Bag(), self._derived
        for row, weight in change.items():
            before = derived.get(row, 0)
            if (before > 0) != (before + weight > 0):
                found[row] = 1 if weight > 0 else -1
        apply_changes(derived, change)
        return found


class _BestRows:
    """A relation with the best row of each key; a beaten row is never restored."""

    def __init__(self, best: plan.Best) -> None:
        self._rank = ranker(callable_of(best.value), largest=best.largest)
        self._key = callable_of(best.by)
        self._best: dict[Any, tuple[Rank, Row]] = {}

    def take(self, change: Bag) -> Bag:
        """Compare new rows with the best of their keys; return the change. Ignores deletions."""
        found = Bag()
        for row, weight in change.items():
            if weight > 0:
                self._compare(canonical(self._key(row)), self._rank(row), row, found)
        return net(found)

    def _compare(self, key: Any, rank: Rank, row: Row, found: Bag) -> None:
        """Make a row the best of its key if it is better; add what changes to `found`."""
        held = self._best.get(key)
        if held is not None and not rank < held[0]:
            return
        if held is not None:
            found[held[1]] -= 1
        self._best[key] = rank, row
        found[row] += 1


class _JoinedRows:
    """A relation with one row per key: the join of all values that were derived for it."""

    def __init__(self, best: plan.JoinedValue) -> None:
        self._key, self._value = callable_of(best.by), callable_of(best.value)
        self._field, self._lattice = best.name, best.lattice
        self._rows: dict[Any, Row] = {}
        self._derived = Bag()

    def take(self, change: Bag) -> Bag:
        """Join new rows with the rows of their keys; return the change. Values never fall."""
        found = Bag()
        for row, weight in change.items():
            if weight > 0 and not self._is_bottom(row):
                self._join(canonical(self._key(row)), row, found)
        apply_changes(self._derived, change)
        return net(found)

    def is_settled(self) -> bool:
        """Return True if each row is the join of the rows that are derived for its key now."""
        now = _JoinedRows.__new__(_JoinedRows)
        now._key, now._value, now._field = self._key, self._value, self._field
        now._lattice, now._rows, now._derived = self._lattice, {}, Bag()
        now.take(Bag({row: 1 for row, weight in self._derived.items() if weight > 0}))
        return now._rows == self._rows

    def _is_bottom(self, row: Row) -> bool:
        bottom = self._lattice.bottom
        return bottom is not None and bool(self._value(row) == bottom)

    def _join(self, key: Any, row: Row, found: Bag) -> None:
        """Join a row with the row of its key; add what changes to `found`."""
        held, value, lattice = self._rows.get(key), self._value(row), self._lattice
        if held is not None:
            value = lattice.join(self._value(held), value)
        if lattice.widen is not None and (lattice.widen_at is None or lattice.widen_at(row)):
            value = lattice.widen(value)
        made = with_field(row, self._field, canonical(value))
        if made == held:
            return
        if held is not None:
            found[held] -= 1
        self._rows[key] = made
        found[made] += 1


class _InnerFixpoint:
    """A fixpoint inside another recursion."""

    def __init__(self, fixpoint: _Fixpoint, around: Known) -> None:
        self.changes: list[Bag] = []
        self.change = Bag()
        self._fixpoint = fixpoint
        self._around = around

    def step(self) -> None:
        around = {place: part.change for place, part in self._around.items()}
        self.changes = self._fixpoint.follow(around)


class _Component:
    """One of the relations of a fixpoint inside another recursion."""

    def __init__(self, inner: _InnerFixpoint, index: int) -> None:
        self.change = Bag()
        self._inner = inner
        self._index = index

    def step(self) -> None:
        self.change = self._inner.changes[self._index]


class _Circuit:
    """The parts of some bodies, in topological order."""

    def __init__(self, bodies: Sequence[plan.Node], outside: Of, places: Iterable[Place]) -> None:
        self._outside = outside
        self._parts: list[NodeChange] = []
        self._made: dict[Any, NodeChange] = {}
        self._given = {place: InputRows() for place in places}
        self._parts.extend(self._given.values())
        self._bodies = [self._body(body, self._given) for body in bodies]

    def step(self, changes: Changes) -> list[Bag]:
        """Return the changes of the bodies, given the changes of the recursive relations."""
        for place, change in changes.items():
            self._given[place].following = change
        for part in self._parts:
            part.step()
        return [body.change for body in self._bodies]

    def _body(self, root: plan.Node, known: Known) -> NodeChange:
        """Return the part of a node; create the parts of all nodes below it first."""
        waiting = [(root, False)]
        while waiting:
            node, is_complete = waiting.pop()
            key = _part_key(node, known)
            if key in self._made:
                continue
            if is_complete or isinstance(node, RECURSIONS) or _is_outside(node, known):
                self._made[key] = self._part(node, known)
            else:
                waiting.append((node, True))
                sources = (*inputs_of(node), *relations_asked(node))
                waiting.extend((source, False) for source in reversed(sources))
        return self._made[_part_key(root, known)]

    def _part(self, node: plan.Node, known: Known) -> NodeChange:
        """Return the part that computes a node; `known` has the recursions around it."""
        if _is_outside(node, known):
            return self._put(Constant(self._outside(node)))
        match node:
            case plan.Recursive(level, index):
                return known[level, index]
            case plan.Fixpoint():
                return self._component(node, 0, known)
            case plan.Component(plan.Iterate() as iterate, index):
                return self._rounds(iterate, known)[index]
            case plan.Component(plan.Fixpoint() as fixpoint, index):
                return self._component(fixpoint, index, known)
            case plan.Iterate():
                return self._rounds(node, known)[0]
            case _:
                sources = [self._made[_part_key(source, known)] for source in inputs_of(node)]
                asked = {id(s): self._made[_part_key(s, known)] for s in relations_asked(node)}
                return self._put(change_of_node(node, sources, asked))

    def _rounds(self, node: plan.Iterate, known: Known) -> list[NodeChange]:
        """Return the parts of an iteration inside another recursion, unrolled."""
        assert node.times is not None
        rows = [self._body(start, known) for start in node.starts]
        for _ in range(node.times):
            given = {(node.level, index): part for index, part in enumerate(rows)}
            rows = [self._body(body, {**known, **given}) for body in node.bodies]
        return rows

    def _component(self, node: plan.Fixpoint, index: int, known: Known) -> NodeChange:
        """Return the part of one relation of an inner fixpoint, which is made once."""
        key = "inner", _part_key(node, known)
        inner = self._made.get(key)
        if inner is None:
            around = {place: part for place, part in known.items() if place[0] in reads(node)}
            fixpoint = _Fixpoint(node, self._outside, around, SILENT)
            inner = self._made[key] = self._put(_InnerFixpoint(fixpoint, around))
        assert isinstance(inner, _InnerFixpoint)
        return self._put(_Component(inner, index))

    def _put(self, part: NodeChange) -> NodeChange:
        """Append a part to the circuit, and return it."""
        self._parts.append(part)
        return part


def _is_outside(node: plan.Node, known: Known) -> bool:
    """Return True if a node reads none of the changing relations."""
    read = reads(node)
    return not any(level in read for level, _ in known)


def _part_key(node: plan.Node, known: Known) -> Any:
    """Return the key of a node: it, and the parts of the relations that it reads in this round."""
    read = reads(node)
    return id(node), *(id(part) for (level, _), part in known.items() if level in read)
