"""Views of an order whose rows have others inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVarTuple

from optimizer import plan
from optimizer.expressions.naming import Nesting
from optimizer.plans.named import naming_by
from reactive.api.ordered_view import OrderedView
from reactive.api.subscriptions import at_path
from reactive.engine.runtime.boundary import boundary

if TYPE_CHECKING:
    from reactive.engine.dataflow.delta import Delta

Ts = TypeVarTuple("Ts")


@boundary
class OrderedNestedView(OrderedView[*Ts]):
    """Rows with others inside, as those of a `NestedView`, in an order: `view[0].orders`.

    >>> from reactive import Database
    >>> db = Database()
    >>> numbers = db.table(int, name="numbers")
    >>> below = numbers.nest(less=lambda n: numbers.where(lambda m: m < n).order_by(lambda m: m))
    >>> view = below.order_by(lambda n, less: n, descending=True).materialize()
    >>> numbers.add_all([3, 1, 2])
    >>> view[0].less, view.to_python()[2]
    ((1, 2), {'row': 1, 'less': []})
    """

    query: Any = None
    """The rows in their order, of which there are parts."""

    def limit(self, n: int, offset: int = 0) -> Any:
        """As of the query; its rows are sorted once more."""
        return self._ordered().limit(n, offset)

    def previous(self) -> Any:
        """As of the query."""
        return self._ordered().previous()

    def _ordered(self) -> Any:
        return self.relation if self.query is None else self.query

    def subscribe(
        self,
        callback: Callable[[Delta[Any]], object],
        *,
        path: tuple[Any, ...] | None = None,
        **how: Any,
    ) -> Any:
        """As `NestedView.subscribe`: with a path, to the rows inside of one row.

        Raises
        ------
        PlanError: no binding of that name is inside.
        """
        subscribe: Any = super().subscribe  # type: ignore[misc]
        if path is None or how.get("name") is not None:
            return subscribe(callback, path=path, **how)
        nesting = self._nesting()
        path = at_path.check_path(nesting, path)
        with self._engine.shaping():
            rows = self._all_rows() if at_path.has_copies(nesting) else ()
            copies = sum(nesting.key(row) == path[0] for row in rows)
            heard = at_path.heard(nesting, callback, path, copies)
            return subscribe(heard, **how)

    def _nesting(self) -> Nesting:
        node = self.relation.plan
        assert isinstance(node, plan.OrderBy)
        found: Any = naming_by(node.input)
        return found  # type: ignore[no-any-return]
