"""Checked matching: the left rows that have a partner by key, while every row has a key.

    on  not o.customer != c.id      equal keys, for values with the usual `!=`

A key that is checked, guarded, or not declared may raise. While no row does, its partners are
counted by key, as if it could not. A row without a key may match any row: from the first one on,
`PredicateMatching` tests pairs instead.

State:  the weight of R per key; with a row without a key, that of `PredicateMatching`.
Cost:   O(|dL| + |dR| + rows whose presence flips); O(|L| + |R|) for the first row without a key.
Source: [i3ql] exists and not exists; [dbsp] section 4, antijoin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reactive.engine.collections.index import Key, KeyedPair
from reactive.engine.collections.zset import Row
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.matching import Change, KeyMatching
from reactive.engine.operators.predicate_matching import PredicateMatching, changes_of_switch


class CheckedMatching:
    """Match by key; `make` returns the matching that tests pairs, for rows without a key.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> names, others = IndexBy(len), IndexBy(len)
    >>> matching = CheckedMatching(names, others, print)
    >>> matching.step(names.step([("anna", 1)]), others.step([("otto", 1)]))
    [('anna', 1, 0)]
    """

    __slots__ = ("_fell", "_keys", "_left", "_make", "_plain", "_right")

    def __init__(
        self, left: IndexBy, right: IndexBy, make: Callable[[], PredicateMatching]
    ) -> None:
        self._left = left
        self._right = right
        self._make = make
        self._keys = KeyMatching(left.index)
        self._plain: PredicateMatching | None = None
        self._fell = False
        """True if the last step was the first one that tests pairs."""

    @property
    def touched(self) -> int:
        return self._keys.touched + (0 if self._plain is None else self._plain.touched)

    @property
    def by_key(self) -> KeyMatching | None:
        """The matching by key; None if a row has no key."""
        if self._plain is not None or self._left.poisoned or self._right.poisoned:
            return None
        return self._keys

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Change]:
        """Return the changes of left rows; once a row has no key, test pairs from now on."""
        if self._plain is not None:
            return self._plain.step(left, right)
        if self._left.poisoned or self._right.poisoned:
            return self._fall_back(left)
        return self._keys.step(left, right)

    def undo(self) -> None:
        if self._fell:
            self._plain, self._fell = None, False
        elif self._plain is not None:
            self._plain.undo()
        else:
            self._keys.undo()

    def commit(self) -> None:
        """Drop the undo state; if pairs are tested from this step on, also the counts."""
        if self._fell:
            self._keys, self._fell = KeyMatching(self._left.index), False
        if self._plain is not None:
            self._plain.commit()
        else:
            self._keys.commit()

    def contents(self) -> Iterable[Change]:
        return self._keys.contents() if self._plain is None else self._plain.contents()

    def footprint(self) -> tuple[int, int]:
        return self._keys.footprint() if self._plain is None else self._plain.footprint()

    def _fall_back(self, left: Sequence[KeyedPair]) -> Sequence[Change]:
        """Test pairs from now on; return the changes since the last step."""

        def change_before(key: Key, row: Row, weight: int) -> Change:
            (has_partner,) = self._keys.have_partners((key,))
            return (row, weight, 0) if has_partner else (row, 0, weight)

        plain = self._make()
        found = changes_of_switch(plain, self._left.index.items(), left, change_before)
        self._plain, self._fell = plain, True
        return found
