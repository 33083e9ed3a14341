"""Expressions over the rows of a batch, a column at a time; each field is read once.

    o.amount * o.quantity > 8       amount = [3, 5, ...]        [6, 10, ...] > 8
                                    quantity = [2, 2, ...]      [False, True, ...]

What is computed is what Python computes of each row, or nothing (`NotTaken`): fields have one plain
class in all rows, integers stay below 53 bits, and nothing that is computed here can raise.

Cost: O(rows) per operation, some nanoseconds a row; of reading a field 30 ns a row.

Sums by key of a large batch of plain rows, computed over columns.

    rows                  columns                       sums by key
    Order(amount=3, ..)   amount = [3, 5, ...]          where amount * quantity > 8
    Order(amount=5, ..)   quantity = [2, 2, ...]        codes of region, then a sum per code

It gives what the loop (`first_load.py`) gives of the same rows, in the same order, or nothing; then
the loop runs. Sums are exact: integers are added as floats of 53 bits, of floats some leading bits
at a time.

Needs:  numpy, which is found by itself; a batch that is a load of a table, of plain rows; where
        and select; comparisons, `+`, `-`, `*`, `and`, `or`, `not` of numbers and texts.
Pays:   a key is looked up once per batch, and not once per row. It does not where few rows pass,
        or where most rows have a key of their own.
Cost:   O(rows), some 30 ns per field and row; O(1) Python objects per key.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from math import frexp
from operator import attrgetter, itemgetter
from typing import Any

from optimizer.expr import (
    TRUE,
    And,
    Attempt,
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    First,
    Item,
    Local,
    Operation,
    Or,
    Parameter,
    transform,
)
from optimizer.expressions.order_kinds import (
    has_mean,
    has_mean_or_none,
    is_binary,
    is_binary_or_none,
    is_decimal,
    is_decimal_or_none,
    is_number,
    is_number_or_none,
    is_text,
    is_text_or_none,
)
from optimizer.expressions.text import projected
from reactive.engine.codegen.emitter import RowPipeline
from reactive.engine.collections.exact import (
    BITS,
    RunningSum,
    scaled_sum,
    summable,
    summable_or_none,
)
from reactive.engine.collections.zset import Row, UniformDelta
from reactive.engine.operators.loops import grouped
from reactive.engine.runtime.interrupts import reraise_asynchronous

EXACT = 2**53
"""Integers below it are exact as floats."""
COMPARED = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
NUMBERS = frozenset({int, float, bool})
CHECKS: dict[Any, frozenset[type]] = {
    hash: NUMBERS | {str},
    **dict.fromkeys((summable, summable_or_none, is_number, is_number_or_none), NUMBERS),
    **dict.fromkeys((is_binary, is_binary_or_none, has_mean, has_mean_or_none), NUMBERS),
    **dict.fromkeys((is_decimal, is_decimal_or_none), NUMBERS - {float}),
    **dict.fromkeys((is_text, is_text_or_none), frozenset({str})),
}
"""Callables that raise for some values, with the classes of columns for which they do not."""
COMPUTED = {"+": "add", "-": "subtract", "*": "multiply"}
"""Operators, and what numpy calls them."""


class NotTaken(Exception):
    """It cannot be computed over columns."""


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """The values of all rows as an array, or a constant; those of texts as a list.

    kind: `int`, `float`, `bool` or `str`, of all values.
    most: the greatest absolute value that integers may have.
    """

    values: Any
    kind: type
    most: int = 0


def is_columnar(expr: Expr) -> bool:
    """Whether an expression can be computed of columns, if these are of the right classes."""
    match expr:
        case Constant(value):
            return type(value) in (int, float, str, bool)
        case Attribute(Parameter(), _):
            return True
        case Item(Parameter(), Constant(place)):
            return type(place) is int and place >= 0
        case Operation(operator, operands):
            is_known = operator in COMPARED or operator in COMPUTED or operator == "not"
            return is_known and all(map(is_columnar, operands))
        case And(parts) | Or(parts):
            return all(map(is_columnar, parts))
        case Attempt(of):
            return is_columnar(of)
        case Call(Constant(value), (of,), ()):
            return any(value is check for check in CHECKS) and is_columnar(of)
    return False


def _field_of(expr: Expr) -> tuple[Any, Callable[[Row], Any]] | None:
    """The name or place of the field that an expression reads, and what reads it."""
    match expr:
        case Attribute(_, name):
            return name, attrgetter(name)
        case Item(_, Constant(place)):
            return place, itemgetter(place)
    return None


class Columns:
    """What is computed of some rows.

    fields: the class that a field has in all of them, by name or place.
    """

    def __init__(self, numpy: Any, rows: Sequence[Row], fields: Mapping[Any, type]) -> None:
        self.numpy = numpy
        self.rows = rows
        self._fields = fields
        self._known: dict[Expr, ValueColumn] = {}

    def sample(self, number: int) -> Columns:
        """The same of a few of the rows."""
        some = self.rows[:: max(1, len(self.rows) // number)]
        return Columns(self.numpy, some, self._fields)

    def passed(self, tests: Sequence[Expr]) -> Any:
        """Which rows pass all of some tests; None without any."""
        found = None
        for test in tests:
            passes = self._truth(self.value(test))
            found = passes if found is None else found & passes
        return found

    def among(self, passed: Any) -> Columns:
        """The same of the rows that have passed; what is known of all is known of them."""
        places = self.numpy.flatnonzero(passed).tolist()
        chosen = Columns(self.numpy, [self.rows[place] for place in places], self._fields)
        for expr, column in self._known.items():
            if isinstance(column.values, self.numpy.ndarray):
                values = column.values[passed]
                chosen._known[expr] = ValueColumn(values, column.kind, column.most)
        return chosen

    def value(self, expr: Expr) -> ValueColumn:
        """The values of an expression."""
        found = self._known.get(expr)
        if found is None:
            found = self._known[expr] = self._computed(expr)
        return found

    def held(self, expr: Expr, places: Sequence[int]) -> list[Any] | None:
        """The values of a field in the rows at some places, as these hold them; None of others."""
        field = _field_of(expr)
        return None if field is None else [field[1](self.rows[place]) for place in places]

    def _computed(self, expr: Expr) -> ValueColumn:
        field = _field_of(expr)
        if field is not None:
            return self._field(*field)
        match expr:
            case Constant(value):
                return ValueColumn(value, type(value), abs(value) if type(value) is int else 0)
            case Operation("not", (operand,)):
                return ValueColumn(self.numpy.logical_not(self._truth(self.value(operand))), bool)
            case Operation(operator, (left, right)):
                return self._operation(operator, self.value(left), self.value(right))
            case And(parts) | Or(parts):
                truths = [self._truth(self.value(part)) for part in parts]
                combine = "logical_and" if isinstance(expr, And) else "logical_or"
                return ValueColumn(getattr(self.numpy, combine).reduce(truths), bool)
            case Attempt(of):
                return self.value(of)
            case Call(Constant(check), (of,)):
                column = self.value(of)
                if column.kind not in CHECKS[check]:
                    raise NotTaken
                return column
        raise NotTaken

    def _field(self, name: Any, of: Callable[[Row], Any]) -> ValueColumn:
        numpy, rows, kind = self.numpy, self.rows, self._fields.get(name)
        if kind is int:
            values = numpy.fromiter(map(of, rows), numpy.int64, len(rows))
            return ValueColumn(values, int, max(abs(int(values.min())), abs(int(values.max()))))
        if kind is float or kind is bool:
            return ValueColumn(numpy.fromiter(map(of, rows), kind, len(rows)), kind)
        if kind is str:
            return ValueColumn(list(map(of, rows)), str)
        raise NotTaken

    def _truth(self, column: ValueColumn) -> Any:
        """A column of truth values; others have a truth that is not looked for here."""
        if column.kind is not bool or not isinstance(column.values, self.numpy.ndarray):
            raise NotTaken
        return column.values

    def _operation(self, operator: str, left: ValueColumn, right: ValueColumn) -> ValueColumn:
        numpy, kinds = self.numpy, {left.kind, right.kind}
        if kinds == {str}:
            return self._equal(operator, left, right)
        if not kinds <= {int, float} or max(left.most, right.most) >= EXACT:
            raise NotTaken
        if operator in COMPARED:
            return ValueColumn(getattr(numpy, COMPARED[operator])(left.values, right.values), bool)
        most = left.most * right.most if operator == "*" else left.most + right.most
        if kinds == {int} and most >= EXACT:
            raise NotTaken
        with numpy.errstate(all="ignore"):
            values = getattr(numpy, COMPUTED[operator])(left.values, right.values)
        return ValueColumn(values, int, most) if kinds == {int} else ValueColumn(values, float)

    def _equal(self, operator: str, left: ValueColumn, right: ValueColumn) -> ValueColumn:
        """Whether texts equal a constant."""
        if isinstance(left.values, str):
            left, right = right, left
        constant = right.values
        if operator not in ("==", "!=") or not isinstance(constant, str):
            raise NotTaken
        if isinstance(left.values, str):
            raise NotTaken
        asked = constant.__eq__ if operator == "==" else constant.__ne__
        return ValueColumn(self.numpy.fromiter(map(asked, left.values), bool, len(self.rows)), bool)


UNLOADED = 200_000
"""From so many rows on numpy is imported for it, which takes as long as 100,000 rows do."""
SAMPLED = 256
"""Rows of which one in four must pass the tests, and of all rows two must share a key."""
GREATEST = 2.0**124
"""Floats below it have a sum that is a number and a count."""

Changed = dict[Any, tuple[RunningSum, ...]]
"""By key how many rows, then the sum of each value."""


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """What is computed of each row: tests, the key, and values that are summed.

    A row that fails a test has no part in it. Without keys all rows are one group. `touched` is
    what a loop would evaluate before, as it may raise: it does not if it can be computed here.
    """

    touched: tuple[Expr, ...]
    tests: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    values: tuple[Expr, ...]

    def of(self, delta: UniformDelta) -> Changed | None:
        """The sums of a delta by key; None if they are for the loop to compute."""
        numpy = _numpy(len(delta))
        if numpy is None or delta.weight != 1:
            return None
        try:
            columns = self._passed(Columns(numpy, delta.rows, delta.fields or {}))
            return {} if not columns.rows else self._summed(columns)
        except Exception as error:  # the loop says whether there is anything wrong
            reraise_asynchronous(error)
            return None

    def _passed(self, columns: Columns) -> Columns:
        """The rows that pass the tests, if they are not too few."""
        sample = columns.sample(SAMPLED)
        for expr in (*self.touched, *self.keys, *self.values):
            sample.value(expr)
        some = sample.passed(self.tests)
        if some is None:
            return columns
        if 4 * int(some.sum()) < len(sample.rows):
            raise NotTaken
        return columns.among(columns.passed(self.tests))

    def _summed(self, columns: Columns) -> Changed:
        numpy = columns.numpy
        codes, keys_of = _codes(columns, self.keys)
        counts = numpy.bincount(codes)
        there, first = _in_turn(numpy, codes, counts)
        if self.keys and 2 * len(there) > max(len(codes), grouped.MANY):
            raise NotTaken
        counted = counts[there].tolist()
        sums = [_added(columns, expr, codes, there, counted) for expr in self.values]
        return dict(zip(keys_of(there, first), zip(counted, *sums, strict=True), strict=True))


def column_sums(
    pipeline: RowPipeline, keys: Sequence[Expr], values: Sequence[Expr]
) -> ColumnSums | None:
    """The same as a loop with these instructions; None if it does something else as well."""
    if pipeline.bindings != 1 or len(keys) > 1 or pipeline.makes_several:
        return None
    made: dict[str, Expr] = {}
    tests: list[Expr] = []
    touched: list[Expr] = []
    for instruction in pipeline.instructions:
        expr = _whole(instruction.expr, made)
        if instruction.kind == "set":
            made[instruction.name] = expr
            touched += expr.items if isinstance(expr, Display) and expr.kind == "tuple" else [expr]
        elif instruction.kind == "attempt":
            needed, test = _attempted(expr)
            touched += needed
            tests += test
        else:
            touched.append(expr)
        if instruction.kind == "test":
            tests.append(expr)
    parts = [
        tuple(_whole(expr, made) for expr in exprs) for exprs in (touched, tests, keys, values)
    ]
    if not all(is_columnar(expr) for exprs in parts for expr in exprs):
        return None
    return ColumnSums(*parts)


def _attempted(expr: Expr) -> tuple[list[Expr], list[Expr]]:
    """What a condition that may raise evaluates first, and the condition, if there is one: over
    columns nothing raises."""
    needed: list[Expr] = []
    while isinstance(expr, First):
        needed += expr.needs
        expr = expr.then
    return ([*needed, expr], [expr]) if expr != TRUE else (needed, [])


def _whole(expr: Expr, made: Mapping[str, Expr]) -> Expr:
    """An expression without the variables that a loop has for rows that it makes."""

    def named(part: Expr) -> Expr:
        return made.get(part.name, part) if isinstance(part, Local) else part

    return transform(transform(expr, named), projected)


def _numpy(rows: int) -> Any:
    """The package, if it is there and worth its import."""
    found = sys.modules.get("numpy")
    if found is None and rows >= UNLOADED and find_spec("numpy") is not None:
        found = import_module("numpy")
    return found


def _codes(columns: Columns, keys: Sequence[Expr]) -> tuple[Any, Callable[[Any, Any], list[Any]]]:
    """A small number for the key of each row, and what gives the keys of such numbers, of which it
    is told in which rows they come first."""
    numpy, count = columns.numpy, len(columns.rows)
    if not keys:
        return numpy.zeros(count, numpy.int64), lambda there, _: [()] * len(there)
    (key,) = map(columns.value, keys)
    if key.kind is str and isinstance(key.values, list):
        seen: dict[str, int] = {}
        numbers = map(seen.setdefault, key.values, map(len, repeat(seen)))
        codes = numpy.fromiter(numbers, numpy.int64, count)
        texts = list(seen)
        return codes, lambda there, _: [texts[code] for code in there.tolist()]
    if key.kind is not int or not isinstance(key.values, numpy.ndarray):
        raise NotTaken

    def keys_of(_: Any, first: Any) -> list[Any]:
        held = columns.held(keys[0], first.tolist())  # a group keeps no number of its own
        return key.values[first].tolist() if held is None else held

    least, most = int(key.values.min()), int(key.values.max())
    if most - least <= 4 * count:
        return key.values - least, keys_of
    return numpy.unique(key.values, return_inverse=True)[1], keys_of


def _in_turn(numpy: Any, codes: Any, counts: Any) -> tuple[Any, Any]:
    """The codes that there are, in the order in which they come first, and in which rows."""
    there = numpy.flatnonzero(counts)
    first = numpy.empty(len(counts), numpy.int64)
    first[codes[::-1]] = numpy.arange(len(codes) - 1, -1, -1)  # the last that is put in stays
    there = there[numpy.argsort(first[there])]
    return there, first[there]


def _added(
    columns: Columns, expr: Expr, codes: Any, there: Any, counted: Sequence[int]
) -> list[RunningSum]:
    """The sum of each code, as `exact.py` has it."""
    value, count = columns.value(expr), len(columns.rows)
    if not isinstance(value.values, columns.numpy.ndarray):
        raise NotTaken
    if value.kind is float:
        return list(map(scaled_sum, _scaled(columns.numpy, value, codes, there), counted))
    if value.kind is not int or value.most * count >= EXACT:
        raise NotTaken
    return _whole_sums(columns.numpy, value.values, codes, there)


def _whole_sums(numpy: Any, whole: Any, codes: Any, there: Any) -> list[int]:
    """Sums of integers that stay below 53 bits."""
    found = numpy.bincount(codes, weights=whole)[there]
    return found.astype(numpy.int64).tolist()  # type: ignore[no-any-return]


def _scaled(numpy: Any, value: ValueColumn, codes: Any, there: Any) -> list[int]:
    """Exact sums of floats, times 2**BITS: some leading bits of all are added at a time."""
    most = float(numpy.abs(value.values).max())
    bits = EXACT.bit_length() - 2 - len(codes).bit_length()
    if not most < GREATEST or bits < 1:
        raise NotTaken
    numbers, rest = [0] * len(there), value.values
    unit = max(frexp(most)[1] - bits, -BITS)
    while True:
        leading = numpy.trunc(numpy.ldexp(rest, -unit))
        more, up = _whole_sums(numpy, leading, codes, there), unit + BITS
        numbers = [number + (part << up) for number, part in zip(numbers, more, strict=True)]
        rest = rest - numpy.ldexp(leading, unit)  # exact: its leading bits are zero now
        if not rest.any():
            return numbers
        if unit == -BITS:
            raise NotTaken
        unit = max(unit - bits, -BITS)
