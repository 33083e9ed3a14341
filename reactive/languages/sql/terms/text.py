"""A SQL text that is read: its dialect, its parameters, and where its nodes stand in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.callables.opaque import FROM_TEXT, Opaque
from optimizer.callables.source import Place
from optimizer.errors import PlanError
from optimizer.expr import Expr
from optimizer.record import record
from reactive.engine.codegen.shallow import Shallow
from reactive.languages.sql.terms.dialects import Dialect
from reactive.languages.sql.terms.errors import line_and_column, source_of, sql_error, start_of
from reactive.languages.sql.terms.values import Value

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

OWN_SCHEMAS = ("main", "memory", "public")
"""Names of the schema and the catalog that all tables are in, in DuckDB, SQLite and Postgres."""


def strange_schema(node: exp.Expr) -> exp.Expr | None:
    """Return the schema or catalog that a table or column names, if it is not the only one."""
    named = [part for part in map(node.args.get, ("catalog", "db")) if part is not None]
    others = [part for part in named if part.name.casefold() not in OWN_SCHEMAS]
    return others[0] if others else None


@record
class Language:
    """The callables that make expressions of nodes; each takes a node and a scope."""

    value: Callable[[Any, Scope], Value]
    true: Callable[[Any, Scope], Expr]
    false: Callable[[Any, Scope], Expr]
    subquery: Callable[[Any, Scope], Value]
    exists: Callable[[Any, Scope], Expr]
    matches: Callable[..., Expr]
    query: Callable[[Any, Scope], Any]
    """A `query.Query`; the scope says what is around it."""


@record
class Text:
    """A SQL text, its dialect, how it is read, and the parameters that were given for it."""

    sql: str
    dialect: Dialect
    language: Language
    parameters: Mapping[str, Any] = field(compare=False)
    shallow: Shallow = field(default_factory=Shallow, compare=False)
    """Cuts expressions that are deep."""

    def error(self, node: exp.Expr | None, message: str, remedy: str = "") -> PlanError:
        return sql_error(self.sql, node, message, remedy)

    def origin(self, nodes: Sequence[exp.Expr], parameters: int) -> tuple[Opaque, ...]:
        """Return what a callable was made of, for messages."""
        starts = [start for node in nodes if (start := start_of(node)) is not None]
        if not starts:
            return ()
        place = Place("<sql>", line_and_column(self.sql, min(starts))[0], "SQL")
        name = ", ".join(filter(None, (source_of(self.sql, node) for node in nodes)))
        return (Opaque(_unread, parameters, name, place, (), ("sql", name), FROM_TEXT),)


def _unread(*row: Any) -> Any:
    """Stands for a part of a text, which is no callable."""
    raise AssertionError(f"SQL is not called: {row!r}")
