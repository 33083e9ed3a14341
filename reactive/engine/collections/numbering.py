"""Values by small numbers, which are used again.

State:  a dictionary entry and a place in a list per value; a place per number that is free.
Cost:   O(1) each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any


class Unlike(Exception):
    """A value that is not what equals it, or that does not equal itself."""


class Numbering:
    """Gives each of equal values the same number.

    >>> numbering = Numbering()
    >>> [numbering.number(name) for name in ("anna", "otto", "anna")], numbering.values
    ([0, 1, 0], ['anna', 'otto'])
    """

    __slots__ = ("_free", "fresh", "numbers", "values")

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}
        self.values: list[Any] = []
        self.fresh: list[int] = []
        """The numbers that values got last; whoever looks at it empties it."""
        self._free: list[int] = []

    def number(self, value: Any) -> int:
        """The number of a value.

        Raises `Unlike` of NaN, and of a value that equals one of another class: which one stands
        for both would be seen.
        """
        found = self.numbers.get(value)
        if found is None:
            return self._new(value)
        if self.values[found].__class__ is not value.__class__:
            raise Unlike(value)
        return found

    def _new(self, value: Any) -> int:
        if not value == value:
            raise Unlike(value)
        if self._free:
            number = self._free[-1]
            self.numbers[value] = number
            self._free.pop()
            self.values[number] = value
        else:
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
        self.fresh.append(number)
        return number

    def restore(self, values: Sequence[Any], free: Sequence[int]) -> None:
        """Give values the numbers of their places, except those that are free."""
        self.values += values
        self._free += free
        is_free = {*free}
        self.numbers.update({v: n for n, v in enumerate(values) if n not in is_free})

    @property
    def free(self) -> Sequence[int]:
        """The numbers that no value has."""
        return self._free

    def release(self, numbers: Iterable[int]) -> None:
        """Forget the values of numbers that nobody uses any more."""
        for number in numbers:
            del self.numbers[self.values[number]]
            self.values[number] = None
            self._free.append(number)
        if not self.numbers:
            self.values, self._free = [], []
