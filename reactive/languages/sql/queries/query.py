"""A query as it is known while more is made of it: its rows are not yet put together.

    select o.id, o.total * 2 from orders o       node orders, values (b0.id, b0.total * 2)

Who asks only whether there are rows, or for one value, needs no rows of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Parameter
from optimizer.record import record
from reactive.languages.sql.queries.nodes import selected
from reactive.languages.sql.sqlite.comparisons import sorted_by
from reactive.languages.sql.terms.catalog import Named, named_rows
from reactive.languages.sql.terms.schema import Schema
from reactive.languages.sql.terms.scope import Scope, Source
from reactive.languages.sql.terms.values import Value, is_column, whole


@record
class Query:
    """The bindings of a plan, and the columns that are made of them; the order and the part of it
    that is wanted. `is_one_row` says that there is one, whatever the tables have."""

    node: plan.Node
    scope: Scope = field(compare=False)
    names: tuple[str, ...]
    values: tuple[Value, ...]
    sort: tuple[plan.SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    is_one_row: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether rows are left out by their place in the order."""
        return self.limit is not None or self.offset > 0

    def cut(self) -> Query:
        """The same without an order, of the rows that are in it."""
        if not self.is_cut:
            return replace(self, sort=())
        keys = self.sort or self._any_order()
        made = plan.OrderBy(self.node, keys, self.limit, self.offset)
        return replace(self, node=made, sort=(), limit=None, offset=0, is_one_row=False)

    def _any_order(self) -> tuple[plan.SortKey, ...]:
        """An order where none was asked for: by all columns."""
        return tuple(
            plan.SortKey(
                self.scope.function(_in_order(v, self.scope)), False, "last" if v.nullable else None
            )
            for v in self.values
        )

    def rows(self, names: Sequence[str] = ()) -> tuple[plan.Node, Schema]:
        """A row for each, and their columns; `names` are other names for the first ones."""
        made = self.cut()
        called = (*names, *self.names[len(names) :])
        if made.values == made.scope_values():
            schema = made.scope.schema
            if schema is not None and schema.names == tuple(called):
                return made.node, schema
        return selected(made.node, made.scope, called, made.values)

    def named(self, names: Sequence[str] = (), views: tuple[Any, ...] = ()) -> Named:
        """What a name stands for, in FROM. Columns that are read of the bindings as they are need
        no rows of their own."""
        if not self.is_cut and all(map(_is_read, self.values)):
            called = (*names, *self.names[len(names) :])
            columns = tuple(zip(called, self.values, strict=True))
            return Named(self.node, columns, self.scope.bindings, views)
        return named_rows(*self.rows(names), views)

    def scope_values(self) -> tuple[Value, ...] | None:
        """The columns of rows that are put together already."""
        schema = self.scope.schema
        return None if schema is None else schema.values(Parameter(0))


def _in_order(value: Value, scope: Scope) -> Expr:
    """Return the sort key of rows that are ordered by a value."""
    return whole(sorted_by(value) if scope.dialect.numeric_booleans else value)


def _is_read(value: Value) -> bool:
    """Whether it is a column of a binding."""
    return is_column(value.expr) and all(map(is_column, value.nulls))


def query_of_rows(node: plan.Node, schema: Schema, around: Scope, name: str = "") -> Query:
    """A query whose rows are there already."""
    values = schema.values(Parameter(0))
    scope = around.over([Source(name, tuple(zip(schema.names, values, strict=True)))], 1)
    scope.schema = schema
    return Query(node, scope, schema.names, values)
