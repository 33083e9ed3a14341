"""State of a view that outlives the process: how such a view is made, and what it tells of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.errors import PlanError
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.left_out import optional

if TYPE_CHECKING:
    from reactive.api.view import AnyView
    from reactive.borders.durable.kept_views import KeptState
    from reactive.engine.transactions.engine import Engine


@boundary
class KeepsState:
    """A view that may be made with `kept=True`."""

    __slots__: tuple[str, ...] = ()
    _engine: Engine
    _node: Any
    _reading: Callable[[], Any]

    def kept_state(self) -> KeptState | None:
        """Return the origin of the state that its operators began with; None if it is not kept.

        The state is "read" or "computed"; with why, the version and the bytes of what is stored,
        and how many seconds it took.

        >>> import tempfile
        >>> from reactive import Database, Sum
        >>> db = Database(tempfile.mkdtemp() + "/shop.db")
        >>> sales = db.table(tuple[str, int], name="sales")
        >>> totals = sales.group_by(lambda s: s[0]).aggregate(Sum(lambda s: s[1]))
        >>> view = totals.materialize("totals", kept=True)
        >>> view.kept_state().state, view.kept_state().why
        ('computed', 'nothing is stored of it yet')
        """
        with self._reading():
            kept = getattr(self._engine.journal, "kept_views", None)
            found: KeptState | None = None if kept is None else kept.state_of(self._node.rank)
            return found


def made_or_read(
    engine: Engine, name: str | None, node: plan.Node, make: Callable[[], AnyView]
) -> AnyView:
    """Make a view of a query whose state is kept with what is stored of it.

    Raises
    ------
    PlanError: it cannot be kept.
    """
    journal = engine.journal
    if journal is None:
        raise PlanError(
            "a view of a database in memory cannot be kept\n"
            "  give the database a path: Database('shop.db')"
        )
    if journal.kept_views is None:
        journal.kept_views = optional("borders.durable.kept_views").KeptViews(engine)
    view: AnyView = journal.kept_views.make(name, node, make)
    return view
