"""Views of ordered relations: sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, overload

from optimizer import plan
from reactive.api import equal_rows
from reactive.api.relation import OrderedRelation
from reactive.api.view import View
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.runtime.boundary import boundary, hide

if TYPE_CHECKING:
    from reactive.api.parameter import Parameter

Ts = TypeVarTuple("Ts")
Cs = TypeVarTuple("Cs")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


@boundary
class OrderedView(View[*Ts], OrderedRelation[*Ts]):
    """The rows in order, read as a sequence. Access by position costs O(log rows).

    The class is no `collections.abc.Sequence`, because polars and pandas would then read rows one
    by one, without the names and types of the columns.

    >>> from reactive import Database
    >>> numbers = Database().table(int)
    >>> view = numbers.order_by(lambda n: -n).materialize()
    >>> numbers.add_all([1, 3, 2])
    >>> view[0], view[1:], view.index(1)
    (3, [2, 1], 2)
    """

    @overload
    def __getitem__(self: OrderedView[T], position: int) -> T: ...
    @overload
    def __getitem__(self: OrderedView[T], position: slice) -> list[T]: ...
    @overload
    def __getitem__(self: OrderedView[A, B, *Cs], position: int) -> tuple[A, B, *Cs]: ...
    @overload
    def __getitem__(self: OrderedView[A, B, *Cs], position: slice) -> list[tuple[A, B, *Cs]]: ...
    def __getitem__(self, position: Any) -> Any:
        try:
            if not isinstance(position, slice):
                return self._read_leaf("at", position)
            with self._reading():
                start, stop, step = position.indices(len(self._contents))
                if step == 1:
                    return self._contents.between(start, stop)
                return [self._contents.at(place) for place in range(start, stop, step)]
        except Exception as error:
            hide(error)
            raise

    @overload
    def __reversed__(self: OrderedView[T]) -> Iterator[T]: ...
    @overload
    def __reversed__(self: OrderedView[A, B, *Cs]) -> Iterator[tuple[A, B, *Cs]]: ...
    def __reversed__(self) -> Iterator[Any]:
        return iter(self._all_rows()[::-1])

    def limit(self, n: int | Parameter[int], offset: int = 0) -> OrderedRelation[*Ts]:
        """Return the `n` rows after the first `offset` rows, as a relation that sorts again."""
        query: Any = self.relation
        limited = query.limit(n, offset)
        return OrderedRelation(self._engine, limited.plan, self._kept_views())

    def previous(self) -> OrderedRelation[*Ts]:
        """Return the rows as of the previous commit, as a relation that sorts them again."""
        query: Any = self.relation
        return OrderedRelation(self._engine, query.previous().plan, self._kept_views())

    def _order(self) -> plan.OrderBy:
        """Return the order of the query; a query over the view sorts the rows again."""
        node: Any = self.relation.plan
        return node  # type: ignore[no-any-return]

    def index(self, row: object, start: int = 0, stop: int | None = None) -> int:
        """Return the first position of a row; raise `ValueError` if it is absent.

        Cost: O(log rows) for a row that is there, besides the rows with equal keys; O(rows) for
        others, and with `start` or `stop`.
        """
        if not start and stop is None:
            with self._reading(), suppress(Exception):  # other objects may have no key
                found = self._contents.position(row)
                if found is not None:
                    return int(found)
        rows = self._all_rows()
        return rows.index(row, start, len(rows) if stop is None else stop)

    def _has_rows(self, other: list[Any] | tuple[Any, ...]) -> bool:
        return equal_rows.same_in_order(self._all_rows(), other)

    def _first_rows(self, n: int) -> list[Any]:
        with self._reading():
            found: list[Any] = self._contents.between(0, min(n, len(self._contents)))
            return found

    def _of_all_places(self) -> list[Any]:
        """Return all rows in order, also those outside of the limit."""
        with self._reading():
            return list(self._contents.order.all_rows())

    def _snapshot(self) -> tuple[list[Pair], Iterable[Row] | None]:
        return list(self._contents.items()), self._contents.rows()
