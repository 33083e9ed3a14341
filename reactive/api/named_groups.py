"""The types of groups whose rows are records: `group_by(key).aggregate(orders=Count(), as_=Town)`.

A row is one value then, and its key a field of it, so that the bindings do not tell what the keys
are. These classes do, to type checkers; what there is at run time are the classes that they stand
for.

    NamedGroups[str, Town]        a GroupedRelation
    NamedGroupsView[str, Town]    a GroupedView: view["Bonn"] is a Town
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive.api.literal import OnError
    from reactive.api.relation import Relation
    from reactive.api.view import View

    K = TypeVar("K")
    R = TypeVar("R")
    D = TypeVar("D")

    class NamedGroups(Relation[R], Generic[K, R]):
        """A relation with one record per group; its view reads by key too."""

        def materialize(
            self, name: str | None = None, *, on_error: OnError = "raise", kept: bool = False
        ) -> NamedGroupsView[K, R]: ...
        def where(
            self, predicate: Callable[[R], object] | None = None, /, **fields: Any
        ) -> NamedGroups[K, R]: ...

    class NamedGroupsView(View[R], NamedGroups[K, R], Generic[K, R]):
        """One record per group; reads as a mapping from the key to what is kept as well."""

        def __getitem__(self, key: K) -> R: ...
        @overload
        def get(self, key: K) -> R | None: ...
        @overload
        def get(self, key: K, default: D) -> R | D: ...
        def get(self, key: K, default: Any = None) -> Any: ...
        def keys(self) -> list[K]: ...
        def values(self) -> list[R]: ...
        def items(self) -> list[tuple[K, R]]: ...  # type: ignore[override]

else:
    from reactive.api.grouped_view import GroupedView as NamedGroupsView
    from reactive.api.relation import GroupedRelation as NamedGroups

__all__ = ["NamedGroups", "NamedGroupsView"]
