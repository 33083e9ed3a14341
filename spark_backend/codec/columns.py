"""Translate a lifted expression to a Spark column, if both are equal for all rows of the types.

    o.price is not None and o.price > 10     a column: None is excluded before
    o.price > 10                             none, if price is `float | None`: it may raise
    o.name.upper() == "X"                    none: Java has other capitals than Python

A column is used only if the expression raises for no row, because Spark may evaluate it at any time
and repeatedly. A value that an earlier part of the expression has tested against None is not
optional in the later parts.

Sound:  generated expressions over odd values are compared with Python's results (test_columns).

Operations of text have equal results in Python and Spark, code point by code point. Not
upper, lower, strip without characters: Java and Python know different versions of Unicode, and
Spark strips spaces where Python strips all whitespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    FALSE,
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
    Function,
    Guard,
    Item,
    Operation,
    Or,
    Parameter,
)
from optimizer.expressions.attempts import FirstFault, NoFault, OrNone, Outcome
from optimizer.expressions.knowledge import makes_record, record_field
from reactive.engine.collections.exact import summable, summable_or_none
from spark_backend.codec.arithmetic import absolute_value, arithmetic, negate_value
from spark_backend.codec.schema import (
    LARGEST,
    NOTHING,
    Plain,
    Record,
    Untyped,
    Whole,
    is_field_of_first_row,
    is_text,
    may_be_read,
    record_of,
    type_name,
)
from spark_backend.codec.values import (
    Inexact,
    Value,
    choose,
    equal,
    field_of,
    is_none,
    is_one_of,
    less_than,
    literal,
    record_value,
    require_present,
    truth,
)

Present = frozenset[Expr]
"""The expressions that are known not to be None."""
CHECKS = (hash, summable, summable_or_none)
_ARITHMETIC = ("+", "-", "*", "/", "//", "%")
_ORDERS = ("<", "<=", ">", ">=")
_NONE_YET: Present = frozenset()


def value_of(function: Function, row: Sequence[Value]) -> Value:
    """Translate a function of a row to a column.

    Parameters
    ----------
    row: a value for each parameter of the function.

    Raises
    ------
    Inexact: the function has to run in Python; the message is the reason.
    """
    return _Reader(row).value(_lifted_body(function), _NONE_YET)


def truth_of(function: Function, row: Sequence[Value]) -> Column:
    """Translate a predicate to a column that is never null; raise as `value_of` does."""
    return _Reader(row).truth(_lifted_body(function), _NONE_YET)


def items_of(function: Function, row: Sequence[Value]) -> list[Value]:
    """Return the elements of a function that displays a tuple or list; raise as `value_of` does."""
    body = _lifted_body(function)
    if not isinstance(body, Display) or body.kind not in ("tuple", "list") or not body.items:
        raise Inexact("its elements are not written out")
    reader = _Reader(row)
    return [reader.value(item, _NONE_YET) for item in body.items]


def inside_of(function: Function, row: Sequence[Value]) -> Value | None:
    """Return the bag or sequence whose elements a function returns; None if it displays them.

    Raises
    ------
    Inexact: the result is no column, or may be None.
    """
    body = _lifted_body(function)
    if isinstance(body, Display):
        return None
    found = value_of(function, row)
    if not isinstance(found.of, Whole) or found.of.of in (None, NOTHING):
        raise Inexact(f"it has no elements: {type_name(found.of)}")
    return Value(require_present(found, "the elements").column, found.of)


def _lifted_body(function: Function) -> Expr:
    """Return the expression of a function. Raises `Inexact` if it is not lifted."""
    if isinstance(function, Opaque):
        raise Inexact(f"{function.name} is not lifted")
    return function.body


class _Reader:
    """Translate an expression over a row."""

    def __init__(self, row: Sequence[Value]) -> None:
        self._row = row

    def value(self, expr: Expr, there: Present) -> Value:
        """Return the expression as a column, given the expressions that are not None."""
        value = self._value(expr, there)
        if expr in there and value.optional and not _is_none_type(value):
            return replace(value, of=replace(value.of, optional=False))
        return value

    def truth(self, expr: Expr, there: Present) -> Column:
        """Return the truth of the expression; the parts of a test are separate columns, which Spark
        can use."""
        match expr:
            case And(parts):
                return reduce(lambda a, b: a & b, self._tests(parts, there, when=True))
            case Or(parts):
                return reduce(lambda a, b: a | b, self._tests(parts, there, when=False))
            case Operation("not", (operand,)):
                return ~self.truth(operand, there)
            case First(needs, then):
                self._check(needs, there)
                return self.truth(then, there)
            case Guard(test, needs):
                self._check(needs, there)
                return self.truth(test, there)
            case Again(test):
                return self.truth(test, there)
            case Attempt(of, otherwise) if otherwise == FALSE:
                return self.truth(of, there)
            case _:
                return truth(self.value(expr, there))

    def _value(self, expr: Expr, there: Present) -> Value:
        """Return the column of an expression; `there` are expressions that are known not to be
        None. Raises `Inexact` if Spark could return another value than Python, or Python could
        raise."""
        match expr:
            case Parameter(index):
                return self._row[index]
            case Constant(value):
                return literal(value)
            case Attribute(of, name):
                return self._attribute(self.value(of, there), name)
            case Item(of, Display("slice", bounds)):
                return slice_text(
                    self.value(of, there), [_constant_value(bound) for bound in bounds]
                )
            case Item(of, key):
                return self._item(self.value(of, there), _constant_value(key))
            case And(parts) | Or(parts):
                return self._operand(parts, there, when=isinstance(expr, And))
            case Conditional(test, then, otherwise):
                holds = self.truth(test, there)
                return choose(
                    holds,
                    self.value(then, there | _present_after(test, when=True)),
                    self.value(otherwise, there | _present_after(test, when=False)),
                )
            case Operation("not", _) | Guard():
                return Value(self.truth(expr, there), Plain(bool))
            case Operation(operator, operands):
                return self._operation(operator, operands, there)
            case Display("tuple", items) if items:
                return record_value(tuple(self.value(item, there) for item in items))
            case Call():
                return self._call(expr, there)
            case First(needs, then):
                self._check(needs, there)
                return self.value(then, there)
            case Again(inner) | Attempt(inner):  # an expression with a column raises nothing
                return self.value(inner, there)
            case Apply(_, _, reason):
                raise Inexact(
                    f"not lifted: {reason}".partition("\n")[0] if reason else "not lifted"
                )
            case _:
                raise Inexact(f"{type(expr).__name__.lower()} has no column")

    def _check(self, needs: tuple[Expr, ...], there: Present) -> None:
        """Check that the columns of needs exist, so that they raise nothing; and that sums are of
        numbers."""
        for need in needs:
            match need:
                case Call(Constant(check), (of,), ()) if any(check is known for known in CHECKS):
                    value = self.value(of, there)
                    if check is not hash and not _can_be_summed(
                        value, skip_none=check is not summable
                    ):
                        raise Inexact("it may be nothing that can be summed")
                case _:
                    self.value(need, there)

    def _tests(self, parts: tuple[Expr, ...], there: Present, *, when: bool) -> list[Column]:
        """Return the parts of a test; a part is evaluated only if the earlier ones were true
        (`when`), or false."""
        tests = []
        for part in parts:
            tests.append(self.truth(part, there))
            there |= _present_after(part, when=when)
        return tests

    def _operand(self, parts: tuple[Expr, ...], there: Present, *, when: bool) -> Value:
        """Return the value of `and` or `or`: the first part that decides, or the last."""
        first, *rest = parts
        value = self.value(first, there)
        if not rest:
            return value
        last = self._operand(tuple(rest), there | _present_after(first, when=when), when=when)
        goes_on = self.truth(first, there)
        if when:
            return choose(goes_on, last, value)
        if value.optional and not _is_none_type(value):
            value = replace(value, of=replace(value.of, optional=False))
        return choose(~goes_on, last, value)

    def _attribute(self, of: Value, name: str) -> Value:
        """Return a field of a record.

        Raises `Inexact` if the record may be None or the name is no field.
        """
        if isinstance(of.of, Record) and is_field_of_first_row(of.of, name):
            of = field_of(require_present(of, f".{name}"), 0)
        if not isinstance(of.of, Record) or not may_be_read(of.of, name):
            raise Inexact(f"{name} is no field of {type_name(of.of)}")
        return field_of(require_present(of, f".{name}"), of.of.names.index(name))

    def _item(self, of: Value, place: Any) -> Value:
        """Return an item of a tuple.

        Raises `Inexact` if the tuple may be None or too short, or is no tuple.
        """
        is_place = type(place) is int and isinstance(of.of, Record)
        if not isinstance(of.of, Record) or not is_place or not issubclass(of.of.kind, tuple):
            raise Inexact(f"an item of {type_name(of.of)} may not be there")
        count = len(of.of.fields)
        if not -count <= place < count:
            raise Inexact(f"{type_name(of.of)} has no item {place}")
        return field_of(require_present(of, "[...]"), place % count)

    def _operation(self, operator: str, operands: tuple[Expr, ...], there: Present) -> Value:
        """Return the column of an operator over operands.

        Raises `Inexact` if Spark has no equal operator.
        """
        if operator in ("is", "is not"):
            return _boolean_value(self._identity(operands, there), operator == "is")
        if operator in ("in", "not in"):
            return _boolean_value(self._membership(operands, there), operator == "in")
        values = [self.value(operand, there) for operand in operands]
        if operator in ("==", "!="):
            return _boolean_value(equal(*values), operator == "==")
        if operator in _ORDERS:
            low, high = values if operator[0] == "<" else reversed(values)
            return Value(less_than(low, high, or_equal=operator[1:] == "="), Plain(bool))
        if operator == "-" and len(values) == 1:
            return negate_value(values[0])
        if operator == "+" and len(values) == 2 and values[0].of.kind is values[1].of.kind is str:
            return concatenate(*values)
        if operator in _ARITHMETIC and len(values) == 2:
            return arithmetic(operator, *values)
        raise Inexact(f"{operator} is not Spark's")

    def _identity(self, operands: tuple[Expr, ...], there: Present) -> Column:
        """Translate `is` with None, True or False, which are one object each.

        Raises `Inexact` for any other identity.
        """
        left, right = operands
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Constant):
                value = self.value(other, there)
                if one.value is None:
                    return is_none(value)
                if isinstance(one.value, bool) and value.of.kind is bool:
                    return equal(value, literal(one.value))
        raise Inexact("'is' asks for the same object")

    def _membership(self, operands: tuple[Expr, ...], there: Present) -> Column:
        """Return the condition `left in right`, for constants, displays and texts.

        Raises `Inexact` for others.
        """
        left, right = operands
        value = self.value(left, there)
        match right:
            case Constant(tuple() | list() | frozenset() | set() as choices):
                return is_one_of(value, tuple(map(literal, choices)))
            case Display("tuple" | "list" | "set", items):
                return is_one_of(value, tuple(self.value(item, there) for item in items))
        whole = self.value(right, there)
        if value.of.kind is whole.of.kind is str:
            return require_present(whole, "in").column.contains(require_present(value, "in").column)
        raise Inexact(f"'in' of {type_name(whole.of)} is not Spark's")

    def _call(self, call: Call, there: Present) -> Value:
        """Return the column of a call.

        Raises `Inexact` if Spark has no equal function, or the call may raise.
        """
        if makes_record(call):
            return self._record(call, there)
        arguments = list(call.arguments)
        if call.keywords:
            raise Inexact("the call names its arguments")
        match call.function:
            case Constant(value) if value in (date, datetime, Decimal) and _are_constants(
                arguments
            ):
                return literal(_call_constant(value, arguments))
            case Constant(FirstFault()):
                return _first_fault([self.value(argument, there) for argument in arguments])
            case Constant(OrNone() | NoFault()):
                return field_of(_outcome(self.value(arguments[0], there)), 0)
            case Constant(value) if value is len and len(arguments) == 1:
                return length(self.value(arguments[0], there))
            case Constant(value) if value is abs and len(arguments) == 1:
                return absolute_value(self.value(arguments[0], there))
            case Constant(value) if value is bool and len(arguments) == 1:
                return Value(self.truth(arguments[0], there), Plain(bool))
            case Attribute(of, name):
                return call_text_method(
                    self.value(of, there), name, [_constant_value(a) for a in arguments]
                )
            case Constant(value):
                raise Inexact(f"{getattr(value, '__name__', 'the call')}() is not Spark's")
            case _:
                raise Inexact("the call is not Spark's")

    def _record(self, call: Call, there: Present) -> Value:
        """Return the column of a call that makes a record.

        Raises `Inexact` if the record has no column type.
        """
        assert isinstance(call.function, Constant)
        kind = call.function.value
        try:
            of = record_of(kind, ())
            items = [self.value(record_field(call, name) or call, there) for name in of.names]
            return record_value(tuple(items), record_of(kind, tuple(item.of for item in items)))
        except Untyped as untyped:
            raise Inexact(str(untyped)) from None


def _first_fault(outcomes: list[Value]) -> Value:
    """Return the fault of the first outcome that has one, as a column; null if none has."""
    found = [field_of(_outcome(value), 1) for value in outcomes]
    return Value(F.coalesce(*(value.column for value in found)), found[0].of)


def _outcome(value: Value) -> Value:
    """Return the value. Raises `Inexact` if it is no outcome of an aggregate, or may be None."""
    if value.of.kind is not Outcome:
        raise Inexact(f"{type_name(value.of)} is no outcome of an aggregate")
    return require_present(value, "an outcome")


def _boolean_value(holds: Column, wanted: bool) -> Value:
    return Value(holds if wanted else ~holds, Plain(bool))


def _is_none_type(value: Value) -> bool:
    return value.of.kind is type(None)


def _constant_value(expr: Expr) -> Any:
    """Return the value of a constant. Raises `Inexact` for any other expression."""
    match expr:
        case Constant(value):
            return value
        case Operation("-", (Constant(int() as value),)):
            return -value
        case _:
            raise Inexact("an argument of it is no constant")


def _are_constants(arguments: list[Expr]) -> bool:
    return all(isinstance(argument, Constant) for argument in arguments)


def _call_constant(kind: Any, arguments: list[Expr]) -> Any:
    """Return the result of a call with constants, which is the same each time.

    Raises `Inexact` if the call raises.
    """
    try:
        return kind(*map(_constant_value, arguments))
    except Exception as error:
        raise Inexact(f"{kind.__name__}() raises {type(error).__name__}") from None


def _can_be_summed(value: Value, *, skip_none: bool) -> bool:
    """Return True if all values are numbers, except for None if that is skipped."""
    is_number = isinstance(value.of, Plain) and value.of.kind in (int, float, bool, Decimal)
    return is_number and (skip_none or not value.optional)


def _present_after(test: Expr, *, when: bool) -> Present:
    """Return the expressions that are not None if a test is true (`when`), or false."""
    match test:
        case Operation("not", (operand,)):
            return _present_after(operand, when=not when)
        case Operation("is" | "==", (operand, Constant(None))):
            return frozenset() if when else frozenset([operand])
        case Operation("is not" | "!=", (operand, Constant(None))):
            return frozenset([operand]) if when else frozenset()
        case And(parts) if when:
            return frozenset().union(*(_present_after(part, when=True) for part in parts))
        case Or(parts) if not when:
            return frozenset().union(*(_present_after(part, when=False) for part in parts))
        case First(_, then):
            return _present_after(then, when=when)
        case Again(inner):
            return _present_after(inner, when=when)
        case Parameter() | Attribute() | Item() if when:
            return frozenset([test])
        case _:
            return frozenset()


LONGEST = 2**31 - 1
_STRIPS = {"strip": F.btrim, "lstrip": F.ltrim, "rstrip": F.rtrim}


def length(value: Value) -> Value:
    """Return `len(value)`.

    Raises `Inexact` if the value may be None, or Spark has no equal length.
    """
    value = require_present(value, "len")
    if value.of.kind in (str, bytes):
        return Value(F.length(value.column).cast("bigint"), Plain(int, low=0, high=LONGEST))
    if isinstance(value.of, Record) and value.of.kind is tuple:
        return literal(len(value.of.fields))
    if isinstance(value.of, Whole) and value.of.of is not None:
        return Value(_count_elements(value.of, value.column), Plain(int, low=0, high=LARGEST))
    raise Inexact(f"len of {type_name(value.of)} is not Spark's")


def _count_elements(of: Whole, column: Column) -> Column:
    """Return the number of values in a bag or sequence."""
    if of.kind in (tuple, frozenset):
        return F.size(column).cast("bigint")
    none = F.lit(0).cast("bigint")
    return F.aggregate(column, none, lambda found, pair: found + pair.getField("weight"))


def concatenate(left: Value, right: Value) -> Value:
    """Return `left + right`."""
    return Value(
        F.concat(require_present(left, "+").column, require_present(right, "+").column), Plain(str)
    )


def slice_text(value: Value, bounds: list[Any]) -> Value:
    """Return `value[start:stop]`, for bounds that are not negative.

    Raises `Inexact` for other bounds, or a value that may be None or is no text.
    """
    start, stop, step = bounds
    start = 0 if start is None else start
    simple = type(start) is int and (stop is None or type(stop) is int) and step in (None, 1)
    if value.of.kind is not str or not simple or start < 0 or (stop is not None and stop < 0):
        raise Inexact("the slice is not Spark's")
    count = min(LONGEST if stop is None else max(0, stop - start), LONGEST - start - 1)
    if count < 0:
        raise Inexact("the slice is too far away")
    return Value(F.substring(require_present(value, "[...]").column, start + 1, count), Plain(str))


def call_text_method(value: Value, name: str, arguments: list[Any]) -> Value:
    """Translate a call of a method of `str` with constants.

    Raises `Inexact` if the value may be None, or Spark has no equal method.
    """
    if value.of.kind is not str:
        raise Inexact(f".{name}() of {type_name(value.of)} is not Spark's")
    column = require_present(value, f".{name}()").column
    match name, arguments:
        case "startswith" | "endswith", [str() | tuple() as wanted]:
            return Value(_text_edge(column, name, wanted), Plain(bool))
        case "strip" | "lstrip" | "rstrip", [str() as characters] if characters:
            return Value(_STRIPS[name](column, _text_literal(characters)), Plain(str))
        case "replace", [str() as old, str() as new] if old:
            return Value(F.replace(column, _text_literal(old), _text_literal(new)), Plain(str))
        case _:
            raise Inexact(f".{name}() is not Spark's")


def _text_edge(column: Column, name: str, wanted: str | tuple[Any, ...]) -> Column:
    """Return the condition that a text starts or ends (`name`) with one of the wanted texts.

    Raises `Inexact` if one of them is no text.
    """
    asked = (wanted,) if isinstance(wanted, str) else wanted
    if not all(type(text) is str for text in asked):
        raise Inexact(f".{name}() may raise")
    at = column.startswith if name == "startswith" else column.endswith
    return reduce(lambda a, b: a | b, [at(_text_literal(text)) for text in asked], F.lit(False))


def _text_literal(text: str) -> Column:
    """Return a text as a column. Raises `Inexact` if it is no text that Spark can store."""
    if type(text) is not str or not is_text(text):
        raise Inexact("an argument of it is no text that Spark can hold")
    return F.lit(text)
