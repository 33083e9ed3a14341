"""The difference between two states of a program: deleted facts and new facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from examples.findbugs.facts import Fact, Facts

Rows: TypeAlias = dict[type[Fact], list[Any]]


@dataclass(frozen=True, slots=True)
class Difference:
    """Facts by kind. Its length is their number."""

    removed: Rows = field(default_factory=dict)
    added: Rows = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, [*self.removed.values(), *self.added.values()]))


def difference(old: Mapping[str, Facts], new: Mapping[str, Facts]) -> Difference:
    """Return the difference between the facts of some classes; absent classes have no facts.

    Only the facts of one class are compared with each other.

    Cost: O(facts of these classes), and little for kinds of facts that are unchanged in a class.

    >>> from examples.findbugs.facts import Throws
    >>> first, second = Throws("A", "run()V", "E"), Throws("A", "run()V", "F")
    >>> change = difference({"A": {Throws: [first]}}, {"A": {Throws: [first, second]}})
    >>> change.removed, change.added[Throws] == [second]
    ({}, True)
    """
    found = Difference()
    for name in dict.fromkeys([*old, *new]):
        _compare(old.get(name, {}), new.get(name, {}), found)
    return found


def _compare(old: Facts, new: Facts, found: Difference) -> None:
    for kind in dict.fromkeys([*old, *new]):
        before, after = old.get(kind, ()), new.get(kind, ())
        if before != after:
            _note(kind, before, set(after), found.removed)
            _note(kind, after, set(before), found.added)


def _note(kind: type[Fact], rows: Sequence[Any], others: set[Any], noted: Rows) -> None:
    differing = [row for row in rows if row not in others]
    if differing:
        noted.setdefault(kind, []).extend(differing)
