"""Names of columns that a SELECT names by nothing but their expressions.

                  duckdb, sqlite          postgres
count(*)          count(*)                count
a + 1             a + 1                   ?column?
not a             NOT a                   ?column?
a::text           CAST(a AS TEXT)         a
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from reactive.languages.sql.expressions.scalar import CALL, written_name
from reactive.languages.sql.terms.errors import source_of
from reactive.languages.sql.terms.scope import Scope

CUT = (
    exp.Array | exp.Case | exp.Cast | exp.Collate | exp.Exists | exp.Is | exp.Neg | exp.Not
    | exp.BitwiseNot | exp.Query | exp.Struct | exp.Subquery | exp.Tuple
)  # fmt: skip
"""Expressions whose first or last word has no place in the text that is known."""
UNNAMED = "?column?"
"""The name that Postgres gives what has none."""


def name_of_column(node: Any, scope: Scope) -> str:
    """Return the name of an expression that is neither a column nor has an alias."""
    if scope.dialect.name == "postgres":
        return _of_postgres(node, scope) or UNNAMED
    text = source_of(scope.text, node)
    is_call = isinstance(node, exp.Func | exp.Anonymous) and not isinstance(node, exp.Binary)
    is_cut = _is_cut(node, "this") or _is_cut(node, "expression")
    is_whole = not is_cut and (CALL.match(text) is not None or not is_call)
    return text if text and is_whole else str(node.sql(scope.dialect.name))


def _is_cut(node: Any, side: str) -> bool:
    """Return True if the first or last part of an expression is not whole in its text."""
    while not isinstance(node, CUT):
        part = node.args.get(side)
        if not isinstance(node, exp.Binary | exp.Predicate) or not isinstance(part, exp.Expr):
            return False
        node = part
    return True


def _of_postgres(node: Any, scope: Scope) -> str:
    """Return what Postgres calls a column; no text of what has no name."""
    match node:
        case exp.Column():
            return str(node.name)
        case exp.Dot():
            return str(node.expression.name)
        case exp.Cast():
            return _of_postgres(node.this, scope) or _type_name(node.to)
        case exp.Interval():
            return "interval"
        case exp.Case():
            return _of_postgres(node.args.get("default") or exp.Null(), scope) or "case"
        case exp.Subquery() | exp.Select():
            first = node.this.selects[0] if isinstance(node, exp.Subquery) else node.selects[0]
            return first.alias or _of_postgres(first, scope)
        case exp.Exists():
            return "exists"
        case exp.Array():
            return "array"
        case exp.Tuple():
            return "row"
        case exp.Paren() | exp.Bracket() | exp.Collate() | exp.Window() | exp.Filter():
            return _of_postgres(node.this, scope)
        case exp.WithinGroup() | exp.IgnoreNulls() | exp.RespectNulls():
            return _of_postgres(node.this, scope)
        case exp.Binary() | exp.Unary() | exp.Predicate() | exp.Connector():
            return ""
        case exp.Func() | exp.Anonymous():
            return _called_name(node, scope)
        case _:
            return ""


def _called_name(node: Any, scope: Scope) -> str:
    """Return the name of a function: as it is written, or as the dialect writes it."""
    found = CALL.match(source_of(scope.text, node)) or CALL.match(node.sql("postgres"))
    return found[1].lower() if found else written_name(node, scope)


_TYPES = {
    "SMALLINT": "int2",
    "INT": "int4",
    "BIGINT": "int8",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "DECIMAL": "numeric",
    "BOOLEAN": "bool",
    "CHAR": "bpchar",
    "VARBINARY": "bytea",
}


def _type_name(declared: Any) -> str:
    """Return what Postgres calls a type; of an array, the type of its elements."""
    while declared.this == exp.DataType.Type.ARRAY and declared.expressions:
        declared = declared.expressions[0]
    name = str(getattr(declared.this, "value", declared.this))
    return _TYPES.get(name, name.lower())
