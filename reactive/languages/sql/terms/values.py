"""Values of SQL as expressions: what a value is, and when it is NULL.

    a.x           x of the row, NULL where that is None           Value(a.x, nulls=(a.x,))
    a.x + b.y     NULL where x or y is                            Value(a.x + b.y, nulls=(a.x, b.y))
    b.y           where a left join may have no row b             Value(b.y, nulls=(b, b.y))
    case ...      what gives None by itself                       Value(e, nulls=(e,))

Of no value three things are asked at run time: the analysis says which leaves can make it NULL, and
an expression is evaluated where none of them is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

from optimizer.expr import (
    NONE,
    Attribute,
    Call,
    Conditional,
    Constant,
    Expr,
    Item,
    Operation,
    Outer,
    Parameter,
    conjunction,
    constant,
)
from optimizer.record import record
from reactive.languages.sql.runtime.intervals import Interval, parts_of
from reactive.languages.sql.terms.types import (
    NULL,
    SqlType,
    has_sample,
    sample_of,
    sql_name,
    type_of_value,
)


@record
class Value:
    """A typed value: `expr` where no leaf of `nulls` is None, and NULL where one is.

    Leaves are asked in their order; a later one may presuppose that those before are not None.
    """

    expr: Expr
    type: SqlType
    nulls: tuple[Expr, ...] = ()

    @property
    def nullable(self) -> bool:
        return bool(self.nulls)


NULL_VALUE = Value(NONE, NULL, (NONE,))


def literal(value: Any, name: str | None = None) -> Value:
    """A Python value as a constant."""
    if value is None:
        return NULL_VALUE
    kind = type_of_value(value)
    if isinstance(value, Interval):
        return Value(Constant(value, (Interval, *parts_of(value)), name), kind)
    return Value(constant(value, name), kind)


def callee(function: Any) -> Constant:
    """A function as a constant; one that is a record is equal to another that is equal."""
    is_record = hasattr(type(function), "__dataclass_fields__")
    return Constant(function, (type(function), function)) if is_record else constant(function)


def is_null(value: Value) -> bool:
    """Whether it is NULL for certain."""
    return NONE in value.nulls


def present(*values: Value) -> tuple[Expr, ...]:
    """Tests that are all true where no value is NULL, in the order in which they are asked."""
    return tuple(Operation("is not", (leaf, NONE)) for leaf in leaves(*values))


def leaves(*values: Value) -> tuple[Expr, ...]:
    """What may make one of the values NULL, each once."""
    return tuple(dict.fromkeys(leaf for value in values for leaf in value.nulls))


def whole(value: Value) -> Expr:
    """The value, or None where it is NULL."""
    if not value.nulls or value.nulls == (value.expr,):
        return value.expr
    if is_null(value):
        return NONE
    tests = present(value)
    if value.nulls[-1] == value.expr:  # it is None itself, where those before it are not
        tests = tests[:-1]
    return Conditional(conjunction(tests), value.expr, NONE)


def itself(expr: Expr, kind: SqlType) -> Value:
    """What gives None by itself where it is NULL."""
    return Value(expr, kind, (expr,))


def strict(expr: Expr, kind: SqlType, *of: Value) -> Value:
    """What is NULL where one of the values is that it is made of, and nowhere else."""
    return Value(expr, kind, leaves(*of))


class ArgumentError(TypeError):
    """A function of SQL does not take arguments; the message follows the name of the function."""


class ArgumentCountError(ArgumentError):
    """A function of SQL is called with more or fewer arguments than it has."""

    def __init__(self, least: int, most: int | None, count: int) -> None:
        super().__init__(counts_told(least, most, count))


def counts_told(least: int, most: int | None, count: int) -> str:
    """Return the reason why a function does not take a number of arguments.

    >>> counts_told(1, 2, 3), counts_told(1, 1, 0)
    ('takes 1 or 2 arguments, and got 3', 'takes 1 argument, and got 0')
    """
    several = range(least, least + 1 if most is None else most + 1)
    wanted = " or ".join(map(str, several)) + (" or more" if most is None else "")
    return f"takes {wanted} argument{'s' * (wanted != '1')}, and got {count}"


class ArgumentTypeError(ArgumentError):
    """A function of SQL is called with arguments of types that it does not take."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        super().__init__(f"takes no {', '.join(map(sql_name, types))}")


def check_arguments(function: Any, of: Sequence[Value]) -> None:
    """Check that a Python function can be called with as many arguments, of such types.

    Raises
    ------
    ArgumentCountError, ArgumentTypeError: it cannot.
    """
    check_count(function, len(of))
    known = tuple([_known_of(value) for value in of])
    if None in known or not of:
        return
    try:
        takes = _takes(function, known)
    except TypeError:  # the function has no hash
        takes = _takes.__wrapped__(function, known)
    if not takes:
        shown = [value.type for value, each in zip(of, known, strict=True) if each is value.type]
        raise ArgumentTypeError(shown or [value.type for value in of])


def _known_of(value: Value) -> SqlType | str | None:
    """Return what is known of an argument: a short constant text, or its type; None if neither."""
    constant_text = value.expr.value if isinstance(value.expr, Constant) else None
    if isinstance(constant_text, str) and len(constant_text) < 100:
        return constant_text
    return value.type if has_sample(value.type) else None


@lru_cache(maxsize=4_000)
def _takes(function: Any, known: tuple[SqlType | str, ...]) -> bool:
    """Return True unless a function raises TypeError or AttributeError of values of the types."""
    values = [each if isinstance(each, str) else sample_of(each) for each in known]
    try:
        function(*values)
    except (TypeError, AttributeError):
        return False
    except Exception:  # these values are odd to it, but not their types
        return True
    return True


_COUNTS: WeakKeyDictionary[Any, tuple[int, int | None]] = WeakKeyDictionary()
"""The numbers of arguments that functions take, those of users too."""


def check_count(function: Any, count: int) -> None:
    """Check that a Python function can be called with a number of arguments.

    Raises
    ------
    ArgumentCountError: it cannot.
    """
    least, most = _counts_of(function)
    if count < least or (most is not None and count > most):
        raise ArgumentCountError(least, most, count)


def _counts_of(function: Any) -> tuple[int, int | None]:
    """Return the least and the greatest number of arguments; None if there is no greatest."""
    try:
        known = _COUNTS.get(function)
        if known is None:
            known = _COUNTS[function] = _read_counts(function)
        return known
    except TypeError:  # no weak references to it, or no hash
        return _read_counts(function)


def _read_counts(function: Any) -> tuple[int, int | None]:
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not say
        return 0, None
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in by_place)
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return least, None if is_open else len(by_place)


def called(function: Any, kind: SqlType, *of: Value) -> Value:
    """A call of a function that is NULL where an argument is.

    Raises
    ------
    ArgumentCountError: the function does not take as many arguments.
    ArgumentTypeError: it does not take arguments of such types.
    """
    check_arguments(function, of)
    return strict(Call(callee(function), tuple(v.expr for v in of)), kind, *of)


def is_simple(expr: Expr) -> bool:
    """Whether evaluating it twice costs next to nothing: a field of a row."""
    while isinstance(expr, Attribute | Item):
        expr = expr.of
    return isinstance(expr, Parameter | Outer | Constant)


def is_column(expr: Expr) -> bool:
    """Whether it is a field of a binding, or a binding."""
    while isinstance(expr, Attribute) or (
        isinstance(expr, Item) and isinstance(expr.key, Constant)
    ):
        expr = expr.of
    return isinstance(expr, Parameter)
