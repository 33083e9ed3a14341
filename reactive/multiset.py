"""An immutable multiset: the value that `Collect` gives."""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterator, Mapping
from typing import Generic

from typing_extensions import TypeVar

from reactive.zset import repeat

T = TypeVar("T", covariant=True)


class Multiset(Collection[T], Generic[T]):
    """Values with how often each occurs. Hashable; equal by content, whatever the order.

    >>> bag = Multiset({"a": 2, "b": 1})
    >>> len(bag), bag.count("a"), sorted(bag), bag == Multiset({"b": 1, "a": 2})
    (3, 2, ['a', 'a', 'b'], True)
    """

    __slots__ = ("_hash", "_weights")

    def __init__(self, weights: Mapping[T, int]) -> None:
        self._weights = dict(weights)
        self._hash: int | None = None

    def count(self, value: object) -> int:
        """How often the value occurs; 0 if it does not."""
        weights: dict[object, int] = self._weights  # type: ignore[assignment]
        return weights.get(value, 0)

    def items(self) -> ItemsView[T, int]:
        """Each different value with how often it occurs."""
        return self._weights.items()

    def __len__(self) -> int:
        return sum(self._weights.values())

    def __iter__(self) -> Iterator[T]:
        return repeat(self._weights.items())

    def __contains__(self, value: object) -> bool:
        return value in self._weights

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Multiset):
            return NotImplemented  # a view knows
        return self._weights == other._weights

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._weights.items()))
        return self._hash

    def __reduce__(self) -> tuple[type[Multiset[T]], tuple[dict[T, int]]]:
        return Multiset, (self._weights,)  # a hash means nothing to another process

    def __repr__(self) -> str:
        return f"Multiset({self._weights!r})"
