"""The kinds of operands that DuckDB's operators take, as its binder has them.

    -x                numbers, intervals       3 - true      refused
    x & y, x << y     integers                 date % 3      refused
    x like y          texts                    12 like '1%'  refused

A text that is written out stands for a value of any kind: `'3' + 1` is 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Constant
from reactive.languages.sql.terms.types import NUMBERS, sql_name

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope
    from reactive.languages.sql.terms.values import TypedValue

_TIMES = frozenset({"date", "time", "timestamp", "interval"})
_KINDS = NUMBERS | _TIMES | {"bool", "text", "bytes", "array", "map", "struct", "json"}
"""Kinds whose operators are known."""
_INTEGERS, _TEXTS = frozenset({"int"}), frozenset({"text", "json"})
_ADDED = _KINDS - {"bool", "json"}
_TAKEN: dict[type[exp.Expr], tuple[str, frozenset[str]]] = {
    exp.Neg: ("-", NUMBERS | {"interval"}),
    exp.BitwiseNot: ("~", _INTEGERS),
    exp.Add: ("+", _ADDED),
    exp.Sub: ("-", _ADDED),
    exp.Mul: ("*", _ADDED),
    exp.Div: ("/", NUMBERS | {"interval"}),
    exp.IntDiv: ("//", NUMBERS),
    exp.Mod: ("%", NUMBERS),
    exp.Pow: ("^", NUMBERS),
    exp.BitwiseAnd: ("&", _INTEGERS),
    exp.BitwiseOr: ("|", _INTEGERS),
    exp.BitwiseLeftShift: ("<<", _INTEGERS),
    exp.BitwiseRightShift: (">>", _INTEGERS),
    exp.Like: ("LIKE", _TEXTS),
    exp.ILike: ("ILIKE", _TEXTS),
    exp.SimilarTo: ("SIMILAR TO", _TEXTS),
}


def check_operands(node: Any, scope: Scope) -> None:
    """Check the operands of an operator of DuckDB.

    Raises
    ------
    PlanError: the operator takes no values of their types.
    """
    if scope.dialect.name != "duckdb" or type(node) not in _TAKEN:
        return
    symbol, taken = _TAKEN[type(node)]
    operands = [node.this] if isinstance(node, exp.Unary) else [node.this, node.expression]
    if any(isinstance(each, exp.Any | exp.All | exp.Query) for each in operands):
        return
    values = [scope.value(each) for each in operands]
    if any(
        value.type.kind in _KINDS - taken
        and not (value.type.kind == "text" and isinstance(value.expr, Constant))
        for value in values
    ):
        names = " and ".join(sql_name(value.type) for value in values)
        raise scope.error(node, f"there is no {symbol} for {names}", "cast what is of another type")


def check_condition(value: TypedValue, node: Any, scope: Scope) -> None:
    """Check a value that DuckDB or Postgres is to ask whether it is true.

    Raises
    ------
    PlanError: values of its type are neither true nor false.
    """
    if _is_no_condition(value, scope):
        raise scope.error(
            node, f"{sql_name(value.type)} is no condition", "compare it with something"
        )


def _is_no_condition(value: TypedValue, scope: Scope) -> bool:
    """Return True if the dialect takes no value of this type as a condition."""
    if scope.dialect.name == "duckdb":
        return value.type.kind in _KINDS - NUMBERS - {"bool", "text"}
    is_constant_text = value.type.kind == "text" and isinstance(value.expr, Constant)
    return value.type.kind not in ("bool", "any", "null") and not is_constant_text
