"""The ways to derive rows: each clause of a recursion as an operator.

    Given      from inputs alone
    Copied     from one recursive row
    Paired     from a pair of rows, one of them recursive, or both
    Lone       from a recursive row that no row of an input matches

What comes out are derivations: pairs of a row and, as weight, the latest round of the recursive
rows that it is made of, negative for a derivation that vanishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactive.index import KeyedPair
from reactive.operators.index_by import Before, IndexBy
from reactive.operators.suspects import Candidates
from reactive.recursion.facts import GIVEN
from reactive.recursion.premise import Premise
from reactive.zset import Pair, Pairs, Row, consolidate

Since = Callable[[Row], int]
"""The round of a recursive row."""
Chain = Callable[[Sequence[Pair]], Sequence[Pair]]
"""What a chain of linear operators makes of pairs; weights go through as they are."""
Keyed = Sequence[KeyedPair]


class Given:
    """Rows of an input, each with its weight as number of derivations.

    >>> Given(0).given([("a", 2), ("b", -1)])
    [('a', 1), ('a', 1), ('b', -1)]
    """

    def __init__(self, head: int) -> None:
        self.head = head
        self.touched = 0

    def given(self, delta: Pairs) -> list[Pair]:
        out: list[Pair] = []
        for row, weight in delta:
            derivation = (row, GIVEN if weight > 0 else -GIVEN)
            out += [derivation] * abs(weight)
        return out


class Copied:
    """Rows of a relation, through a chain."""

    def __init__(self, head: int, relation: int, chain: Chain) -> None:
        self.head = head
        self.relation = relation
        self._chain = chain
        self.touched = 0

    def derived(self, delta: Pairs) -> Sequence[Pair]:
        return self._chain(delta)


class Paired:
    """Pairs of a join, through a chain.

    `left` and `right` say when the rows of a side came, None for a side that is an input.
    """

    def __init__(
        self,
        head: int,
        join: Any,
        chain: Chain,
        left: Since | None,
        right: Since | None,
        bindings: int,
    ) -> None:
        self.head = head
        self._join = join
        self._chain = chain
        self._left = left
        self._right = right
        self._bindings = bindings

    @property
    def touched(self) -> int:
        touched: int = self._join.touched
        return touched

    def derived(self, left: Keyed, right: Keyed) -> Sequence[Pair]:
        return self._chain(
            [
                (row, self._since(row) if weight > 0 else -self._since(row))
                for row, weight in self._join.step(left, right)
            ]
        )

    def _since(self, row: Row) -> int:
        """The round of the later one of a pair."""
        left = 0
        if self._left is not None:
            left = self._left(row[0] if self._bindings == 1 else row[:-1])
        return left if self._right is None else max(left, self._right(row[-1]))


class Lone:
    """Rows of a relation that no row of an input matches, through a chain.

    Cost: O(changed rows of the relation x matches that are asked before one fits); for changed rows
    of the input, that for every row of the relation that they match.
    """

    def __init__(
        self,
        head: int,
        premise: Premise,
        others: IndexBy,
        fits: Callable[[Row, Row], object],
        whole: Callable[[Row, Row], object],
        chain: Chain,
        since: Since,
    ) -> None:
        self.head = head
        self._rows = premise.index_by
        self._others = others
        self._fits = fits
        self._whole = whole
        self._chain = chain
        self._since = since
        self.touched = 0

    def derived(self, left: Keyed, right: Keyed) -> Sequence[Pair]:
        now = self._partners(())
        out: list[Pair] = []
        for key, (row, weight) in left:
            if not now(key, row):
                since = self._since(row)
                out.append((row, since if weight > 0 else -since))
        if right:
            out += self._turned(right, now)
        return self._chain(out)

    def _turned(self, right: Keyed, now: Callable[[Any, Row], bool]) -> Iterable[Pair]:
        """Rows that lose their last partner, or find a first one."""
        before = self._partners(right)
        asked: dict[Row, Any] = {}
        rows = Candidates(self._rows) if self._is_odd() else self._rows.index
        for key, _ in right:
            for row, _ in rows.pairs(key):
                asked.setdefault(row, key)
        self.touched += len(asked)
        for row, key in asked.items():
            was, is_matched = before(key, row), now(key, row)
            if was != is_matched:
                since = self._since(row)
                yield row, -since if is_matched else since

    def _is_odd(self) -> bool:
        return self._rows.odd or self._others.odd

    def _partners(self, since: Keyed) -> Callable[[Any, Row], bool]:
        """Whether a row with a key has a partner; or had, before a delta of the others."""
        others: Any = self._others.index
        fits = self._fits
        if self._is_odd():  # keys say nothing then
            others, fits = _Everything(self._others, since), self._whole
        elif since:
            others = Before(others, since)

        def has_partner(key: Any, row: Row) -> bool:
            candidates = others.pairs(key)
            self.touched += len(candidates)
            found = False
            for other, _ in candidates:
                found = bool(fits(row, other)) or found
            return found

        return has_partner


class _Everything:
    """All rows of an input, whatever the key; or as it was before a delta."""

    def __init__(self, rows: IndexBy, since: Keyed) -> None:
        gone = [(row, -weight) for _, (row, weight) in since]
        self._rows = consolidate([*rows.all_rows(), *gone])

    def pairs(self, key: Any) -> Sequence[Pair]:
        return self._rows
