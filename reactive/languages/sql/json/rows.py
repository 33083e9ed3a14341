"""Calls that give rows of JSON, in FROM with columns of their own.

from jsonb_each(j)                    columns key, value
from jsonb_array_elements(j) as e     column value, which `e` stands for, too
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Item, constant
from optimizer.record import record
from reactive.languages.sql.json import of_duckdb, of_postgres
from reactive.languages.sql.terms.calls import function_name
from reactive.languages.sql.terms.scope import ScopeSource
from reactive.languages.sql.terms.values import TypedValue

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope


@record
class CallSource(ScopeSource):
    """A call in FROM, whose alias stands for its only column, too."""

    whole: TypedValue | None = None

    def columns_named(self, column: str) -> list[TypedValue]:
        """Return the columns that have a name; of the alias the only column."""
        is_alias = self.whole is not None and self.name.casefold() == column.casefold()
        # `super()` fails in a class that the decorator has made anew
        found = ScopeSource.columns_named(self, column)
        return [self.whole] if is_alias and not found and self.whole is not None else found


def _gives_rows_in_postgres(node: exp.Anonymous, scope: Scope) -> bool:
    """Return True for a call of a function of Postgres that gives rows of JSON."""
    return scope.dialect.name == "postgres" and node.name.lower() in of_postgres.SET_RETURNING


def _gives_rows(node: exp.Anonymous, scope: Scope) -> bool:
    """Return True for a call of a function of DuckDB that gives rows of JSON."""
    return scope.dialect.name == "duckdb" and node.name.lower() in of_duckdb.OF_ARRAYS


def columns_of(
    call: Any, values: list[TypedValue], scope: Scope
) -> list[tuple[str, TypedValue]] | None:
    """Return the columns of a call of this module's functions in FROM; None of another call.

    Parameters
    ----------
    values: an element of the array that the call gives, and its number if FROM asks for it.
    """
    if not isinstance(call, exp.Anonymous) or not (
        _gives_rows_in_postgres(call, scope) or _gives_rows(call, scope)
    ):
        return None
    name, kind = function_name(call), values[0].type
    if kind.kind != "struct":
        own = [("value" if "_elements" in name else name, values[0])]
    else:
        items = [Item(values[0].expr, constant(place)) for place in range(len(kind.names))]
        own = [
            (field, TypedValue(item, of, (item,)))
            for field, item, of in zip(kind.names, items, kind.items, strict=True)
        ]
    return [*own, *(("ordinality", each) for each in values[1:])]
