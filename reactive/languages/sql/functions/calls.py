"""How a line of a table of functions becomes a value.

exp.Left: of(texts.left, TEXT, TEXT, INT)      left(text, integer) gives a text
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from reactive.languages.sql.expressions.casts import applied, argument, maybe
from reactive.languages.sql.terms.arguments import peek
from reactive.languages.sql.terms.types import ANY, SqlType, sql_name
from reactive.languages.sql.terms.values import NULL_VALUE, Value, counts_told, is_null

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

Maker: TypeAlias = "Callable[[Any, Scope], Value]"
NO_TEXTS = frozenset(
    {"int", "float", "decimal", "bool", "date", "time", "timestamp", "interval"} | {"bytes"}
)
"""Kinds that DuckDB makes no text of where a function takes one."""
SAME = SqlType("any", size=0)
"""In the place of a result: the type of the first argument."""


def arguments(node: Any) -> list[exp.Expr]:
    """The arguments of a call, in the order in which they are written."""
    return list(_arguments(node))


def _arguments(node: Any) -> Iterator[exp.Expr]:
    names = ["expressions"] if isinstance(node, exp.Anonymous) else list(node.arg_types)
    for name in names:
        given = peek(node, name)
        parts = given if isinstance(given, list) else [given]
        for place, each in enumerate(parts):
            if isinstance(each, exp.Expr) and not isinstance(each, exp.Var):
                asked = node.args.get(name)  # which is read now
                yield asked[place] if parts is given else asked


def of(
    function: Callable[..., Any],
    result: SqlType,
    *parameters: SqlType,
    optional: int = 0,
    nullable: bool = False,
) -> Maker:
    """A function that is NULL where an argument is; if it is `nullable`, elsewhere too.

    `parameters` are the types that it takes, `ANY` for any; the last `optional` may be left out.
    Without parameters it takes as many of any type as it is given.
    """

    def made(node: Any, scope: Scope) -> Value:
        values = given(node, scope, *parameters, optional=optional)
        if any(map(is_null, values)):
            return NULL_VALUE
        kind = values[0].type if result is SAME else result
        return (maybe if nullable else applied)(function, kind, *values)

    return made


def given(node: Any, scope: Scope, *parameters: SqlType, optional: int = 0) -> list[Value]:
    """The values of the arguments, as the types that a function takes.

    Raises
    ------
    PlanError: there are too few or too many.
    """
    nodes = arguments(node)
    if parameters and not len(parameters) - optional <= len(nodes) <= len(parameters):
        told = counts_told(len(parameters) - optional, len(parameters), len(nodes))
        raise scope.error(node, f"{name_of(node)}() {told}")
    values = [scope.value(each) for each in nodes]
    kinds = (*parameters, *[ANY] * len(values))
    for value, kind in zip(values, kinds, strict=False):
        if value.type.kind == "uuid" and kind.kind not in ("any", "uuid"):
            raise scope.error(node, f"{name_of(node)}() takes no UUID", "cast it to text")
        if kind.kind == "text" and value.type.kind in NO_TEXTS and scope.dialect.name == "duckdb":
            raise scope.error(
                node,
                f"duckdb has no {name_of(node)}() of {sql_name(value.type)}",
                "cast it to text",
            )
    return [
        value if kind.kind == "any" else argument(value, kind, scope)
        for value, kind in zip(values, kinds, strict=False)
    ]


def name_of(node: Any) -> str:
    """What a function is called."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return str(node.sql_name()).lower() if isinstance(node, exp.Func) else node.key


def strings(node: Any) -> str:
    """The text of a constant argument, as the name of a unit."""
    return str(node.name)
