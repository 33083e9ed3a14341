"""Delta rules: each clause of a recursion as an operator that derives rows.

    BaseRule       from inputs alone
    UnaryRule      from one recursive row
    BinaryRule     from a pair of rows, one of them recursive, or both
    NegatedRule    from a recursive row that no row of an input matches
    GroupedRule    from a recursive row, and an aggregate of the rows of an input that match it

What comes out are derivations: pairs of a row and, as weight, the latest round of the recursive
rows that it is made of, negative for a derivation that vanishes. Rows that enter a relation come as
a `Batch` whose weight is the round of now, and so do the derivations that follow from them.

Where loops were generated (`generated/derived.py`) they run; if they raise, what is written here
does the same again, row by row.
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
    Partners,
    RecursiveIndex,
    UnaryLoops,
)
from reactive.engine.operators.fixpoint.recursive_relation import RecursiveRelation
from reactive.engine.operators.index_by import IndexBy

Chain = Callable[[Sequence[Pair]], Sequence[Pair]]
"""What a chain of linear operators makes of pairs; weights go through as they are."""
Keyed = Sequence[KeyedPair]
Side = RecursiveIndex | IndexBy
"""A recursive relation, or an input."""


def appearing(index: Index, keyed: Keyed) -> Keyed:
    """Of a delta that an index has taken in, the rows that are there now and were not, or reverse.

    >>> index = Index()
    >>> for row, weight in (("a", 2), ("b", 1)):
    ...     index.add(1, row, weight)
    >>> appearing(index, [(1, ("a", 1)), (1, ("b", 1)), (1, ("c", -1))])
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
    """Rows of an input, each with its weight as number of derivations.

    >>> BaseRule(0).given([("a", 2), ("b", -1)])
    [('a', 1), ('a', 1), ('b', -1)]
    """

    __slots__ = ("head",)

    def __init__(self, head: int) -> None:
        self.head = head

    def given(self, delta: Pairs) -> list[Pair]:
        out: list[Pair] = []
        for row, weight in delta:
            derivation = (row, GIVEN if weight > 0 else -GIVEN)
            out += [derivation] * abs(weight)
        return out


class UnaryRule:
    """Rows of a relation, through a chain."""

    __slots__ = ("_chain", "_loops", "head", "touched")

    def __init__(self, head: int, chain: Chain, loops: UnaryLoops | None) -> None:
        self.head = head
        self._chain = chain
        self._loops = loops
        self.touched = 0

    def sources(self) -> list[str]:
        """The generated loops."""
        return [] if self._loops is None else self._loops.sources()

    def from_left(self, delta: Pairs) -> Pairs:
        self.touched += len(delta)
        out = None if self._loops is None else self._loops.run(delta)
        return self._chain(delta) if out is None else out


class BinaryRule:
    """Pairs of a join, through a chain; at least one side is a recursive index.

    Of an input, it counts that a row is there, not how often; `is_set` if that is once anyway.
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
        return touched

    def sources(self) -> list[str]:
        """The generated loops."""
        return [text for loops in self._loops if loops is not None for text in loops.sources()]

    def given(self, keyed: Keyed) -> Pairs:
        """What comes of changes of the side that is an input."""
        is_left = isinstance(self.right, RecursiveIndex)
        mine, others = (self.right, self.left) if is_left else (self.left, self.right)
        assert isinstance(mine, RecursiveIndex) and isinstance(others, IndexBy)
        if not mine.index_by.index.rows:
            return ()
        if not self._is_set:
            keyed = appearing(others.index, keyed)
        loops = self._loops[is_left]
        out = None if loops is None else loops.given(keyed)
        if out is None:
            return self._plain(*((keyed, ()) if is_left else ((), keyed)))
        self._touched += len(keyed) + len(out)
        return out

    def from_left(self, delta: Pairs) -> Pairs:
        """What comes of rows of the left that enter or leave, with the right as it is."""
        return self._from(0, self.left, delta)

    def from_right(self, delta: Pairs) -> Pairs:
        """The same for the right."""
        return self._from(1, self.right, delta)

    def _from(self, side: int, recursive_index: Side, delta: Pairs) -> Pairs:
        assert isinstance(recursive_index, RecursiveIndex)
        loops = self._loops[side]
        out = None if loops is None else loops.run(delta)
        if out is None:
            keyed = recursive_index.keyed(delta)
            return self._plain(*((keyed, ()) if side == 0 else ((), keyed)))
        self._touched += len(delta) + len(out)
        return out

    def _plain(self, left: Keyed, right: Keyed) -> Pairs:
        return self._chain(
            [
                (row, self._since(row) if weight > 0 else -self._since(row))
                for row, weight in self._join.step(left, right)
            ]
        )

    def _since(self, row: Row) -> int:
        """The round of the later one of a pair."""
        left = right = 0
        if isinstance(self.left, RecursiveIndex):
            left = self.left.relation.since(row[0] if self._bindings == 1 else row[:-1])
        if isinstance(self.right, RecursiveIndex):
            right = self.right.relation.since(row[-1])
        return max(left, right)


class _RuleOfPartners:
    """Rows of a relation by the rows of an input that match them, through a chain."""

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
        """None: it has no generated loops."""
        return []

    def before(self, keyed: Keyed) -> AbstractContextManager[None]:
        """As it would be if the input had not taken a delta yet."""
        return self._partners.before(keyed)


class NegatedRule(_RuleOfPartners):
    """Rows of a relation that no row of an input matches, through a chain.

    Cost: O(changed rows of the relation + matches that are asked); for changed rows of the input,
    that for every row of the relation that they match.
    """

    __slots__ = ()

    def from_left(self, delta: Pairs) -> Pairs:
        keyed = self.left.keyed(delta)
        partners = self._partners.of(())
        since = self.left.relation.since
        out: list[Pair] = []
        for key, (row, weight) in keyed:
            if not partners(key, row):
                out.append((row, since(row) if weight > 0 else -since(row)))
        return self._chain(out)

    def given(self, keyed: Keyed) -> Pairs:
        """Rows that lose their last partner, or find a first one."""
        before, now = self._partners.of(keyed), self._partners.of(())
        out: list[Pair] = []
        for row, key in self._partners.asked(keyed):
            was, is_matched = bool(before(key, row)), bool(now(key, row))
            if was != is_matched:
                since = self.left.relation.since(row)
                out.append((row, -since if is_matched else since))
        return self._chain(out)


class GroupedRule(_RuleOfPartners):
    """Rows of a relation, each with an aggregate of the rows of an input that match it.

    `group` makes the row of a group of a row and its partners, or none. The group is folded again
    whenever one of its partners changes.

    State: none.
    Cost: O(partners of changed rows of the relation); for changed rows of the input, the partners
    of every row of the relation that they match.
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
        keyed = self.left.keyed(delta)
        partners, since = self._partners.of(()), self.left.relation.since
        out: list[Pair] = []
        for key, (row, weight) in keyed:
            round_ = since(row) if weight > 0 else -since(row)
            out += [(made, round_) for made in self._group(row, partners(key, row))]
        return self._chain(out)

    def given(self, keyed: Keyed) -> Pairs:
        """Rows whose aggregates change."""
        before, now = self._partners.of(keyed), self._partners.of(())
        out: list[Pair] = []
        for row, key in self._partners.asked(keyed):
            was = self._group(row, before(key, row))
            is_ = self._group(row, now(key, row))
            if was != is_:
                since = self.left.relation.since(row)
                out += [*((made, -since) for made in was), *((made, since) for made in is_)]
        return self._chain(out)


Negating = NegatedRule | GroupedRule
"""Rules by which rows may go where rows of an input come."""


# What a fixpoint is made of: its relations, and the delta rules from rows to rows.

AllRows = Callable[[], Sequence[Pair]]
"""All rows of an input."""
Fed = tuple[BaseRule | BinaryRule | Negating, int]
"""A delta rule that reads an input, and its port."""


@dataclass(slots=True)
class Circuit:
    """Relations, delta rules, and what these read."""

    relations: list[RecursiveRelation]
    names: tuple[str, ...]
    max_rounds: int | None
    recursive_indexes: list[RecursiveIndex] = field(default_factory=list)
    fed: list[Fed] = field(default_factory=list)
    left: list[tuple[UnaryRule | BinaryRule | Negating, int]] = field(default_factory=list)
    """Ways that a relation leads into, on the left if they have two sides, and its number."""
    indexes: dict[int, IndexBy] = field(default_factory=dict)
    """The inputs that are indexes, by port."""
    right: list[tuple[BinaryRule, int]] = field(default_factory=list)
    """Ways that a relation leads into on the right."""
    all_rows: dict[int, AllRows] = field(default_factory=dict)
    """What finds all rows of the inputs that base rules read, by port."""

    begins_anew: bool = False
    """Whether all rows of its inputs are at hand."""

    def wiring(self) -> Hashable:
        """Which delta rule leads from which relation to which."""
        delta_rules = (self.fed, self.left, self.right)
        return tuple(tuple((rule.head, source) for rule, source in some) for some in delta_rules)
