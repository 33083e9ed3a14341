"""Relations that were written in SQL: as any other, but a row that raises is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVarTuple

from optimizer import plan
from optimizer.callables.source import caller
from reactive.api.internal_interface import name_sql_columns
from reactive.api.relation import OrderedRelation, Relation
from reactive.engine.runtime.boundary import boundary
from reactive.languages.sql.terms.values import BindingSchema

if TYPE_CHECKING:
    from reactive.api.literal import OnError
    from reactive.api.ordered_view import OrderedView
    from reactive.api.view import AnyView, View
    from reactive.engine.transactions.engine import Engine

Ts = TypeVarTuple("Ts")


@boundary
class SqlRelation(Relation[*Ts]):
    """A query that was written in SQL; its rows are named tuples of the columns.

    >>> from reactive import Database
    >>> db = Database()
    >>> _ = db.execute("create table words (id int primary key, word text)")
    >>> long = db.sql("select word, length(word) as size from words where length(word) > 2")
    >>> view = long.materialize()
    >>> db.execute("insert into words values (1, 'to'), (2, 'three')")
    2
    >>> list(view)
    [Row(word='three', size=5)]
    """

    schema: BindingSchema | None = None
    """The columns, with their names in SQL."""

    def materialize(
        self, name: str | None = None, *, on_error: OnError = "drop", kept: bool = False
    ) -> View[*Ts]:
        """Return a view; see `Relation.materialize`.

        By default rows that raise are left out and listed in `view.errors`, so that commits
        succeed.
        """
        view: Any = self._engine.materialize(self._query(), name, caller(), on_error, kept=kept)
        view.schema = self.schema
        name_sql_columns(view, None if self.schema is None else list(self.schema.names))
        return view  # type: ignore[no-any-return]


@boundary
class OrderedSqlRelation(OrderedRelation[*Ts]):
    """A SQL relation with an ORDER BY: its view is a sequence."""

    schema: BindingSchema | None = None

    def materialize(
        self, name: str | None = None, *, on_error: OnError = "drop", kept: bool = False
    ) -> OrderedView[*Ts]:
        """Return a view that is a sequence; see `SqlRelation.materialize`."""
        view: Any = self._engine.materialize(self._query(), name, caller(), on_error, kept=kept)
        view.schema = self.schema
        name_sql_columns(view, None if self.schema is None else list(self.schema.names))
        return view  # type: ignore[no-any-return]


def make_relation(
    engine: Engine,
    node: plan.Node,
    schema: BindingSchema,
    views: tuple[AnyView, ...],
) -> SqlRelation[Any] | OrderedSqlRelation[Any]:
    """Return the relation of a plan."""
    kind: Any = OrderedSqlRelation if isinstance(node, plan.OrderBy) else SqlRelation
    made: Any = kind(engine, node, views)
    made.schema = schema
    return made  # type: ignore[no-any-return]
