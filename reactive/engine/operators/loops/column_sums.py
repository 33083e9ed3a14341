"""Sums by key of a large batch of plain rows, computed over columns.

    rows                  columns                       sums by key
    Order(amount=3, ..)   amount = [3, 5, ...]          where amount * quantity > 8
    Order(amount=5, ..)   quantity = [2, 2, ...]        codes of region, then a sum per code

It gives what the loop (`summing.py`) gives of the same rows, in the same order, or nothing; then
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
from typing import Any

from optimizer.expr import TRUE, Display, Expr, First, Local, transform
from optimizer.expressions.compose import projected
from reactive.engine.codegen.emitter import RowPipeline
from reactive.engine.collections.exact import BITS
from reactive.engine.collections.running_sum import RunningSum, scaled_sum
from reactive.engine.collections.zset import Batch
from reactive.engine.operators.loops import large
from reactive.engine.operators.loops.columns import EXACT, Column, Columns, NotTaken, is_columnar
from reactive.engine.runtime.interrupts import reraise_asynchronous

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

    def of(self, delta: Batch) -> Changed | None:
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
        if self.keys and 2 * len(there) > max(len(codes), large.MANY):
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
    """The sum of each code, as `running_sum.py` has it."""
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


def _scaled(numpy: Any, value: Column, codes: Any, there: Any) -> list[int]:
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
