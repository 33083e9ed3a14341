"""Delta rules: each clause of a recursion as an operator that derives rows.

    BaseRule       from inputs alone
    UnaryRule      from one recursive row
    BinaryRule     from a pair of rows, one or both of them recursive
    CountingRule   the same, as often as the rows of the input occur
    NegatedRule    from a recursive row that no row of an input matches
    GroupedRule    from a recursive row, and an aggregate of the input rows that match it

A rule emits derivations: pairs of a row and, as weight, the latest round of the recursive rows that
it was derived from, negative for a removed derivation. Rows that enter a relation arrive as a
`UniformDelta` whose weight is the current round, and so do the derivations from them.

Generated loops (`loops.py`) run first; if they raise, the code here repeats their work row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from reactive.engine.collections.index import Index, KeyedPair
from reactive.engine.collections.zset import Pair, Pairs, Row, consolidate
from reactive.engine.operators.fixpoint.derivations import GIVEN
from reactive.engine.operators.fixpoint.loops import (
    BinaryLoops,
    Derived,
    Entering,
    Moved,
    Partners,
    RecursiveIndex,
    UnaryLoops,
)
from reactive.engine.operators.fixpoint.recursive_relation import RecursiveRelation
from reactive.engine.operators.index_by import IndexBy

Chain = Callable[[Sequence[Pair]], Sequence[Pair]]
"""Applies a chain of linear operators to pairs; weights stay as they are."""
Keyed = Sequence[KeyedPair]
Side = RecursiveIndex | IndexBy
"""A recursive or an input side of a join."""


def presence_changes(index: Index, keyed: Keyed) -> Keyed:
    """Return the rows of a delta, already applied to `index`, that appeared (1) or disappeared
    (-1).

    >>> index = Index()
    >>> for row, weight in (("a", 2), ("b", 1)):
    ...     index.add(1, row, weight)
    >>> presence_changes(index, [(1, ("a", 1)), (1, ("b", 1)), (1, ("c", -1))])
    [(1, ('b', 1)), (1, ('c', -1))]
    """
    if len(keyed) == 1:
        ((key, (row, change)),) = keyed
        now = index.weight(key, row)
        if (now > 0) == (now - change > 0):
            return ()
        return keyed if change in (1, -1) else [(key, (row, 1 if now > 0 else -1))]
    keys = {pair[0]: key for key, pair in keyed}
    out: list[KeyedPair] = []
    for row, change in consolidate([pair for _, pair in keyed]):
        key = keys[row]
        now = index.weight(key, row)
        if (now > 0) != (now - change > 0):
            out.append((key, (row, 1 if now > 0 else -1)))
    return out


class BaseRule:
    """Derive each input row, with its weight as number of derivations.

    >>> BaseRule(0).derive_from_input([("a", 2), ("b", -1)])
    [('a', 1), ('a', 1), ('b', -1)]
    """

    __slots__ = ("head",)

    def __init__(self, head: int) -> None:
        self.head = head

    def derive_from_input(self, delta: Pairs) -> list[Pair]:
        """Return the derivations of changed input rows: a row of weight n is derived n times."""
        out: list[Pair] = []
        for row, weight in delta:
            derivation = (row, GIVEN if weight > 0 else -GIVEN)
            out += [derivation] * abs(weight)
        return out


class UnaryRule:
    """Derive rows from one relation, through a chain."""

    __slots__ = ("_chain", "_loops", "head", "touched")

    def __init__(self, head: int, chain: Chain, loops: UnaryLoops | None) -> None:
        self.head = head
        self._chain = chain
        self._loops = loops
        self.touched = 0

    def sources(self) -> list[str]:
        """Return the code of the generated loops."""
        return [] if self._loops is None else self._loops.sources()

    def derive_moves(self, side: int, moves: Moved, *, later: bool) -> Derived | None:
        """Return the derivations of rows that leave and of rows that enter; None if the loops
        cannot run."""
        if self._loops is None:
            return None
        self.touched += len(moves[0]) + len(moves[1]) + len(moves[2])
        return self._loops.run_moves(moves)

    def entering(self, side: int) -> Entering | None:
        """Return the loop over rows that enter; None if there is none."""
        return None if self._loops is None else self._loops.entering()

    def from_left(self, delta: Pairs) -> Pairs:
        """Return the derivations of changed recursive rows, by the loop or the plain chain."""
        self.touched += len(delta)
        out = None if self._loops is None else self._loops.run(delta)
        return self._chain(delta) if out is None else out


class BinaryRule:
    """Derive rows from the pairs of a join, through a chain; one side at least is recursive.

    An input row counts once, whatever its weight; `is_set` if all weights are 1 anyway.
    """

    __slots__ = (
        *("_bindings", "_chain", "_is_set", "_join", "_loops", "_touched"),
        *("head", "left", "right"),
    )

    def __init__(
        self,
        head: int,
        join: Any,
        chain: Chain,
        sides: tuple[Side, Side],
        loops: tuple[BinaryLoops | None, BinaryLoops | None],
        bindings: int,
        *,
        is_set: bool,
    ) -> None:
        self.head = head
        self.left, self.right = sides
        self._is_set = is_set
        self._join = join
        self._chain = chain
        self._loops = loops
        self._bindings = bindings
        self._touched = 0

    @property
    def touched(self) -> int:
        touched: int = self._join.touched + self._touched
        return touched + sum([loops.touched for loops in self._loops if loops is not None])

    def sources(self) -> list[str]:
        """Return the code of the generated loops."""
        return [text for loops in self._loops if loops is not None for text in loops.sources()]

    def derive_from_input(self, keyed: Keyed) -> Pairs:
        """Return the derivations from changes of the side that is an input.

        Return () while the recursive side is empty.
        """
        is_left = isinstance(self.right, RecursiveIndex)
        mine, others = (self.right, self.left) if is_left else (self.left, self.right)
        assert isinstance(mine, RecursiveIndex) and isinstance(others, IndexBy)
        if not mine.index_by.index.rows:
            return ()
        if not self._is_set:
            keyed = presence_changes(others.index, keyed)
        loops = self._loops[is_left]
        out = None if loops is None else loops.derive_from_input(keyed)
        if out is None:
            return self._plain(*((keyed, ()) if is_left else ((), keyed)))
        self._touched += len(keyed) + len(out)
        return out

    def from_left(self, delta: Pairs) -> Pairs:
        """Return the derivations from left rows that enter or leave, with the current right
        side."""
        return self._from(0, self.left, delta)

    def from_right(self, delta: Pairs) -> Pairs:
        """Return the derivations from right rows that enter or leave, with the current left
        side."""
        return self._from(1, self.right, delta)

    def derive_moves(self, side: int, moves: Moved, *, later: bool) -> Derived | None:
        """Return the derivations of rows of one side that leave and that enter; None if the loops
        cannot run.

        `later` says that partners may be of a later round than the rows that enter.
        """
        loops = self._loops[side]
        return None if loops is None else loops.run_moves(moves, later=later)

    def entering(self, side: int) -> Entering | None:
        """Return the loop over rows of one side that enter; None if it cannot run."""
        loops = self._loops[side]
        return None if loops is None else loops.entering()

    def _from(self, side: int, recursive_index: Side, delta: Pairs) -> Pairs:
        """Return the derivations of changed rows of one side, by its loop if that can run."""
        assert isinstance(recursive_index, RecursiveIndex)
        loops = self._loops[side]
        out = None if loops is None else loops.run(delta)
        if out is None:
            keyed = recursive_index.add_keys(delta)
            return self._plain(*((keyed, ()) if side == 0 else ((), keyed)))
        self._touched += len(delta) + len(out)
        return out

    def _plain(self, left: Keyed, right: Keyed) -> Pairs:
        """Return the derivations of keyed rows by the plain join: pairs with their rounds."""
        return self._chain(
            [
                (row, self._since(row) if weight > 0 else -self._since(row))
                for row, weight in self._join.step(left, right)
            ]
        )

    def _since(self, row: Row) -> int:
        """Return the later round of the two rows of a pair."""
        left = right = 0
        if isinstance(self.left, RecursiveIndex):
            left = self.left.relation.since(row[0] if self._bindings == 1 else row[:-1])
        if isinstance(self.right, RecursiveIndex):
            right = self.right.relation.since(row[-1])
        return max(left, right)


class CountingRule(BinaryRule):
    """Derive each pair as often as its input row occurs, for aggregates of the pairs."""

    __slots__ = ()

    def derive_from_input(self, keyed: Keyed) -> Pairs:
        """Return the derivations from changes of the side that is an input."""
        mine = self.right if isinstance(self.right, RecursiveIndex) else self.left
        if not mine.index_by.index.rows:  # type: ignore[union-attr]
            return ()
        return self._plain(*((keyed, ()) if mine is self.right else ((), keyed)))

    def _from(self, side: int, recursive_index: Side, delta: Pairs) -> Pairs:
        assert isinstance(recursive_index, RecursiveIndex)
        changes = [(row, 1 if since > 0 else -1) for row, since in delta]
        keyed = recursive_index.add_keys(changes)
        return self._plain(*((keyed, ()) if side == 0 else ((), keyed)))

    def _plain(self, left: Keyed, right: Keyed) -> Pairs:
        """Return the derivations of keyed rows, with the weights of input rows."""
        is_counted = not (
            isinstance(self.left, RecursiveIndex) and isinstance(self.right, RecursiveIndex)
        )
        out: list[Pair] = []
        for row, weight in self._join.step(left, right):
            since = self._since(row)
            derivation = (row, since if weight > 0 else -since)
            out += [derivation] * (abs(weight) if is_counted else 1)
        return self._chain(out)


class _RuleOfPartners:
    """Derive rows from a relation and the input rows that match them, through a chain."""

    __slots__ = ("_chain", "_partners", "head", "left", "right")

    def __init__(self, head: int, chain: Chain, partners: Partners) -> None:
        self.head = head
        self.left, self.right = partners.left, partners.right
        self._chain = chain
        self._partners = partners

    @property
    def touched(self) -> int:
        return self._partners.touched

    def sources(self) -> list[str]:
        """Return an empty list: there are no generated loops."""
        return []

    def derive_moves(self, side: int, moves: Moved, *, later: bool) -> Derived | None:
        """Return None: there are no loops."""
        return None

    def entering(self, side: int) -> Entering | None:
        """Return None: there are no loops."""
        return None

    def hide_delta(self, keyed: Keyed) -> AbstractContextManager[None]:
        """Hide the delta `keyed`, already applied to the input, inside the context."""
        return self._partners.hide_delta(keyed)


class NegatedRule(_RuleOfPartners):
    """Derive the rows of a relation that no input row matches, through a chain.

    Cost: O(changed rows of the relation + their candidates); for changed input rows, the candidates
    of every relation row that they match.
    """

    __slots__ = ("_loops",)

    def __init__(
        self, head: int, chain: Chain, partners: Partners, loops: UnaryLoops | None
    ) -> None:
        super().__init__(head, chain, partners)
        self._loops = loops

    def sources(self) -> list[str]:
        """Return the code of the generated loops."""
        return [] if self._loops is None else self._loops.sources()

    def derive_moves(self, side: int, moves: Moved, *, later: bool) -> Derived | None:
        """Return the derivations of rows that leave and of rows that enter; None if the loops
        cannot run."""
        loops, find = self._loops, self._partners.unmatched_rows
        if loops is None:
            return None
        gone, came, late, now = moves
        kept = [find(rows) if rows else () for rows in ([row for row, _ in gone], came, late)]
        lost, new, risen = kept
        if lost is None or new is None or risen is None:
            return None
        if len(lost) == len(gone):
            return loops.run_moves((gone, new, risen, now))
        since = self.left.relation.since
        return loops.run_moves(([(row, -since(row)) for row in lost], new, risen, now))

    def entering(self, side: int) -> Entering | None:
        """Return the loop over rows that enter; None if it cannot run."""
        find = self._partners.finds_unmatched()
        if find is None or self._loops is None:
            return None
        loop = self._loops.entering()
        return lambda rows: loop(kept) if (kept := find(rows)) else ()

    def from_left(self, delta: Pairs) -> Pairs:
        """Return the derivations of changed recursive rows that no input row matches."""
        unmatched = self._partners.unmatched(delta)
        if unmatched is not None:
            out = None if self._loops is None or not unmatched else self._loops.run(unmatched)
            return self._chain(unmatched) if out is None else out
        keyed = self.left.add_keys(delta)
        partners = self._partners.find_partners_before(())
        since = self.left.relation.since
        made: list[Pair] = []
        for key, (row, weight) in keyed:
            if not partners(key, row):
                made.append((row, since(row) if weight > 0 else -since(row)))
        return self._chain(made)

    def derive_from_input(self, keyed: Keyed) -> Pairs:
        """Return the rows that lose their last partner, or get a first one."""
        candidates = self._partners.find_candidates(keyed)
        if not candidates:
            return ()
        before, now = (
            self._partners.find_partners_before(keyed),
            self._partners.find_partners_before(()),
        )
        out: list[Pair] = []
        for row, key in candidates:
            was, is_matched = bool(before(key, row)), bool(now(key, row))
            if was != is_matched:
                since = self.left.relation.since(row)
                out.append((row, -since if is_matched else since))
        return self._chain(out)


class GroupedRule(_RuleOfPartners):
    """Derive rows of a relation, each with an aggregate of the input rows that match it.

    `group` returns the aggregate row of a relation row and its partners, or no row. The aggregate
    is recomputed whenever a partner changes.

    State: none.
    Cost: O(partners of changed rows of the relation); for changed input rows, the partners of every
    relation row that they match.
    """

    __slots__ = ("_group",)

    def __init__(
        self,
        head: int,
        chain: Chain,
        partners: Partners,
        group: Callable[[Row, Pairs], list[Row]],
    ) -> None:
        super().__init__(head, chain, partners)
        self._group = group

    def from_left(self, delta: Pairs) -> Pairs:
        """Return the derivations of changed recursive rows, each with its aggregate."""
        keyed = self.left.add_keys(delta)
        partners, since = self._partners.find_partners_before(()), self.left.relation.since
        out: list[Pair] = []
        for key, (row, weight) in keyed:
            round_ = since(row) if weight > 0 else -since(row)
            out += [(made, round_) for made in self._group(row, partners(key, row))]
        return self._chain(out)

    def derive_from_input(self, keyed: Keyed) -> Pairs:
        """Return the rows whose aggregates change."""
        before, now = (
            self._partners.find_partners_before(keyed),
            self._partners.find_partners_before(()),
        )
        out: list[Pair] = []
        for row, key in self._partners.find_candidates(keyed):
            was = self._group(row, before(key, row))
            is_ = self._group(row, now(key, row))
            if was != is_:
                since = self.left.relation.since(row)
                out += [*((made, -since) for made in was), *((made, since) for made in is_)]
        return self._chain(out)


Negating = NegatedRule | GroupedRule
"""Rules whose inserted input rows may remove derivations."""


# Parts of a fixpoint: relations, and the delta rules between them.

AllRows = Callable[[], Sequence[Pair]]
"""Returns all rows of an input."""
Fed = tuple[BaseRule | BinaryRule | Negating, int]
"""A delta rule that reads an input, and its port."""


@dataclass(slots=True)
class Circuit:
    """Relations, the delta rules between them, and their inputs."""

    relations: list[RecursiveRelation]
    names: tuple[str, ...]
    max_rounds: int | None
    recursive_indexes: list[RecursiveIndex] = field(default_factory=list)
    fed: list[Fed] = field(default_factory=list)
    left: list[tuple[UnaryRule | BinaryRule | Negating, int]] = field(default_factory=list)
    """Rules that read a relation alone or as left side, with the number of the relation."""
    indexes: dict[int, IndexBy] = field(default_factory=dict)
    """The inputs that are indexes, by port."""
    right: list[tuple[BinaryRule, int]] = field(default_factory=list)
    """Rules that read a relation as right side, with the number of the relation."""
    all_rows: dict[int, AllRows] = field(default_factory=dict)
    """Functions that return all rows of the inputs of base rules, by port."""

    clauses: Sequence[Any] = ()
    """The clauses of the recursion, in their order."""
    rules: list[Any] = field(default_factory=list)
    """The delta rule of each clause."""
    value_rules: set[int] = field(default_factory=set)
    """The ids of the rules that read a value of a lattice together with another row."""
    strict: bool = False
    """True if the step is checked to be monotone on what flows."""
    begins_anew: bool = False
    """True if all input rows are available, so that the fixpoint can be recomputed."""

    def wiring(self) -> Hashable:
        """Return the heads and sources of all delta rules."""
        delta_rules = (self.fed, self.left, self.right)
        return tuple(tuple((rule.head, source) for rule, source in some) for some in delta_rules)
