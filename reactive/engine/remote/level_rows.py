"""The rows of a level of a nest by a key, which a part keeps elsewhere: what an index is here.

    pairs(label)    looks the label up, if that has not been done since something was forgotten
    fetch(labels)   looks several up together
    load()          has all of them, for a reading of everything

State:  what was looked up, until it is forgotten.
Cost:   of a look-up that of reading a bucket, whatever the rows there are; of several together
        little more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from reactive.engine.collections.index import NO_MATCH, KeyedPair, match_key
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical
from reactive.engine.remote.remote_operator import RemoteOperator

Label = Any


class LevelRows:
    """Rows that are found by their label; those of the top by the key of the view.

    Parameters
    ----------
    operator: gives pairs of a label and a row.
    key: that of a row of the top; None of other levels.
    """

    __slots__ = ("_found", "_is_loaded", "_key", "is_shown", "operator")

    def __init__(self, operator: RemoteOperator, key: Callable[[Row], Any] | None = None) -> None:
        self.operator = operator
        self._key = key
        self._found: dict[Label, list[Pair]] = {}
        self._is_loaded = False
        self.is_shown = False
        """Whether what is read is as views show it, also while a flush is under way."""

    def keyed(self, delta: Pairs) -> list[KeyedPair]:
        """A delta of the part as one of an index."""
        return [(self._label(row[0]), (row[1], weight)) for row, weight in delta]

    def pairs(self, label: Label) -> Sequence[Pair]:
        """The rows with a label."""
        if label is NO_MATCH:
            return ()
        self.fetch((label,))
        return self._found.get(label, ())

    def fetch(self, labels: Iterable[Label]) -> None:
        """Look labels up that have not been."""
        found = self._found
        new = {label for label in labels if label not in found and label is not NO_MATCH}
        if new and not self._is_loaded:
            found.update((label, []) for label in new)
            self._take(self.operator.near(new, is_shown=self.is_shown), new)

    def load(self) -> None:
        """Have all rows."""
        self.forget()
        self._found = defaultdict(list)
        self._take(self.operator.contents(), None)
        self._is_loaded = True

    def forget(self) -> None:
        """What was looked up may be different by now."""
        self._found, self._is_loaded = {}, False

    def weight(self, label: Label, row: Row) -> int:
        """How often a row is there."""
        if self._key is not None:
            label = canonical(self._key(row))
        return sum(weight for other, weight in self.pairs(label) if other == row)

    def items(self) -> Iterator[KeyedPair]:
        """What was looked up."""
        return ((label, pair) for label, pairs in self._found.items() for pair in pairs)

    def keys(self) -> list[Label]:
        """All labels."""
        return [row[0] for row, _ in self.operator.contents()]

    def _take(self, pairs: Iterable[Pair], among: Collection[Label] | None) -> None:
        for row, weight in pairs:
            label = self._label(row[0])
            if among is None or label in among:
                self._found[label].append((row[1], weight))

    def _label(self, key: Any) -> Label:
        return match_key(key) if self._key is None else key
