"""Immutable, hashable mapping: a JSON object as a value of a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class FrozenObject(Mapping[str, Any]):
    """An object of JSON. It equals any mapping with the same items.

    >>> found = FrozenObject({"tags": ("a", "b"), "size": 7})
    >>> found["tags"], found == {"size": 7, "tags": ("a", "b")}, len({found, found})
    (('a', 'b'), True, 1)
    """

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = dict(items)
        self._hash: int | None = None

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenObject):
            return self._items == other._items
        return isinstance(other, Mapping) and self._items == other

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"FrozenObject({self._items!r})"

    def __reduce__(self) -> tuple[type[FrozenObject], tuple[dict[str, Any]]]:
        return FrozenObject, (self._items,)
