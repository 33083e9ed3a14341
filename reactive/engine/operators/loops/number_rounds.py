"""Rounds over a layout whose columns are arrays of floats, with the results of Python's own floats.

    a round   values of pairs -> exact sums by group -> fields of rows, by position

`+ - * /` of floats are the same in numpy. Sums of floats are exact in Python (`math.fsum`), and so
they are here: each value is cut into two integers of few bits, whose sums by group are exact.

    values    =  high * 2**a  +  low * 2**b         sum  =  sum(high) * 2**a  +  sum(low) * 2**b

The addition of the two sums is the only rounding. A value of more bits, which is smaller than the
largest one by 2**40 or so, has a third integer; `math.fsum` adds the sums of its group.

A round with a division by zero, or with a value that is not finite, is left to lists.

Needs:  numpy; aggregates that sum or average floats, or count; arithmetic of numbers below 53 bits.
State:  the columns of a round, for one evaluation.
Cost:   some 20 ns a pair and round, a tenth of `kept_rounds.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from math import frexp, fsum
from typing import Any

from optimizer.expr import Constant, Expr, Local, Operation
from reactive.engine.operators.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from reactive.engine.operators.loops.columns import EXACT, find_numpy
from reactive.engine.operators.loops.kept_rounds import (
    ArrangedPairs,
    Arrangement,
    KeptRounds,
    class_of_values,
)
from reactive.engine.operators.loops.layout import NearRows, PairColumn
from reactive.engine.operators.loops.rounded_columns import number_array
from reactive.engine.operators.loops.totals import rows_from_columns

Row = Any
Array = Any
Kinds = Mapping[Local, type]
NUMBERS = frozenset({int, float})
WIDEST = 800
"""Exponent of the numbers that can be cut without a subnormal rest."""
FEWEST = 400
"""Fewest pairs and groups for which a round over arrays takes less time than one over lists."""


class NoNumbers(Exception):
    """Raised if a round cannot be computed over arrays."""


def run_rounds(kept: KeptRounds, times: int) -> dict[int, list[Row]]:
    """Return the rows of all aggregates after `times` rounds, by their slots.

    If the rows of the start have integers, the rows after a round may have floats.
    """
    looked, done = times * kept.count_touched(), 0
    numbers = number_rounds(kept, looked)
    if numbers is None and times > 1 and find_arrays(kept, looked) is not None:
        kept.run(1)
        done, numbers = 1, number_rounds(kept, looked)
    if numbers is not None:
        done += numbers.run(times - done)
        if done == times:
            return numbers.rows()
    return kept.run(times - done)


def number_rounds(kept: KeptRounds, looked: int) -> NumberRounds | None:
    """Return the rounds over arrays that go on from `kept`; None if there are none.

    `looked` is the number of rows that the rounds look at, which may be worth importing numpy.
    """
    numpy = find_arrays(kept, looked)
    if numpy is None:
        return None
    try:
        return NumberRounds(numpy, kept)
    except NoNumbers:
        return None


def find_arrays(kept: KeptRounds, looked: int) -> Any:
    """Return numpy, if rounds are large enough for arrays, and look at enough rows; else None."""
    return find_numpy(looked) if kept.count_touched() >= FEWEST else None


@dataclass(frozen=True, slots=True)
class _Sums:
    """The pairs of an aggregate: `parts` and constant values, as one array with their groups."""

    parts: list[ArrangedPairs]
    places: list[Array]
    """For each part, the position of the round's row of each pair."""
    kept: list[list[Array]]
    given: list[Array]
    """For each aggregate of values, the constant values."""
    groups: Array
    counts: Array
    most: int
    """The largest number of rows of a group."""


class NumberRounds:
    """Rounds of one evaluation, over arrays."""

    def __init__(self, numpy: Any, kept: KeptRounds) -> None:
        self.numpy = numpy
        self._kept = kept
        self._kinds = [list(map(_kind_of, columns)) for columns in kept.fields]
        for form, totals in enumerate(kept.layout.of_totals):
            for place in totals:
                if place >= 0 and kept.layout.is_now[form]:
                    self._kinds[form][place] = float
                elif place >= 0 and self._kinds[form][place] is not float:
                    raise NoNumbers
        self.fields = [self._arrays(form) for form in range(len(kept.fields))]
        """The columns of all forms: arrays, or None for a column that is not of numbers."""
        self._alone = [self._alone_of(form) for form in range(len(kept.fields))]
        self._orders = {
            relation: None if (order := a.places.order) is None else numpy.array(order, numpy.intp)
            for relation, a in kept.arranged.items()
        }
        self._sums = {relation: self._sums_of(a) for relation, a in kept.arranged.items()}
        for relation in kept.arranged:
            self._check_totals(relation)
        self._made: dict[int, list[Array]] = {}

    def run(self, times: int) -> int:
        """Run rounds, and return their number; lists must compute the others of `times`."""
        for done in range(times):
            try:
                self._made, later = self.compute()
            except NoNumbers:
                self.store()
                return done
            for form, columns in later.items():
                self.fields[form] = columns
        return times

    def rows(self) -> dict[int, list[Row]]:
        """Return the rows of all aggregates of the last round, by their slots."""
        return {
            a.groups.slot: rows_from_columns(self.columns(relation, self._made[relation]))
            for relation, a in self._kept.arranged.items()
        }

    def columns(self, relation: int, totals: Sequence[Array]) -> list[list[Any]]:
        """Return the key and the totals of an aggregate as lists; counts are integers."""
        arrangement = self._kept.arranged[relation]
        found: list[list[Any]] = [arrangement.places.names]
        for aggregate, values in zip(arrangement.groups.node.aggregates, totals, strict=True):
            is_count = isinstance(aggregate.accumulator, CountAccumulator)
            found.append(arrangement.counts if is_count else values.tolist())
        return found

    def compute(self) -> tuple[dict[int, list[Array]], dict[int, list[Array]]]:
        """Compute a round; return totals by relation, and the relations' fields for the next one.

        Raises `NoNumbers`, and then only fields that are computed in the round itself have changed.
        """
        kept = self._kept
        made: dict[int, list[Array]] = {}
        later: dict[int, list[Array]] = {}
        with self._exactly():
            for relation, arrangement in kept.arranged.items():
                made[relation] = self._totals(relation, arrangement)
                for form in kept.forms[relation]:
                    columns = self._compute_fields(form, relation, made[relation])
                    if kept.layout.is_now[form]:
                        self.fields[form] = columns
                    else:
                        later[form] = columns
        return made, later

    def value(self, near: NearRows, fields: Sequence[Array], size: int) -> Array:
        """Return the values of which a tolerance compares the differences."""
        names = {f"found_{place}[pair]": fields[place] for place in near.value.found}
        with self._exactly():
            return self.numpy.broadcast_to(_compute(near.value.expr, names), (size,))

    def size(self, relation: int) -> int:
        """Return the number of rows of a relation."""
        return self._kept.places(relation).size

    def check_near(self, relation: int, near: NearRows) -> None:
        """Raise `NoNumbers` if the value of a tolerance is no arithmetic over fields."""
        if near.value.width > 1 or near.value.kept:
            raise NoNumbers
        if not _is_arithmetic(near.value.expr, self._found_kinds(relation)):
            raise NoNumbers

    def by_group(self, relation: int, values: Array) -> Array:
        """Return the values of groups by number, of values by position."""
        order = self._orders[relation]
        if order is None:
            return values
        found = self.numpy.empty_like(values)
        found[order] = values
        return found[: len(self._kept.places(relation).names)]

    def store(self) -> None:
        """Set the fields of the rounds of lists."""
        for form, totals in enumerate(self._kept.layout.of_totals):
            for place in totals:
                if place >= 0 and not self._kept.layout.is_now[form]:
                    columns = list(self._kept.fields[form])
                    columns[place] = self.fields[form][place].tolist()
                    self._kept.fields[form] = columns

    @contextmanager
    def _exactly(self) -> Iterator[None]:
        """Raise `NoNumbers` where Python may raise, or a value is not finite."""
        try:
            with self.numpy.errstate(divide="raise", invalid="raise", over="raise"):
                yield
        except FloatingPointError:
            raise NoNumbers from None

    # Arrays of what stays.

    def _arrays(self, form: int) -> list[Array]:
        columns = zip(self._kept.fields[form], self._kinds[form], strict=True)
        return [
            None if kind is None or not column else number_array(self.numpy, column)
            for column, kind in columns
        ]

    def _alone_of(self, form: int) -> dict[int, Array]:
        """Return the moving fields of rows without a group, which are floats."""
        found = {}
        for place in self._kept.layout.of_totals[form]:
            values = self._kept.alone[form][place] if place >= 0 else []
            if set(map(type, values)) - {float}:
                raise NoNumbers
            found[place] = self.numpy.array(values, self.numpy.float64)
        return found

    def _sums_of(self, arrangement: Arrangement) -> _Sums:
        """Return the pairs of an aggregate; raise `NoNumbers` if some value is no float."""
        numpy, size = self.numpy, len(arrangement.places.names)
        if not size or not all(arrangement.counts):
            raise NoNumbers
        kept, groups = [], []
        for part in arrangement.parts:
            own = {Local(f"kept_{place}"): _kind_of(some) for place, some in enumerate(part.kept)}
            kinds = {name: kind for name, kind in own.items() if kind is not None}
            kinds |= self._found_kinds(part.pairs.form)
            columns: Iterator[PairColumn] = chain(part.pairs.checked, part.pairs.values)
            if not all(c.width == 1 and _is_arithmetic(c.expr, kinds) for c in columns):
                raise NoNumbers
            if any(class_of_values(c.expr, kinds) is not float for c in part.pairs.values):
                raise NoNumbers
            kept.append([number_array(numpy, column) for column in part.kept])
            lengths = [end - begin for begin, end in part.ends]
            groups.append(numpy.repeat(numpy.arange(size), lengths))
        if not all(kinds <= {float} for kinds in arrangement.kinds):
            raise NoNumbers
        given = [
            numpy.array(list(chain.from_iterable(some)), numpy.float64)
            for some in arrangement.given
        ]
        if given:
            groups.append(numpy.repeat(numpy.arange(size), list(map(len, arrangement.given[0]))))
        at = [numpy.array(part.at, numpy.intp) for part in arrangement.parts]
        counts = numpy.array(arrangement.counts, numpy.float64)
        every, most = numpy.concatenate(groups), max(arrangement.counts)
        return _Sums(arrangement.parts, at, kept, given, every, counts, most)

    def _found_kinds(self, form: int) -> dict[Local, type]:
        return {
            Local(f"found_{place}[pair]"): kind
            for place, kind in enumerate(self._kinds[form])
            if kind is not None
        }

    def _check_totals(self, relation: int) -> None:
        """Raise `NoNumbers` if an aggregate, or a field computed from it, is not supported."""
        node = self._kept.arranged[relation].groups.node
        kinds: dict[Local, type] = {}
        for place, aggregate in enumerate(node.aggregates, 1):
            if not isinstance(
                aggregate.accumulator, SumAccumulator | AvgAccumulator | CountAccumulator
            ):
                raise NoNumbers
            is_count = isinstance(aggregate.accumulator, CountAccumulator)
            kinds[Local(f"total_{place}")] = int if is_count else float
        for form in self._kept.forms[relation]:
            for place, total in self._kept.layout.of_totals[form].items():
                if not _is_arithmetic(total.expr, kinds):
                    raise NoNumbers
                if place >= 0 and class_of_values(total.expr, dict(kinds)) is not float:
                    raise NoNumbers

    # A round.

    def _totals(self, relation: int, arrangement: Arrangement) -> list[Array]:
        """Return the results of the aggregates of all groups."""
        sums = self._sums[relation]
        valued = iter(range(len(arrangement.groups.valued_accumulators)))
        for number, part in enumerate(sums.parts):
            for value in part.pairs.checked:
                self._pair_values(sums, number, value)
        counts = sums.counts
        found = []
        for aggregate in arrangement.groups.node.aggregates:
            if isinstance(aggregate.accumulator, CountAccumulator):
                found.append(counts)
                continue
            place = next(valued)
            values = [
                self._pair_values(sums, number, part.pairs.values[place])
                for number, part in enumerate(sums.parts)
            ]
            values += [sums.given[place]] if sums.given else []
            every = values[0] if len(values) == 1 else self.numpy.concatenate(values)
            total = sum_groups(self.numpy, every, sums.groups, len(counts), sums.most)
            is_mean = isinstance(aggregate.accumulator, AvgAccumulator)
            found.append(total / counts if is_mean else total)
        return found

    def _pair_values(self, sums: _Sums, number: int, value: PairColumn) -> Array:
        """Return the values of all pairs of a loop."""
        part, at = sums.parts[number], sums.places[number]
        fields = self.fields[part.pairs.form]
        names = {f"kept_{place}": sums.kept[number][place] for place in value.kept}
        names |= {f"found_{place}[pair]": fields[place][at] for place in value.found}
        return self.numpy.broadcast_to(_compute(value.expr, names), (len(at),))

    def _compute_fields(self, form: int, relation: int, totals: list[Array]) -> list[Array]:
        """Compute the fields of a form from the totals of groups."""
        numpy, order = self.numpy, self._orders[relation]
        names = {f"total_{place}": values for place, values in enumerate(totals, 1)}
        found = list(self.fields[form])
        for place, total in self._kept.layout.of_totals[form].items():
            values = numpy.broadcast_to(_compute(total.expr, names), totals[0].shape)
            if place >= 0:
                if not numpy.isfinite(values).all():
                    raise NoNumbers
                if order is not None:
                    values = numpy.concatenate((values, self._alone[form][place]))[order]
                found[place] = values
        return found


def _kind_of(column: Sequence[Any]) -> type | None:
    """Return the class of all numbers of a column; None if it has other values."""
    kinds = set(map(type, column))
    if len(kinds) != 1 or not kinds <= NUMBERS:
        return None
    if int in kinds and max(map(abs, column)) >= EXACT:
        return None
    return kinds.pop()


def _is_arithmetic(expr: Expr, kinds: Kinds) -> bool:
    """Return True if floats compute an expression exactly as Python computes it."""
    match expr:
        case Constant(value):
            return type(value) in NUMBERS and abs(value) < EXACT
        case Local():
            return expr in kinds
        case Operation("+" | "-" | "*" | "/", (left, right)):
            is_float = class_of_values(expr, dict(kinds)) is float
            return is_float and _is_arithmetic(left, kinds) and _is_arithmetic(right, kinds)
    return False


def _compute(expr: Expr, names: Mapping[str, Array]) -> Array:
    """Return the values of an arithmetic expression."""
    match expr:
        case Constant(value):
            return value
        case Local(name):
            return names[name]
        case Operation(operator, (left, right)):
            one, other = _compute(left, names), _compute(right, names)
            match operator:
                case "+":
                    return one + other
                case "-":
                    return one - other
                case "*":
                    return one * other
                case "/":
                    return one / other
    raise TypeError(f"{type(expr).__name__} has no column of numbers")


def sum_groups(numpy: Any, values: Array, groups: Array, size: int, most: int) -> Array:
    """Return the sums of floats by group, each as `math.fsum` rounds it.

    `groups` is the number of the group of each value, `most` the largest number of values in one.
    Raises `NoNumbers` for values that are not finite, and for some of very different sizes.
    """
    largest = float(numpy.abs(values).max())
    if largest == 0:
        return numpy.zeros(size)
    bits = EXACT.bit_length() - 2 - most.bit_length()
    unit, rest = frexp(largest)[1], values
    sums: list[Array] = []
    fine: Array = ()
    if not largest < float("inf") or unit > WIDEST or bits < 1:
        raise NoNumbers
    while not sums or rest.any():
        unit -= bits
        if unit < -WIDEST:
            raise NoNumbers
        whole = numpy.trunc(rest * 2.0**-unit)
        rest = rest - whole * 2.0**unit  # exact: the leading bits become zero
        sums.append(numpy.bincount(groups, whole, size) * 2.0**unit)
        if len(sums) == 2:
            fine = numpy.unique(groups[rest != 0])
    found = sums[0] if len(sums) == 1 else sums[0] + sums[1]  # the only rounding
    if len(sums) > 2:
        found[fine] = list(map(fsum, zip(*(each[fine].tolist() for each in sums), strict=True)))
    return found
