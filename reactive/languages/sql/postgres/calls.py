"""Forms of a function by the types of its arguments, and the value that each makes.

    "abs": forms(Form(abs, None, INT), Form(numeric_absolute, DECIMAL, DECIMAL), ...)

The form is that whose types are those of the arguments, or the first that they can be made without
a cast: an integer a numeric, a numeric a float, a date a timestamp, a text constant anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call
from optimizer.record import record
from reactive.languages.sql.expressions.casts import applied, argument, maybe
from reactive.languages.sql.functions.calls import Maker, arguments, name_of
from reactive.languages.sql.postgres.numbers import RANGES
from reactive.languages.sql.terms.types import SqlType
from reactive.languages.sql.terms.values import NULL_VALUE, Value, callee, is_null, itself, whole

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

IMPLICIT = {
    "int": ("int", "decimal", "float"),
    "decimal": ("decimal", "float"),
    "date": ("date", "timestamp"),
    "time": ("time", "interval"),
}
"""Kinds that a value of a kind is implicitly cast to where no form fits, in this order."""
NAMES = {
    "int": "integer",
    "float": "double precision",
    "decimal": "numeric",
    "bool": "boolean",
    "bytes": "bytea",
    "array": "array",
    "struct": "record",
}


@record
class Form:
    """A function of arguments of some types; `result` None is the type of the first argument.

    `optional` arguments may be left out; `nullable`: it may give None; `asks_null`: it is called
    of None, too; `many`: the last parameter stands for any number of arguments.
    """

    function: Callable[..., Any]
    result: SqlType | None
    parameters: tuple[SqlType, ...] = ()
    optional: int = 0
    nullable: bool = False
    asks_null: bool = False
    many: bool = False
    sized: bool = False

    def kinds(self, count: int) -> tuple[SqlType, ...] | None:
        """The types of so many arguments; None if it does not take as many."""
        most = len(self.parameters)
        if self.many and count >= most:
            return (*self.parameters, *[self.parameters[-1]] * (count - most))
        return self.parameters[:count] if most - self.optional <= count <= most else None


def form(
    function: Callable[..., Any], result: SqlType | None, *parameters: SqlType, **more: Any
) -> Form:
    """A form with its parameters behind the result."""
    return Form(function, result, parameters, **more)


def one(
    function: Callable[..., Any], result: SqlType | None, *parameters: SqlType, **more: Any
) -> Maker:
    """A function that has one form."""
    return forms(form(function, result, *parameters, **more))


def forms(*given: Form) -> Maker:
    """A function that has several forms."""

    def made(node: Any, scope: Scope) -> Value:
        return called(given, arguments(node), node, scope)

    return made


def called(
    given: Sequence[Form], nodes: Sequence[exp.Expr], node: Any, scope: Scope, name: str = ""
) -> Value:
    """The value of the form that fits the arguments.

    Raises
    ------
    PlanError: none does.
    """
    values = [scope.value(each) for each in nodes]
    literals = [is_literal(each) for each in nodes]
    found = fitting(given, values, literals)
    if found is None:
        kinds = ", ".join(map(kind_name, values))
        known = name or name_of(node)
        raise scope.error(
            node, f"postgres has no {known}({kinds})", "cast its arguments to the types it takes"
        )
    return value_of(found, values, scope)


def value_of(found: Form, values: Sequence[Value], scope: Scope) -> Value:
    """The value of a form, of arguments that it takes."""
    kinds = found.kinds(len(values))
    assert kinds is not None
    made = [_as(value, kind, scope) for value, kind in zip(values, kinds, strict=True)]
    if found.asks_null:
        expr = Call(callee(found.function), tuple(map(whole, made)))
        kind = found.result or made[0].type
        return itself(expr, kind) if found.nullable else Value(expr, kind)
    if any(map(is_null, values)):
        return Value(NULL_VALUE.expr, found.result or made[0].type, NULL_VALUE.nulls)
    kind = found.result or made[0].type
    if found.sized:
        kind = SqlType("int", size=_size(made))
    result = (maybe if found.nullable else applied)(found.function, kind, *made)
    if found.sized and kind.size is not None:
        return applied(RANGES[kind.size], kind, result)
    return result


def _size(values: Sequence[Value]) -> int | None:
    sizes = [value.type.size for value in values if value.type.kind == "int"]
    return None if None in sizes else max(size for size in sizes if size is not None)


def _as(value: Value, kind: SqlType, scope: Scope) -> Value:
    if kind.kind == "any" or (kind.kind == value.type.kind and kind.kind != "array"):
        return value
    return argument(value, kind, scope)


def fitting(
    given: Sequence[Form], values: Sequence[Value], literals: Sequence[bool]
) -> Form | None:
    """Return the form that values fit, of which some are text constants; None if none does."""
    for exact in (True, False):
        for each in given:
            kinds = each.kinds(len(values))
            if kinds is not None and all(
                _fits(value, is_text, kind, exact=exact)
                for value, is_text, kind in zip(values, literals, kinds, strict=True)
            ):
                return each
    return None


def _fits(value: Value, is_text: bool, kind: SqlType, *, exact: bool) -> bool:
    of = value.type
    if kind.kind == "any" or of.kind in ("null", "any"):
        return True
    if kind.kind == of.kind:
        return kind.kind != "int" or None in (kind.size, of.size) or of.size <= kind.size  # type: ignore[operator]
    if exact:
        return False
    return is_text or kind.kind in IMPLICIT.get(of.kind, ())


def fits(value: Value, kind: SqlType) -> bool:
    """True if a value can be one of a type without a cast."""
    return _fits(value, False, kind, exact=False)


def is_literal(node: Any) -> bool:
    """Return True for a text constant, which may stand for a value of any type."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Literal) and node.is_string


def kind_name(value: Value) -> str:
    """Return the name that Postgres gives to the type of a value."""
    return NAMES.get(value.type.kind, value.type.kind)


def constant_text(node: Any, scope: Scope) -> str | None:
    """The text of a constant argument; None of another."""
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None
