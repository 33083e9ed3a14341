"""Keys of two parts that raise at any of their calls leave a trie as it was."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from reactive.engine.collections.trie import Trie
from tests.moody import Moods


class Moody(Moods):
    calls: ClassVar[int] = 0
    at: ClassVar[int] = 0

    __eq__ = Moods.__eq__

    def __hash__(self) -> int:
        self.mood()
        return self.value % 2


def row(value: int) -> tuple[int, str]:
    """One that equals others of this value, and is none of them."""
    return (value, "row")


HELD = [(1, 2, 1), (1, 3, 2), (1, 3, 1), (2, 2, 1), (4, 4, 2)]


@pytest.mark.parametrize(
    ("first", "second", "weight"),
    [(1, 2, 1), (1, 2, -1), (1, 3, -3), (2, 2, -1), (2, 2, 2), (4, 4, -2), (5, 5, 1), (5, 5, 2)],
)
def test_a_part_that_raises_changes_nothing(first: int, second: int, weight: int) -> None:
    raised = 0
    for moment in range(1, 40):
        trie = Trie()
        parts = {number: Moody(number) for number in range(9)}
        for one, other, times in HELD:
            trie.add((parts[one], parts[other]), row(one), times)
        before, rows = shown(trie), trie.rows
        Moody.calls, Moody.at = 0, moment
        key = (Moody(first), Moody(second))
        try:
            trie.add(key, row(first), weight)
            Moody.at = 0
            trie.add(key, row(first), -weight)
        except ValueError:
            Moody.at = 0
            raised += 1
        assert shown(trie) == before and trie.rows == rows
        assert all(trie.by_first.values())
    assert raised


def shown(trie: Trie) -> list[Any]:
    return sorted((one.value, other.value, pair) for (one, other), pair in trie.items())
