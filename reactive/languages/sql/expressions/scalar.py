"""Values: columns, constants, operators, casts, and calls of functions.

    a + b                 Value(a + b, nulls=(a, b))
    coalesce(a, 0)        Value(a if a is not None else 0)
    case when p then a end    Value(a if true(p) else None, nulls=(itself,))

Each function is a line of `functions.TABLE`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Slot
from reactive.languages.sql import functions
from reactive.languages.sql.aggregates import kinds as aggregates
from reactive.languages.sql.expressions import arithmetic, collations, zones
from reactive.languages.sql.expressions.casts import apply, cast
from reactive.languages.sql.expressions.operands import check_operands
from reactive.languages.sql.expressions.predicate import condition_value
from reactive.languages.sql.functions import structs
from reactive.languages.sql.json import of_duckdb
from reactive.languages.sql.postgres import operators
from reactive.languages.sql.postgres.forms import decimal_of_text
from reactive.languages.sql.postgres.functions import TABLE as of_postgres
from reactive.languages.sql.postgres.grammar import PREFIX_PLUS
from reactive.languages.sql.runtime import texts
from reactive.languages.sql.sqlite import comparisons as of_sqlite
from reactive.languages.sql.sqlite import functions as sqlite
from reactive.languages.sql.terms.errors import nearest, source_of
from reactive.languages.sql.terms.types import TEXT, SqlType, length_of_sql, type_of_sql
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    ArgumentError,
    TypedValue,
    literal_value,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

CALL = re.compile(r"(\w+)\s*\(")
OF_DIALECTS: dict[str, dict[Any, Any]] = {"postgres": of_postgres, "sqlite": sqlite.TABLE}
"""The functions of dialects that have their own only."""


def value(node: Any, scope: Scope) -> TypedValue:
    """Return the value of a node.

    Raises
    ------
    PlanError: there is no such column, function or type.
    """
    check_operands(node, scope)
    match node:
        case exp.Column():
            return scope.column(node)
        case exp.Literal():
            return _literal(node, scope)
        case exp.Boolean():
            return literal_value(
                int(node.this) if scope.dialect.numeric_booleans else bool(node.this)
            )
        case exp.Null():
            return NULL_VALUE
        case exp.Paren() if node.meta.get(PREFIX_PLUS):
            return operators.positive(node, scope)
        case exp.Paren() | exp.Alias():
            return scope.value(node.this)
        case exp.Placeholder() | exp.Parameter():
            return scope.parameter(node)
        case exp.Subquery() | exp.Select() | exp.SetOperation():
            value = scope.subquery(node)
            return of_sqlite.without_collation(value) if scope.dialect.name == "sqlite" else value
        case exp.Cast():
            return collations.keep_collation(_cast(node, scope), node.this, scope)
        case exp.Collate() if scope.dialect.name == "duckdb":
            return collations.translate_collate(node, scope)
        case exp.Tuple():
            return structs.row_of(node, scope)
        case exp.Lambda() if scope.dialect.name == "duckdb":
            return of_duckdb.lambda_or_arrow(node, scope)
        case exp.Dot():
            return scope.field(scope.value(node.this), node.expression.name, node)
        case exp.HexString() | exp.BitString() if scope.dialect.name == "postgres":
            raise scope.error(node, "bit strings of postgres are not supported", "use bytea")
        case exp.HexString() if scope.dialect.name == "duckdb" and _is_hex_number(node, scope):
            raise scope.error(node, "duckdb has no numbers in hexadecimal digits")
        case exp.ByteString() | exp.HexString():
            return literal_value(
                bytes.fromhex(node.this) if isinstance(node, exp.HexString) else node.this
            )
        case _ if arithmetic.is_arithmetic(node) and scope.dialect.name == "postgres":
            return operators.translate_operator(node, scope)
        case _ if scope.dialect.name == "sqlite" and of_sqlite.is_sqlite_operator(node):
            return of_sqlite.translate_sqlite_operator(node, scope)
        case _ if arithmetic.is_arithmetic(node) and scope.dialect.name == "duckdb":
            made = arithmetic.translate_arithmetic(node, scope)
            if scope.collated:
                collations.check_parts(node, scope)
            return made
        case _:
            return _condition_or_call(node, scope)


def _condition_or_call(node: Any, scope: Scope) -> TypedValue:
    """Return a condition, or a call of a function; refuse unknown functions and other nodes."""
    made = _read_call(node, scope)
    if scope.collated:
        collations.check_parts(node, scope)
    return made


def _read_call(node: Any, scope: Scope) -> TypedValue:
    maker = _maker_of(node, scope)
    try:
        made: TypedValue | None = zones.call_on_instants(node, scope, maker, cast, apply)
        if made is None and maker is not None:
            made = maker(node, scope)
    except ArgumentError as error:
        raise scope.error(node, f"{written_name(node, scope)}() {error}") from None
    if made is not None:
        return made
    if isinstance(
        node, exp.Predicate | exp.Connector | exp.Not | exp.Between | exp.In | exp.Escape
    ):
        return condition_value(node, scope)
    if isinstance(node, exp.Anonymous | exp.Func):
        raise unknown_function(node, scope)
    if isinstance(node, exp.Window):
        raise scope.error(
            node,
            "a window function cannot stand here",
            "write the condition as QUALIFY, or select the window in a sub-query",
        )
    raise scope.error(node, f"{node.sql(scope.dialect.name)} is not supported here")


WINDOWS_OF_TIME = frozenset(
    f"{name}{end}" for name in ("tumble", "hop", "session") for end in ("", "_start", "_end")
)


def written_name(node: Any, scope: Scope) -> str:
    """Return the name of a function as written; sqlglot may use another name."""
    found = CALL.match(source_of(scope.text, node))
    return found[1].lower() if found else functions.function_name(node)


def _maker_of(node: Any, scope: Scope) -> Any:
    """Return the function that makes the value of a call; None if the dialect has none."""
    if scope.dialect.name == "duckdb":
        return functions.maker_of(node)
    table = OF_DIALECTS[scope.dialect.name]
    return table.get(node.name.lower() if isinstance(node, exp.Anonymous) else type(node))


def unknown_function(node: Any, scope: Scope) -> Exception:
    """Return the error about a function that there is not."""
    name, where = written_name(node, scope), ""
    known = (*functions.NAMES, *aggregates.NAMES)
    if scope.dialect.name != "duckdb":
        table = OF_DIALECTS[scope.dialect.name]
        known = tuple(each for each in table if isinstance(each, str))
        where = f" in {scope.dialect.name}"
    if name in aggregates.OF_WINDOWS:
        return scope.error(node, f"{name}() needs a window", f"{name}(...) OVER (ORDER BY ...)")
    if name in aggregates.NAMES and isinstance(node, exp.AggFunc):
        return scope.error(
            node,
            f"the aggregate {name}() cannot stand here",
            "write the condition as HAVING, or aggregate in a sub-query",
        )
    if name in WINDOWS_OF_TIME:
        call = name.partition("_")[0]
        return scope.error(
            node,
            f"{name}() is of the windows of a GROUP BY",
            f"write GROUP BY {call}(at, ...), or FROM {call}(table t, descriptor(at), ...)",
        )
    if name in known:
        return scope.error(node, f"{name}() does not take these arguments")
    not_supported = {"sqlite": sqlite.NOT_SUPPORTED, "duckdb": functions.NOT_SUPPORTED}
    if name in not_supported.get(scope.dialect.name, ()):
        return scope.error(
            node,
            f"the function {name}() of {scope.dialect.name} is not supported",
            "map the rows in Python: relation.select(...)",
        )
    return scope.error(
        node,
        f"there is no function {name!r}{where}{nearest(name, known)}",
        "write the query without it, or map the rows in Python: relation.select(...)",
    )


def _is_hex_number(node: exp.HexString, scope: Scope) -> bool:
    """Return True if a hexadecimal literal is written as a number (`0x1F`), not as bytes."""
    return source_of(scope.text, node).lower().startswith("0x")


def _literal(node: exp.Literal, scope: Scope) -> TypedValue:
    """Return a literal as a constant, with the type that the dialect gives it."""
    held = scope.open_value(node)
    if held is None:
        return _constant_of_literal(node, scope)
    return replace(_constant_of_literal(node, scope), expr=Slot(held))


def _constant_of_literal(node: exp.Literal, scope: Scope) -> TypedValue:
    """Return the constant of a literal, with the type that the dialect gives it."""
    text = node.this
    if node.is_string:
        return literal_value(text)
    if scope.dialect.name == "postgres":
        return _read_postgres_number(text)
    if text.isdigit():
        made = literal_value(int(text))
        return TypedValue(made.expr, SqlType("int", size=4 if len(text) < 10 else 8))
    if "e" in text.lower() or not scope.dialect.exact_literals:
        return literal_value(float(text))
    digits = text.partition(".")[2]
    kind = SqlType("decimal", len(text.replace(".", "")), len(digits))
    return TypedValue(literal_value(Decimal(text)).expr, kind)


def _read_postgres_number(text: str) -> TypedValue:
    """Return a number of Postgres: an integer of the size that it needs, or a numeric."""
    if text.isdigit() and int(text) < 1 << 63:
        made = literal_value(int(text))
        return TypedValue(made.expr, SqlType("int", size=4 if int(text) < 1 << 31 else 8))
    return literal_value(decimal_of_text(text))


def _cast(node: Any, scope: Scope) -> TypedValue:
    """Translate CAST, TRY_CAST, and constants such as DATE '2024-01-01'; refuse unknown types."""
    if scope.dialect.name == "sqlite":
        return sqlite.cast_to_affinity(node, scope)
    kind = type_of_sql(node.args["to"])
    is_bits = node.args["to"].this == exp.DType.BIT
    if kind is None or (scope.dialect.name == "duckdb" and (kind.kind == "jsonb" or is_bits)):
        raise scope.error(node, f"there is no type {node.args['to'].sql()!r}")
    if kind.kind == "decimal" and kind.precision is None and scope.dialect.name == "duckdb":
        kind = SqlType("decimal", 18, 3)
    if scope.dialect.name == "postgres":
        scope.at = (node,)
        if is_bits:
            raise scope.error(node, "bit strings of postgres are not supported", "use bytea")
        if node.args["to"].this == exp.DType.CHAR and not node.args["to"].expressions:
            raise scope.error(node, "CHAR of postgres is CHAR(1), which is not supported", "text")
    scope.at = (node,)
    attempt = isinstance(node, exp.TryCast)
    made = cast(scope.value(node.this), kind, scope, attempt=attempt, exact=True)
    length = checked_length(node.args["to"], scope)
    return made if length is None else apply(texts.cut, TEXT, made, literal_value(length))


def checked_length(declared: Any, scope: Scope) -> int | None:
    """Return the greatest length that a type allows a text; None without one. Refuse CHAR(n)."""
    if scope.dialect.name == "sqlite":
        _ = [each.name for each in declared.expressions]  # SQLite reads past them
        return None
    length = length_of_sql(declared)
    if length is not None and declared.this.value in ("CHAR", "NCHAR", "BPCHAR"):
        raise scope.error(declared, "CHAR(n) pads with blanks, and is not supported", "VARCHAR(n)")
    return length
