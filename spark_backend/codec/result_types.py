"""Infer the result types of callables that run in Python, from their expressions and annotations.

    o.name.upper()          str, since o.name is one
    grade(o.score)          the annotation of `def grade(score: float) -> str`
    (o.id, round(o.x))      a tuple of both
    max(rows), len(rows)    from a multiset of known values
    lambda o: f(o)          unknown, if f has no annotation

Exceptions do not matter: a call that raises has no result to type. Annotations are trusted and
checked: a result of another type is an error that names it.

Sound:  operators and methods are typed for builtin types only, whose results are known.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from types import FunctionType
from typing import Any, get_args, get_origin, get_type_hints

from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Again,
    And,
    Apply,
    Attempt,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Formatted,
    Function,
    Guard,
    Item,
    Lifted,
    Operation,
    Or,
    Parameter,
    Text,
)
from optimizer.expressions.knowledge import makes_record, record_field
from reactive.api.nesting import InSequence
from reactive.engine.collections.instants import zone_named
from reactive.engine.collections.time_windows import TimeWindow, TimeWindows
from spark_backend.codec.columns import value_of
from spark_backend.codec.schema import (
    Instant,
    Plain,
    Record,
    Typed,
    Untyped,
    Whole,
    column_type,
    common_type,
    is_field_of_first_row,
    may_be_read,
    record_of,
    tuple_of,
)
from spark_backend.codec.values import Inexact, Value

_TESTS = ("not", "in", "not in", "is", "is not", "==", "!=", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "//", "%")
_BITS = ("&", "|", "^")
_PLAIN = (int, float, bool, str, bytes)
_TEXTS = (
    *("upper", "lower", "title", "capitalize", "casefold", "swapcase", "strip", "lstrip"),
    *("rstrip", "replace", "removeprefix", "removesuffix", "zfill", "ljust", "rjust", "center"),
    *("join", "format", "expandtabs", "translate"),
)
_METHODS: dict[tuple[type, str], type] = {
    **{(str, name): str for name in _TEXTS},
    **{(str, name): int for name in ("count", "find", "index", "rfind", "rindex")},
    **{(str, name): bool for name in ("startswith", "endswith", "isalpha", "isdigit", "isspace")},
    (str, "encode"): bytes,
    (bytes, "decode"): str,
    (bytes, "hex"): str,
    (float, "is_integer"): bool,
    (int, "bit_length"): int,
    (int, "bit_count"): int,
}
_CALLS: dict[Any, type] = {
    str: str,
    repr: str,
    ascii: str,
    format: str,
    chr: str,
    hex: str,
    oct: str,
    bin: str,
    int: int,
    len: int,
    ord: int,
    hash: int,
    bool: bool,
    any: bool,
    all: bool,
    isinstance: bool,
    callable: bool,
    float: float,
}
_ORDERING = (sorted, list, tuple, set, frozenset, reversed)
"""Functions that return the values of their argument."""
_LISTS = (list, tuple, set, frozenset, Iterable, Iterator, Sequence)
"""The results of `get_origin` for annotations of collections of one type."""


def infer_result_type(function: Function, row: Sequence[Value]) -> Typed:
    """Return the result type of a function for rows of the given columns.

    Raises
    ------
    Inexact: the type is unknown; the message names the expression.
    """
    try:
        if isinstance(function, Opaque):
            return _annotated_type(function.function)
        try:
            return _TypeReader(function, row).of(function.body)
        except Untyped:
            if not isinstance(function.made, Opaque):
                raise
            return _annotated_type(function.made.function)
    except Untyped as untyped:
        raise Inexact(str(untyped)) from None


def infer_element_type(function: Function, row: Sequence[Value]) -> Typed:
    """Return the type of the elements of the result of a function; raise as `infer_result_type`
    does."""
    try:
        if isinstance(function, Opaque):
            return _annotated_element_type(function.function)
        try:
            return _TypeReader(function, row).inside(function.body)
        except Untyped:
            if not isinstance(function.made, Opaque) or _lacks_annotation(function.made.function):
                raise
            return _annotated_element_type(function.made.function)
    except Untyped as untyped:
        raise Inexact(str(untyped)) from None


class _TypeReader:
    """Infer the type of an expression over a row."""

    def __init__(self, function: Lifted, row: Sequence[Value]) -> None:
        self._function, self._row = function, row

    def of(self, expr: Expr) -> Typed:
        """Return the type of an expression: that of its column if it has one, else inferred from
        its parts."""
        try:
            return value_of(self._function.with_body(expr), self._row).of
        except Inexact:
            return self._infer(expr)

    def _infer(self, expr: Expr) -> Typed:
        """Return the type of an expression. Raises `Untyped` if it is unknown."""
        match expr:
            case Parameter(index):
                return self._row[index].of
            case Attribute(of, name):
                return self._attribute(self.of(of), name)
            case Item(of, Constant(int() as place)):
                return _item_type(self.of(of), place)
            case Conditional(_, then, otherwise):
                return common_type(self.of(then), self.of(otherwise))
            case And(parts) | Or(parts):
                return reduce(common_type, map(self.of, parts))
            case Guard():
                return Plain(bool)
            case Operation(symbol, operands):
                return self._operation(symbol, operands)
            case Display("tuple", items) if items:
                return tuple_of(tuple(map(self.of, items)))
            case Text() | Formatted():
                return Plain(str)
            case First(_, then) | Again(then):
                return self.of(then)
            case Attempt(of, otherwise):
                return common_type(self.of(of), self.of(otherwise))
            case Apply(opaque, _):
                return _annotated_type(opaque.function)
            case Call():
                return self._call(expr)
            case _:
                raise Untyped(f"a {type(expr).__name__.lower()} is of no known type")

    def inside(self, expr: Expr) -> Typed:
        """Return the type of the elements of an expression: of a display, or of a multiset.

        Raises `Untyped` if the type is unknown.
        """
        match expr:
            case Display("tuple" | "list" | "set", items) if items:
                return reduce(common_type, map(self.of, items))
            case Parameter(index):
                return _multiset_element_type(self._row[index].of)
            case Apply(opaque, _):
                return _annotated_element_type(opaque.function)
            case Call(Constant(called), (of, *_)) if any(called is known for known in _ORDERING):
                return self.inside(of)
            case Attribute() | Item(_, Constant()) | Conditional():
                return _multiset_element_type(self.of(expr))
            case Call(Constant(called), (Constant(each), of), ()) if called is map:
                self.inside(of)
                return Plain(_CALLS[each]) if _has_known_result(each) else _annotated_type(each)
            case Item(of, Display("slice")):
                return self.inside(of)
            case Call(Constant(TimeWindows() as windows), (time,), ()):
                bound = _bound_type(windows, self.of(time))
                return record_of(TimeWindow, (bound, bound))
            case Call(Constant(called)):
                return _annotated_element_type(called)
            case _:
                raise Untyped("its elements are of no known type")

    def _attribute(self, of: Typed, name: str) -> Typed:
        """Return the type of a field of a record. Raises `Untyped` for any other attribute."""
        if isinstance(of, Record) and is_field_of_first_row(of, name):
            of = of.fields[0]
        if not isinstance(of, Record) or not may_be_read(of, name):
            raise Untyped(f".{name} is of no known type")
        return of.field(name)

    def _operation(self, symbol: str, operands: tuple[Expr, ...]) -> Typed:
        """Return the result type of an operator.

        Raises `Untyped` if it is unknown for these operands.
        """
        if symbol in ("not", "in", "not in", "is", "is not"):
            return Plain(bool)
        kinds = [self.of(operand).kind for operand in operands]
        if symbol in _TESTS and all(kind in _PLAIN for kind in kinds):
            return Plain(bool)
        if symbol in ("+", "%") and kinds[0] is str:
            return Plain(str)
        if all(kind in (int, float, bool) for kind in kinds) and symbol in _ARITHMETIC:
            return Plain(float if symbol == "/" or float in kinds else int)
        if all(kind in (int, bool) for kind in kinds) and symbol in _BITS:
            return Plain(int if int in kinds else bool)
        if all(kind in (int, bool, Decimal) for kind in kinds) and symbol in ("+", "-", "*"):
            return Plain(Decimal)
        raise Untyped(f"{symbol} is of no known type")

    def _call(self, call: Call) -> Typed:
        """Return the result type of a call: known for some functions and methods, else as
        annotated. Raises `Untyped` if it is unknown."""
        if makes_record(call):
            return self._record(call)
        match call.function:
            case Attribute(of, name):
                kind = _METHODS.get((self.of(of).kind, name))
                if kind is None:
                    raise Untyped(f"what .{name}() returns is of no known type")
                return Plain(kind)
            case Constant(called) if _has_known_result(called):
                return Plain(_CALLS[called])
            case Constant(called) if called in (round, abs) and call.arguments:
                return self._rounded_type(called, call.arguments)
            case Constant(called) if called in (min, max) and len(call.arguments) > 1:
                return reduce(common_type, map(self.of, call.arguments))
            case Constant(called) if called in (min, max) and not _has_default(call):
                return self.inside(call.arguments[0])
            case Constant(called) if called is sum and len(call.arguments) == 1:
                return self._sum_type(call.arguments[0])
            case Constant(InSequence()):
                return Whole(tuple, _item_type(self.inside(call.arguments[0]), 1), is_inner=True)
            case Constant(called):
                return _annotated_type(called)
            case _:
                raise Untyped("what a call returns is of no known type")

    def _rounded_type(self, called: Any, arguments: tuple[Expr, ...]) -> Typed:
        """Return the result type of `round` or `abs`.

        Raises `Untyped` unless the argument is a number.
        """
        kind = self.of(arguments[0]).kind
        if kind not in (int, float, bool):
            raise Untyped(f"{called.__name__}() is of no known type")
        is_whole = kind is bool or (called is round and len(arguments) == 1)
        return Plain(int if is_whole else kind)

    def _sum_type(self, of: Expr) -> Typed:
        """Return the type of a sum: of floats it is known only for a whole group, which has a row;
        the sum of a filtered group may be the int 0.

        Raises `Untyped` if the type is unknown.
        """
        kind = self.inside(of).kind
        if kind in (int, bool) or (kind is float and isinstance(of, Parameter)):
            return Plain(float if kind is float else int)
        raise Untyped("sum() is of no known type")

    def _record(self, call: Call) -> Typed:
        """Return the type of a call that makes a record, from the types of its arguments."""
        assert isinstance(call.function, Constant)
        kind = call.function.value
        names = record_of(kind, ()).names
        return record_of(kind, tuple(self.of(record_field(call, name) or call) for name in names))


def _bound_type(windows: TimeWindows, time: Typed) -> Typed:
    """Return the type of the start and the end of the windows that times of a type belong to.

    Raises `Untyped` for other times than numbers, dates, datetimes and timedeltas.
    """
    origin = windows.origin
    if time.kind is Instant:
        if windows.zone is not None:
            return Whole(Instant, zone=zone_named(windows.zone))
        return Whole(Instant, zone=UTC if origin is None else origin.tzinfo)
    if time.kind in (date, datetime, timedelta):
        return replace(time, optional=False)
    kinds = {time.kind, type(windows.size), type(windows.every), type(origin or 0)} - {bool}
    if kinds <= {int, float}:
        return Plain(float if float in kinds else int)
    raise Untyped("a window of time is of no known type")


def _item_type(of: Typed, place: int) -> Typed:
    """Return the type of an item of a tuple or text.

    Raises `Untyped` for others, or a position beyond the tuple.
    """
    if (
        isinstance(of, Record)
        and issubclass(of.kind, tuple)
        and -len(of.fields) <= place < len(of.fields)
    ):
        return of.fields[place]
    if of.kind is str:
        return Plain(str)
    raise Untyped("an item is of no known type")


def _multiset_element_type(of: Typed) -> Typed:
    """Return the type of the elements of a bag or sequence. Raises `Untyped` for other types."""
    if isinstance(of, Whole) and of.of is not None:
        return of.of
    raise Untyped("its elements are of no known type")


def _has_default(call: Call) -> bool:
    return any(name == "default" for name, _ in call.keywords)


def _has_known_result(called: Any) -> bool:
    return any(called is known for known in _CALLS)


def _annotated_type(function: Callable[..., Any]) -> Typed:
    """Return the type in the return annotation of a function."""
    return column_type(_return_hint(function))


def _annotated_element_type(function: Callable[..., Any]) -> Typed:
    """Return the element type of the annotated list or sequence that a function returns.

    Raises `Untyped` if there is no such annotation.
    """
    hint = _return_hint(function)
    items = [item for item in get_args(hint) if item is not ...]
    if get_origin(hint) not in _LISTS or len(items) != 1:
        raise Untyped(f"{_function_name(function)} does not say what it returns the elements of")
    return column_type(items[0])


def _lacks_annotation(function: Any) -> bool:
    """Return True without a return annotation, as for a lambda: then the error is about its
    expression."""
    return not getattr(function, "__annotations__", {}).get("return")


def _return_hint(function: Callable[..., Any]) -> Any:
    """Return the annotated result of a function; a class returns itself.

    Raises `Untyped` if there is no annotation, or the callable is no plain function.
    """
    if isinstance(function, type):
        return function
    if not isinstance(function, FunctionType) or inspect.iscoroutinefunction(function):
        raise Untyped(f"what {_function_name(function)} returns is of no known type")
    try:
        hints = get_type_hints(function)
    except Exception:
        hints = {}
    if "return" not in hints:
        raise Untyped(f"{_function_name(function)} does not say what it returns")
    return hints["return"]


def _function_name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
