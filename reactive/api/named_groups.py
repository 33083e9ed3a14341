"""Types of groups whose rows are records: `group_by(key).aggregate(orders=Count(), as_=Town)`.

    NamedGroups[str, Town]        a GroupedRelation
    NamedGroupsView[str, Town]    a GroupedView: view["Bonn"] is a Town

Such a row is one binding, and the key is one of its fields, so the bindings of `GroupedRelation`
cannot tell the type of the key. Type checkers read these classes; at run time the names stand for
`GroupedRelation` and `GroupedView`.
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
        """A relation with one record per group; its view is also a mapping from key to record."""

        def materialize(
            self, name: str | None = None, *, on_error: OnError = "raise", kept: bool = False
        ) -> NamedGroupsView[K, R]:
            """Return a view that is also a mapping; see `Relation.materialize`."""

        def where(
            self, predicate: Callable[[R], object] | None = None, /, **fields: Any
        ) -> NamedGroups[K, R]:
            """Keep the groups that satisfy the predicate; see `Relation.where`."""

    class NamedGroupsView(View[R], NamedGroups[K, R], Generic[K, R]):
        """One record per group; also a mapping from the key to the record."""

        def __getitem__(self, key: K) -> R: ...
        @overload
        def get(self, key: K) -> R | None: ...
        @overload
        def get(self, key: K, default: D) -> R | D: ...
        def get(self, key: K, default: Any = None) -> Any:
            """Return the record of a group, or the default if it does not exist."""

        def keys(self) -> list[K]:
            """Return the keys of the groups."""

        def values(self) -> list[R]:
            """Return the records of the groups, as of one commit."""

        def items(self) -> list[tuple[K, R]]:  # type: ignore[override]
            """Return the key of each group with its record, as of one commit."""

else:
    from reactive.api.grouped_view import GroupedView as NamedGroupsView
    from reactive.api.relation import GroupedRelation as NamedGroups

__all__ = ["NamedGroups", "NamedGroupsView"]
