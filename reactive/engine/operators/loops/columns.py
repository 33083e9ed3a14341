"""Expressions over the rows of a batch, a column at a time; each field is read once.

    o.amount * o.quantity > 8       amount = [3, 5, ...]        [6, 10, ...] > 8
                                    quantity = [2, 2, ...]      [False, True, ...]

The results equal those of Python for each row, otherwise `NotTaken` is raised: each field has
one plain class in all rows, integers stay below 53 bits, and no operation used here can raise.

Cost: O(rows) per operation, some nanoseconds a row; reading a field takes 30 ns a row.

Sums by key of a large batch of plain rows, computed over columns.

    rows                  columns                       sums by key
    Order(amount=3, ..)   amount = [3, 5, ...]          where amount * quantity > 8
    Order(amount=5, ..)   quantity = [2, 2, ...]        codes of region, then a sum per code

The result equals that of the loop (`first_load.py`), in the same order; if it cannot be computed,
the loop runs. Sums are exact: integers are added as floats of 53 bits, floats by some leading bits
at a time.

Needs:  numpy, if installed; a batch that loads a table with plain rows; where and select;
        comparisons, `+`, `-`, `*`, `and`, `or`, `not` of numbers and texts.
Pays:   a key is looked up once per batch, not once per row. It does not pay if few rows pass, or if
        most rows have different keys.
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
    check_number,
    has_mean,
    has_mean_or_none,
    is_binary,
    is_binary_or_none,
    is_decimal,
    is_decimal_or_none,
    is_number_or_none,
    is_text,
    is_text_or_none,
)
from optimizer.expressions.text import project_node
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
"""Smaller integers are exact as floats."""
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
    **dict.fromkeys((summable, summable_or_none, check_number, is_number_or_none), NUMBERS),
    **dict.fromkeys((is_binary, is_binary_or_none, has_mean, has_mean_or_none), NUMBERS),
    **dict.fromkeys((is_decimal, is_decimal_or_none), NUMBERS - {float}),
    **dict.fromkeys((is_text, is_text_or_none), frozenset({str})),
}
"""Callables that raise for some values, and the classes of values that they accept."""
COMPUTED = {"+": "add", "-": "subtract", "*": "multiply"}
"""Operators, and their names in numpy."""


class NotTaken(Exception):
    """Raised if a value cannot be computed over columns."""


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """The values of all rows as an array, or a constant; texts as a list.

    kind: the class of all values: `int`, `float`, `bool` or `str`.
    most: an upper bound of the absolute values of integers.
    """

    values: Any
    kind: type
    most: int = 0


def is_columnar(expr: Expr) -> bool:
    """Return True if an expression can be computed over columns of suitable classes."""
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
    """Return the name or place of the field that an expression reads, and its getter; or None."""
    match expr:
        case Attribute(_, name):
            return name, attrgetter(name)
        case Item(_, Constant(place)):
            return place, itemgetter(place)
    return None


class Columns:
    """Values of expressions over rows, each computed once.

    fields: the class of each field, equal in all rows, by name or place.
    """

    def __init__(self, numpy: Any, rows: Sequence[Row], fields: Mapping[Any, type]) -> None:
        self.numpy = numpy
        self.rows = rows
        self._fields = fields
        self._known: dict[Expr, ValueColumn] = {}

    def sample(self, number: int) -> Columns:
        """Return the columns of a sample of about `number` rows."""
        some = self.rows[:: max(1, len(self.rows) // number)]
        return Columns(self.numpy, some, self._fields)

    def make_mask(self, tests: Sequence[Expr]) -> Any:
        """Return a mask of the rows that pass all tests; None if there are no tests."""
        found = None
        for test in tests:
            passes = self._truth(self.value(test))
            found = passes if found is None else found & passes
        return found

    def among(self, passed: Any) -> Columns:
        """Return the columns of the rows of a mask, including values that are computed already."""
        places = self.numpy.flatnonzero(passed).tolist()
        chosen = Columns(self.numpy, [self.rows[place] for place in places], self._fields)
        for expr, column in self._known.items():
            if isinstance(column.values, self.numpy.ndarray):
                values = column.values[passed]
                chosen._known[expr] = ValueColumn(values, column.kind, column.most)
        return chosen

    def value(self, expr: Expr) -> ValueColumn:
        """Return the values of an expression."""
        found = self._known.get(expr)
        if found is None:
            found = self._known[expr] = self._compute(expr)
        return found

    def objects_of_field(self, expr: Expr, places: Sequence[int]) -> list[Any] | None:
        """Return the objects of a field in the rows at `places`; None if `expr` is not a field."""
        field = _field_of(expr)
        return None if field is None else [field[1](self.rows[place]) for place in places]

    def _compute(self, expr: Expr) -> ValueColumn:
        """Compute the column of an expression; raises `NotTaken` if that is not possible."""
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
        """Read a field of all rows as a column; raises `NotTaken` if its class is not known."""
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
        """Return a column of `bool`; the truth of other values is not supported."""
        if column.kind is not bool or not isinstance(column.values, self.numpy.ndarray):
            raise NotTaken
        return column.values

    def _operation(self, operator: str, left: ValueColumn, right: ValueColumn) -> ValueColumn:
        """Apply a binary operator to columns; raises `NotTaken` if the result may be inexact."""
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
        """Compare texts with a constant."""
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
"""Least number of rows that is worth importing numpy, which takes as long as 100,000 rows."""
SAMPLED = 256
"""Size of a sample; one in four of its rows must pass the tests."""
GREATEST = 2.0**124
"""Sums of smaller floats can be stored as a number and a count."""

Changed = dict[Any, tuple[RunningSum, ...]]
"""The number of rows and the sum of each value, by key."""


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """Expressions of each row: tests, the key, and values that are summed.

    Rows that fail a test are ignored. Without keys all rows are one group. `touched` lists
    expressions that a loop evaluates because they may raise: they do not raise if they can be
    computed here.
    """

    touched: tuple[Expr, ...]
    tests: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    values: tuple[Expr, ...]

    def sum_delta(self, delta: UniformDelta) -> Changed | None:
        """Return the sums of a delta by key; None if the loop must compute them."""
        numpy = find_numpy(len(delta))
        if numpy is None or delta.weight != 1:
            return None
        try:
            columns = self._filter_rows(Columns(numpy, delta.rows, delta.fields or {}))
            return {} if not columns.rows else self._sum_columns(columns)
        except Exception as error:  # if it is an error, the loop raises it
            reraise_asynchronous(error)
            return None

    def _filter_rows(self, columns: Columns) -> Columns:
        """Return the rows that pass the tests; raise `NotTaken` if they are too few."""
        sample = columns.sample(SAMPLED)
        for expr in (*self.touched, *self.keys, *self.values):
            sample.value(expr)
        some = sample.make_mask(self.tests)
        if some is None:
            return columns
        if 4 * int(some.sum()) < len(sample.rows):
            raise NotTaken
        return columns.among(columns.make_mask(self.tests))

    def _sum_columns(self, columns: Columns) -> Changed:
        """Return the count and the sums of each key; raises `NotTaken` for too many keys."""
        numpy = columns.numpy
        codes, keys_of = _codes(columns, self.keys)
        counts = numpy.bincount(codes)
        there, first = _in_turn(numpy, codes, counts)
        if self.keys and 2 * len(there) > max(len(codes), grouped.MANY):
            raise NotTaken
        counted = counts[there].tolist()
        sums = [_sums_by_code(columns, expr, codes, there, counted) for expr in self.values]
        return dict(zip(keys_of(there, first), zip(counted, *sums, strict=True), strict=True))


def column_sums(
    pipeline: RowPipeline, keys: Sequence[Expr], values: Sequence[Expr]
) -> ColumnSums | None:
    """Return the sums of a pipeline over columns; None if it has unsupported instructions."""
    if pipeline.bindings != 1 or len(keys) > 1 or pipeline.makes_several:
        return None
    made: dict[str, Expr] = {}
    tests: list[Expr] = []
    touched: list[Expr] = []
    for instruction in pipeline.instructions:
        expr = _inline_rows(instruction.expr, made)
        if instruction.kind == "set":
            made[instruction.name] = expr
            touched += expr.items if isinstance(expr, Display) and expr.kind == "tuple" else [expr]
        elif instruction.kind == "attempt":
            needed, test = _split_attempt(expr)
            touched += needed
            tests += test
        else:
            touched.append(expr)
        if instruction.kind == "test":
            tests.append(expr)
    parts = [
        tuple(_inline_rows(expr, made) for expr in exprs)
        for exprs in (touched, tests, keys, values)
    ]
    if not all(is_columnar(expr) for exprs in parts for expr in exprs):
        return None
    return ColumnSums(*parts)


def _split_attempt(expr: Expr) -> tuple[list[Expr], list[Expr]]:
    """Return the expressions that a condition evaluates first, and the condition, if it is not
    `TRUE`; nothing raises over columns."""
    needed: list[Expr] = []
    while isinstance(expr, First):
        needed += expr.needs
        expr = expr.then
    return ([*needed, expr], [expr]) if expr != TRUE else (needed, [])


def _inline_rows(expr: Expr, made: Mapping[str, Expr]) -> Expr:
    """Return an expression without the variables of rows that a loop makes."""

    def named(part: Expr) -> Expr:
        return made.get(part.name, part) if isinstance(part, Local) else part

    return transform(transform(expr, named), project_node)


def find_numpy(rows: int) -> Any:
    """Return numpy, if it is imported, or installed and worth the import; else None."""
    found = sys.modules.get("numpy")
    if found is None and rows >= UNLOADED and find_spec("numpy") is not None:
        found = import_module("numpy")
    return found


def _codes(columns: Columns, keys: Sequence[Expr]) -> tuple[Any, Callable[[Any, Any], list[Any]]]:
    """Return a small code for the key of each row, and a function that returns the keys of codes.

    The function takes the codes and the first row of each.
    """
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
        held = columns.objects_of_field(
            keys[0], first.tolist()
        )  # groups share the key objects of rows
        return key.values[first].tolist() if held is None else held

    least, most = int(key.values.min()), int(key.values.max())
    if most - least <= 4 * count:
        return key.values - least, keys_of
    return numpy.unique(key.values, return_inverse=True)[1], keys_of


def _in_turn(numpy: Any, codes: Any, counts: Any) -> tuple[Any, Any]:
    """Return the codes that occur, in the order of their first rows, and these rows."""
    there = numpy.flatnonzero(counts)
    first = numpy.empty(len(counts), numpy.int64)
    first[codes[::-1]] = numpy.arange(len(codes) - 1, -1, -1)  # the last assignment wins
    there = there[numpy.argsort(first[there])]
    return there, first[there]


def _sums_by_code(
    columns: Columns, expr: Expr, codes: Any, there: Any, counted: Sequence[int]
) -> list[RunningSum]:
    """Return the running sum of each code; raises `NotTaken` if sums may be inexact."""
    value, count = columns.value(expr), len(columns.rows)
    if not isinstance(value.values, columns.numpy.ndarray):
        raise NotTaken
    if value.kind is float:
        return list(map(scaled_sum, _scale_by_code(columns.numpy, value, codes, there), counted))
    if value.kind is not int or value.most * count >= EXACT:
        raise NotTaken
    return _whole_sums(columns.numpy, value.values, codes, there)


def _whole_sums(numpy: Any, whole: Any, codes: Any, there: Any) -> list[int]:
    """Return sums of integers that stay below 53 bits."""
    found = numpy.bincount(codes, weights=whole)[there]
    return found.astype(numpy.int64).tolist()  # type: ignore[no-any-return]


def _scale_by_code(numpy: Any, value: ValueColumn, codes: Any, there: Any) -> list[int]:
    """Return exact sums of floats, times 2**BITS, by adding some leading bits of all at a time."""
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
        rest = rest - numpy.ldexp(leading, unit)  # exact: the leading bits become zero
        if not rest.any():
            return numbers
        if unit == -BITS:
            raise NotTaken
        unit = max(unit - bits, -BITS)
