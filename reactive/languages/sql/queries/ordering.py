"""ORDER BY, LIMIT and DISTINCT ON, and the columns of a SELECT with their names.

Names of columns that a SELECT names by nothing but their expressions.

                  duckdb, sqlite          postgres
count(*)          count(*)                count
a + 1             a + 1                   ?column?
not a             NOT a                   ?column?
a::text           CAST(a AS TEXT)         a
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.record import record
from reactive.api.columns import plan_of_count
from reactive.languages.sql.expressions.comparisons import by_parts
from reactive.languages.sql.expressions.scalar import CALL, written_name
from reactive.languages.sql.queries.grouping import evaluated_constant, freed, grouping_key
from reactive.languages.sql.sqlite.comparisons import bare, grouped_by, sorted_by
from reactive.languages.sql.terms.common_types import is_bare
from reactive.languages.sql.terms.errors import source_of
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import TypedValue, as_optional

# ORDER BY, LIMIT and DISTINCT ON.


def order_of(
    node: Any, scope: Scope, columns: Sequence[SelectColumn], values: Sequence[TypedValue]
) -> list[tuple[Any, TypedValue]]:
    """Return the parts of ORDER BY, each with its value; none without ORDER BY."""
    order = node.args.get("order")
    if order is None:
        return []
    found = []
    for each in order.expressions:
        if isinstance(each.this, exp.Column | exp.Var) and each.this.name.upper() == "ALL":
            found += [(each, value) for value in values]
        else:
            place = position_of(each.this, scope, columns)
            found.append((each, scope.value(each.this) if place is None else values[place]))
    return found


def position_of(node: Any, scope: Scope, columns: Sequence[SelectColumn]) -> int | None:
    """Return the SELECT column of a number or name, None for others; refuse a number beyond."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        place = int(node.this)
        if not 1 <= place <= len(columns):
            raise scope.error(node, f"there is no column {place}", f"SELECT has {len(columns)}")
        return place - 1
    if isinstance(node, exp.Column) and is_bare(node):
        named = [n for n, c in enumerate(columns) if c.name.casefold() == node.name.casefold()]
        aliases = [n for n in named if columns[n].is_alias]
        if aliases or named:
            return (aliases or named)[0]
    return None


def plan_sort_keys(
    order: Sequence[tuple[Any, TypedValue]], scope: Scope
) -> tuple[plan.SortKey, ...]:
    """Return the keys as the plan has them."""
    return tuple(plan_sort_key(each, value, scope) for each, value in order)


def plan_sort_key(node: Any, value: TypedValue, scope: Scope) -> plan.SortKey:
    """Return one key of an order: `node` says its direction, and where NULL stands."""
    descending = bool(node.args.get("desc"))
    nulls_first = node.args.get("nulls_first")
    nulls: Any = None if not value.nullable else "first" if nulls_first else "last"
    value = (sorted_by if scope.dialect.numeric_booleans else grouped_by)(value)
    value = by_parts(value)
    return plan.SortKey(scope.function(as_optional(value), node), descending, nulls)


def limits(node: Any, scope: Scope) -> tuple[int | plan.Table | None, int]:
    """Return how many rows (None: all) and how many before them are skipped; refuse PERCENT."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    wanted: int | plan.Table | None = None
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
            raise scope.error(limit, "FETCH can neither have PERCENT nor WITH TIES")
        if options is not None:
            options.args.get("rows")  # a word without a meaning
        limit.args.get("direction")  # FIRST and NEXT mean the same
        wanted = _row_limit(limit.args.get("count"), scope)
    elif limit is not None:
        options = limit.args.get("limit_options")
        if options is not None and options.args.get("percent"):
            raise scope.error(limit, "LIMIT cannot be a percentage", "give a number of rows")
        if limit.args.get("expressions"):
            raise scope.error(limit, "LIMIT BY is not supported", "number the rows: row_number()")
        wanted = _limit(limit.expression, scope)
    return wanted, (_row_limit(offset.expression, scope) or 0) if offset is not None else 0


def _limit(node: Any, scope: Scope) -> int | plan.Table | None:
    """Return a number of rows as `_row_limit` does, or the parameter of the database that it is."""
    parameter = scope.moving_parameter(node)
    if parameter is None:
        return _row_limit(node, scope)
    try:
        return plan_of_count(parameter, scope.environment.engine)
    except PlanError as error:
        raise scope.error(node, *str(error).split("\n  ")) from None


def _row_limit(node: Any, scope: Scope) -> int | None:
    """Return a number of rows, None if it is NULL; refuse one that tables decide."""
    if node is None:
        return 1
    if scope.moving_parameter(node) is not None:
        raise scope.error(node, "OFFSET cannot be a parameter", "give it a number")
    if node.find(exp.Table) is not None:
        raise scope.error(
            node,
            "the number of rows depends on tables",
            "number the rows: qualify row_number() over (order by ...) <= (select ...)",
        )
    empty = scope.around()
    found = evaluated_constant(_of_constant_query(node), empty)
    if found is None or (found == -1 and scope.dialect.name == "sqlite"):
        return None
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise scope.error(node, f"a number of rows cannot be {found!r}")
    return found


def _of_constant_query(node: Any) -> Any:
    """Return the only expression of a query without FROM; any other node as it is."""
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.this
    known = {"kind", "hint", "expressions"}
    plain = isinstance(node, exp.Select) and not {n for n, v in node.args.items() if v} - known
    return _of_constant_query(node.expressions[0]) if plain and len(node.expressions) == 1 else node


def distinct_on(
    node: plan.Node,
    scope: Scope,
    on: Sequence[TypedValue],
    keys: tuple[plan.SortKey, ...],
    values: Sequence[TypedValue],
) -> plan.Node:
    """Return the first row, by `keys` or all columns, of each group of rows with equal `on`."""
    if not keys:
        if scope.dialect.numeric_booleans:  # the same texts by a collation stand in an order
            values = [bare(value) for value in values]
        keys = tuple(plan_sort_key(exp.Ordered(), v, scope) for v in values)
    return freed(plan.Top(node, scope.function(grouping_key(on)), keys, 1))


# The columns of a SELECT, with the columns of a star.


@record
class SelectColumn:
    """A column of a SELECT: its name, its node, and whether the name is an alias."""

    name: str
    node: Any
    is_alias: bool


CUT = (
    exp.Array | exp.Case | exp.Cast | exp.Collate | exp.Exists | exp.Is | exp.Neg | exp.Not
    | exp.BitwiseNot | exp.Query | exp.Struct | exp.Subquery | exp.Tuple
)  # fmt: skip
"""Expressions whose first or last word has no place in the text that is known."""
UNNAMED = "?column?"
"""The name that Postgres gives an unnamed column."""


def name_of_column(node: Any, scope: Scope) -> str:
    """Return the name of an expression that is neither a column nor has an alias."""
    if scope.dialect.name == "postgres":
        return _postgres_name(node, scope) or UNNAMED
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


def _postgres_name(node: Any, scope: Scope) -> str:
    """Return the name that Postgres gives a column; an empty text for an unnamed one."""
    match node:
        case exp.Column():
            return str(node.name)
        case exp.Dot():
            return str(node.expression.name)
        case exp.Cast():
            return _name_without_casts(node.this, scope) or _postgres_type_name(node.to)
        case exp.Interval():
            return "interval"
        case exp.Case():
            return _name_without_casts(node, scope) or "case"
        case exp.Subquery() | exp.Select():
            first = node.this.selects[0] if isinstance(node, exp.Subquery) else node.selects[0]
            return first.alias or _postgres_name(first, scope)
        case exp.Exists():
            return "exists"
        case exp.Array():
            return "array"
        case exp.Tuple():
            return "row"
        case exp.Paren() | exp.Bracket() | exp.Collate() | exp.Window() | exp.Filter():
            return _postgres_name(node.this, scope)
        case exp.WithinGroup() | exp.IgnoreNulls() | exp.RespectNulls():
            return _postgres_name(node.this, scope)
        case exp.Binary() | exp.Unary() | exp.Predicate() | exp.Connector():
            return ""
        case exp.Func() | exp.Anonymous():
            return _called_name(node, scope)
        case _:
            return ""


def _name_without_casts(node: Any, scope: Scope) -> str:
    """Return the name of what is cast; an empty text for what has its name from a type, or CASE."""
    while isinstance(node, exp.Cast | exp.Paren | exp.Case):
        is_case = isinstance(node, exp.Case)
        node = (node.args.get("default") or exp.Null()) if is_case else node.this
    return "" if isinstance(node, exp.Interval) else _postgres_name(node, scope)


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


def _postgres_type_name(declared: Any) -> str:
    """Return what Postgres calls a type; of an array, the type of its elements."""
    while declared.this == exp.DataType.Type.ARRAY and declared.expressions:
        declared = declared.expressions[0]
    name = str(getattr(declared.this, "value", declared.this))
    return _TYPES.get(name, name.lower())
