"""An immutable multiset: the value that `Collect` gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping
from typing import Any, Generic, overload

from typing_extensions import TypeVar

from reactive.collections.zset import canonical, repeat

T = TypeVar("T", covariant=True)


class Multiset(Collection[T], Generic[T]):
    """Values with how often each occurs. Hashable; equal by content, whatever the order.

    >>> bag = Multiset({"a": 2, "b": 1})
    >>> len(bag), bag.count("a"), sorted(bag), bag == Multiset(["a", "b", "a"])
    (3, 2, ['a', 'a', 'b'], True)
    """

    __slots__ = ("_hash", "_weights")

    @overload
    def __init__(self, values: Mapping[T, int]) -> None: ...
    @overload
    def __init__(self, values: Iterable[T]) -> None: ...
    def __init__(self, values: Any) -> None:
        """Values with how often each occurs, or the values themselves."""
        is_counted = isinstance(values, Mapping)
        self._weights: dict[T, int] = (
            dict(values) if is_counted else dict(Counter(map(canonical, values)))
        )
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
