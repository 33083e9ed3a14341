"""Views of groups: rows that are found by their keys."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, TypeVar, TypeVarTuple, overload

from optimizer.expressions.text import Naming
from optimizer.plans.properties import key_of_group, naming
from reactive.api import equal_rows, extended
from reactive.api.keyed_rows import optimistic_read
from reactive.api.relation import GroupedRelation
from reactive.api.view import LEAF, View
from reactive.engine.collections.zset import canonical
from reactive.engine.runtime.boundary import boundary
from reactive.errors import MissingKeyError

Ts = TypeVarTuple("Ts")
Cs = TypeVarTuple("Cs")
A = TypeVar("A")
B = TypeVar("B")
K = TypeVar("K")
D = TypeVar("D")


_GROUP = "node.operator.find(key)"
_AGGREGATES = (
    "(found[1] if len(found) == 2 else found[1:]) if found.__class__ is tuple"
    " else self._aggregates(found)"
)
"""The aggregates of the plain row `found`; `_aggregates` also knows named rows."""


@boundary
class GroupedView(View[K, *Ts], GroupedRelation[K, *Ts]):
    """One row per group; reads as a mapping from the key to the aggregates as well.

    `view[key]` is the aggregate, or the tuple of the aggregates if there are several. `get`,
    `keys`, `values` and `items` are as in such a dictionary; `in` takes a key or a row.
    Iteration and `len` are about rows, as in every view, and `zset()` has rows with their weights.
    `dict(view)` reads one key after the other; if other threads write, use `dict(view.items())`,
    which has all groups as of one commit. Named aggregates are a named tuple; with `as_=`,
    `view[key]` is the whole row.

    >>> from reactive import Count, Database
    >>> words = Database().table(str)
    >>> lengths = words.group_by(len).aggregate(Count()).materialize()
    >>> words.add_all(["to", "be", "not"])
    >>> lengths[2], lengths.get(9, 0), 3 in lengths, sorted(lengths)
    (2, 0, True, [(2, 2), (3, 1)])
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._aggregates = _aggregates(naming(self.plan))

    @overload
    def __getitem__(self: GroupedView[K, A], key: K) -> A: ...
    @overload
    def __getitem__(self: GroupedView[K, A, B, *Cs], key: K) -> tuple[A, B, *Cs]: ...
    @optimistic_read(_GROUP, ready=LEAF, if_found="found is not None", give=_AGGREGATES)
    def __getitem__(self, key: Any) -> Any:
        row = self._find(key)
        if row is None:
            raise MissingKeyError(
                f"{self._channel} has no group {key!r:.100}\n  view.get(key) gives None for one",
                key,
            )
        return self._aggregates(row)

    @overload
    def get(self: GroupedView[K, A], key: K, default: D) -> A | D: ...
    @overload
    def get(self: GroupedView[K, A], key: K) -> A | None: ...
    @overload
    def get(self: GroupedView[K, A, B, *Cs], key: K, default: D) -> tuple[A, B, *Cs] | D: ...
    @overload
    def get(self: GroupedView[K, A, B, *Cs], key: K) -> tuple[A, B, *Cs] | None: ...
    @optimistic_read(_GROUP, ready=LEAF, if_found="found is not None", give=_AGGREGATES)
    def get(self, key: Any, default: Any = None) -> Any:
        """Return the aggregates of a group, or the default if the group does not exist."""
        row = self._find(key)
        if row is None:
            return default
        return self._aggregates(row)

    @optimistic_read(
        "node.operator.find(item)", ready=LEAF, if_found="found is not None", give="True"
    )
    def __contains__(self, item: object) -> bool:
        return self._find(item) is not None or self.count(item) > 0

    def __eq__(self, other: object) -> bool:
        """Compare as other views do; a dictionary is equal if it maps keys to their aggregates."""
        if not isinstance(other, dict):
            return super().__eq__(other)
        key = key_of_group(self.plan)
        return equal_rows.same_groups(
            {key(row): self._aggregates(row) for row in self._all_rows()}, other
        )

    __hash__ = View.__hash__

    def keys(self) -> list[K]:
        """Return the keys of the groups."""
        keys: list[K] = self._read_leaf("keys")
        return keys

    @overload
    def values(self: GroupedView[K, A]) -> list[A]: ...
    @overload
    def values(self: GroupedView[K, A, B, *Cs]) -> list[tuple[A, B, *Cs]]: ...
    def values(self) -> list[Any]:
        """Return the aggregates of each group, as `view[key]` does, as of one commit."""
        return [self._aggregates(row) for row in self._all_rows()]

    @overload  # type: ignore[override]
    def items(self: GroupedView[K, A]) -> list[tuple[K, A]]: ...
    @overload
    def items(self: GroupedView[K, A, B, *Cs]) -> list[tuple[K, tuple[A, B, *Cs]]]: ...
    def items(self) -> list[Any]:
        """Return the key of each group with its aggregates, as of one commit.

        `zset().items()` returns rows with their weights, as `items` of other views does.
        """
        key = key_of_group(self.plan)
        return [(key(row), self._aggregates(row)) for row in self._all_rows()]

    def _find(self, key: Any) -> Any:
        """Return the row of a group, or None; a NaN in the key may be another object."""
        found = self._read_leaf("find", key)
        if found is None and (same := canonical(key)) is not key:
            found = self._read_leaf("find", same)
        return found


def _aggregates(how: Naming | None) -> Callable[[Any], Any]:
    """Return the function from a row to the value of its key: one aggregate, or a tuple of them.

    Rows of a user's class (`as_=`) are the value themselves.
    """
    if how is None:
        return lambda row: row[1] if len(row) == 2 else row[1:]
    if not how.generated:
        return lambda row: row
    if len(how.columns) == 2:
        return itemgetter(1)
    kind, make = extended.row_class(how.columns[1:]), tuple.__new__
    return lambda row: make(kind, row[1:])
