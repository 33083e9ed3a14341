"""Aggregates of statistics, beside plain Python over the rows after every commit."""

from __future__ import annotations

import math
import random
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import reactive
from reactive import (
    ApproxCountDistinct,
    ArgMax,
    ArgMin,
    BoolAnd,
    BoolOr,
    Count,
    Database,
    FirstBy,
    LastBy,
    Median,
    MostCommon,
    PlanError,
    Quantile,
    StdDev,
    StringJoin,
    Sum,
    Variance,
    desc,
)
from reactive.engine.collections.distinct_sketch import DistinctSketch, hash_of_value
from reactive.engine.collections.sorted_copies import KeyedValues, OrderedCopies, value_key
from tests.budget import SEED


@dataclass(frozen=True)
class Lap:
    driver: str
    time: Any
    note: str | None


def _same(value: Any) -> Any:
    return value


def _median(values: list[Any]) -> Any:
    if not values:
        return None
    found = statistics.median(map(Fraction, values))
    return found if isinstance(values[0], Fraction) else float(found)


def _at(values: list[Any], at: Fraction, rounded: Callable[[Any], int]) -> Any:
    return sorted(values)[rounded(at * (len(values) - 1))] if values else None


def _variance(values: list[Any]) -> Any:
    if len(values) < 2:
        return None
    found = statistics.variance(map(Fraction, values))
    return float(found) if found < Fraction(sys.float_info.max) else math.inf


def _deviation(values: list[Any]) -> Any:
    return statistics.pstdev(map(Fraction, values)) if values else None


def _most_common(values: list[Any], most: int) -> tuple[tuple[Any, int], ...]:
    return tuple(sorted(Counter(values).items(), key=lambda p: (-p[1], p[0]))[:most])


def _first(laps: list[Lap], best: Callable[..., Any]) -> Any:
    if not laps:
        return None
    least = best(lap.time for lap in laps)
    return min(
        (lap for lap in laps if lap.time == least), key=lambda lap: (lap.driver, lap.note or "")
    )


def _is_above(least: int) -> Callable[[Lap], bool]:
    return lambda lap: bool(lap.time > least)


ORACLES: dict[str, tuple[Any, Callable[[list[Lap]], Any]]] = {
    "median": (Median("time"), lambda laps: _median([lap.time for lap in laps])),
    "lower": (
        Quantile("time", 0.3, interpolation="lower"),
        lambda laps: _at([lap.time for lap in laps], Fraction("0.3"), math.floor),
    ),
    "higher": (
        Quantile("time", 0.9, interpolation="higher"),
        lambda laps: _at([lap.time for lap in laps], Fraction("0.9"), math.ceil),
    ),
    "variance": (Variance("time"), lambda laps: _variance([lap.time for lap in laps])),
    "deviation": (
        StdDev("time", sample=False),
        lambda laps: _deviation([lap.time for lap in laps]),
    ),
    "all": (
        BoolAnd(_is_above(2)),
        lambda laps: all(lap.time > 2 for lap in laps) if laps else None,
    ),
    "any": (
        BoolOr(_is_above(8)),
        lambda laps: any(lap.time > 8 for lap in laps) if laps else None,
    ),
    "first": (FirstBy("time"), lambda laps: _first(laps, min)),
    "last": (LastBy("time"), lambda laps: _first(laps, max)),
    "arg_min": (
        ArgMin("driver", by="time"),
        lambda laps: _first(laps, min).driver if laps else None,
    ),
    "arg_max": (
        ArgMax("driver", by="time"),
        lambda laps: _first(laps, max).driver if laps else None,
    ),
    "common": (
        MostCommon("driver"),
        lambda laps: _most_common([lap.driver for lap in laps], 1)[0][0] if laps else None,
    ),
    "common_two": (
        MostCommon("driver", 2),
        lambda laps: _most_common([lap.driver for lap in laps], 2),
    ),
    "texts": (
        StringJoin("driver", "-"),
        lambda laps: "-".join(sorted(lap.driver for lap in laps)) or None,
    ),
    "texts_by_time": (
        StringJoin("driver", order=desc("time")),
        lambda laps: (
            ",".join([lap.driver for lap in sorted(laps, key=lambda p: (p.time, p.driver))][::-1])
            or None
        ),
    ),
    "notes": (
        StringJoin("note", "", skip_none=True),
        lambda laps: "".join(sorted(lap.note for lap in laps if lap.note is not None)) or None,
    ),
}
TIMES: dict[str, Callable[[random.Random], Any]] = {
    "int": lambda rnd: rnd.randrange(10),
    "float": lambda rnd: rnd.choice([0.1, 0.2, 1e300, -7.25, 1e-300, rnd.random() * 10]),
    "fraction": lambda rnd: Fraction(rnd.randrange(30), rnd.randrange(1, 7)),
    "big": lambda rnd: rnd.randrange(10) * 10**30,
}


@pytest.mark.parametrize("kind", TIMES)
def test_histories_agree_with_plain_python(kind: str) -> None:
    """After every commit, all groups and the whole agree, also after commits that are undone."""
    rnd, db = random.Random(f"{kind} {SEED}"), Database()
    laps: list[Lap] = []
    table = db.table(Lap, name="laps")
    asked = {name: aggregate for name, (aggregate, _) in ORACLES.items()}
    whole = table.aggregate(**asked).materialize()
    groups = table.group_by("driver").aggregate(**asked).materialize()
    for _ in range(120):
        old = list(laps)
        try:
            with db.transaction():
                for _ in range(rnd.choice([1, 1, 2, 12])):
                    if laps and rnd.random() < 0.5:
                        table.remove(laps.pop(rnd.randrange(len(laps))))
                    else:
                        laps.append(
                            Lap(rnd.choice("abc"), TIMES[kind](rnd), rnd.choice([None, "x", "y"]))
                        )
                        table.add(laps[-1])
                if rnd.random() < 0.2:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            laps = old
        _agree(whole.value._asdict(), laps)
        assert set(groups.keys()) == {lap.driver for lap in laps}
        for driver in list(groups.keys()):  # the rows are records
            _agree(groups[driver]._asdict(), [lap for lap in laps if lap.driver == driver])
        whole.verify()
        groups.verify()
    table.clear()
    assert whole.value.median is None and whole.value.common_two == ()


def _agree(found: dict[str, Any], laps: list[Lap]) -> None:
    for name, (_, oracle) in ORACLES.items():
        wanted = oracle(laps)
        if name == "deviation" and wanted is not None:
            assert math.isclose(found[name], wanted, rel_tol=1e-15), name
        else:
            assert found[name] == wanted, name


@pytest.mark.parametrize(
    ("values", "median"),
    [
        ([1, 2], 1.5),
        ([1, 3, 5], 3.0),
        ([0.1, 0.3], 0.2),
        ([Decimal("1.1"), Decimal("1.2")], Decimal("1.15")),
        ([timedelta(1), timedelta(2)], timedelta(hours=36)),
        ([datetime(2024, 1, 1), datetime(2024, 1, 2)], datetime(2024, 1, 1, 12)),
        ([date(2024, 1, 1), date(2024, 1, 3)], date(2024, 1, 2)),
        ([1e308, 1.7e308], 1.35e308),
        ([-math.inf, 1.0, math.inf], 1.0),
        ([1.0, math.nan, math.nan], math.nan),
        ([2**70, 2**70 + 2], float(2**70 + 1)),
    ],
)
def test_median_of_kinds(values: list[Any], median: Any) -> None:
    table = Database().table(object)
    table.add_all(values)
    found = table.aggregate(Median(_same)).materialize().value
    assert type(found) is type(median)
    assert found == median or (found != found and median != median)


def test_quantile_of_texts_takes_one_of_them() -> None:
    table = Database().table(str)
    table.add_all(["a", "b", "c", "d"])
    view = table.aggregate(Quantile(lambda w: w, 0.5, interpolation="nearest")).materialize()
    assert view.value == "b"
    with pytest.raises(
        TypeError, match='there is no str between two others\n  interpolation="lower"'
    ):
        table.aggregate(Median(_same)).materialize()


def test_none_is_refused_with_the_remedy_and_changes_nothing() -> None:
    table = Database().table(object)
    table.add_all([1, 2])
    views = [
        table.aggregate(aggregate(lambda v: v)).materialize()
        for aggregate in (Median, Variance, BoolAnd, BoolOr)
    ]
    old = [view.value for view in views]
    with pytest.raises(TypeError) as caught:
        table.add(None)
    assert any("skip_none=True" in note for note in caught.value.__notes__)
    assert [view.value for view in views] == old
    table.add(3)
    for view in views:
        view.verify()


def test_a_value_that_does_not_compare_is_rolled_back() -> None:
    table = Database().table(object)
    view = table.aggregate(Median(_same), MostCommon(lambda v: v)).materialize()
    table.add_all([1, 2, 2])
    with pytest.raises(TypeError):
        table.add_all([5, "text"])
    assert view.value == (2.0, 2)
    table.remove(1)
    assert view.value == (2.0, 2)


def test_rows_without_order_are_compared_by_fields() -> None:
    table = Database().table(Lap)
    first = table.aggregate(FirstBy("time")).materialize()
    table.add_all([Lap("b", 1, None), Lap("a", 1, "x"), Lap("a", 1, None)])
    assert first.value == Lap("a", 1, None)
    first.verify()


def test_first_of_a_join_is_the_pair() -> None:
    db = Database()
    left, right = db.table(int, name="left"), db.table(int, name="right")
    pairs = left.join(right, on=lambda a, b: a % 2 == b % 2)
    view = pairs.aggregate(
        FirstBy(lambda a, b: a * b), LastBy(lambda a, b: a + b, of=lambda a, b: b)
    )
    found = view.materialize()
    left.add_all([1, 2, 3])
    right.add_all([4, 5])
    assert found.value == ((1, 5), 5)
    right.remove(5)
    assert found.value == ((2, 4), 4)
    found.verify()


@pytest.mark.parametrize("policy", ["drop", "null"])
def test_a_row_whose_value_cannot_be_added_follows_the_policy(policy: Any) -> None:
    table = Database().table(object)
    query = table.group_by(lambda v: 0).aggregate(Variance(lambda v: v), Count())
    view = query.materialize(on_error=policy)
    table.add_all([1, 3, "x"])
    assert view[0] == ((2.0, 2) if policy == "drop" else (2.0, 3))
    view.verify()
    table.remove("x")
    view.verify()


def test_rows_that_are_not_stored_may_have_negative_weights() -> None:
    db = Database()
    events = db.table(int, stored=False)
    view = events.aggregate(Median(_same), MostCommon(lambda v: v), Sum(lambda v: v))
    found = view.materialize()
    events.remove(5)
    assert list[Any](found) == [(None, None, -5)]
    events.add_all([5, 7])
    assert found.value == (7.0, 7, 7)


def test_sketch_is_within_its_error_and_forgets_what_is_deleted() -> None:
    rnd = random.Random(SEED)
    errors = []
    for size in (10, 100, 1_000, 5_000, 20_000):
        sketch, fresh = DistinctSketch(12), DistinctSketch(12)
        values = [rnd.getrandbits(60) for _ in range(size)]
        for value in values:
            sketch.add(value, 1)
            sketch.add(str(value), 1)
        for value in values:
            sketch.add(str(value), -1)
            fresh.add(value, 2)
        assert sketch.estimate() == fresh.estimate()
        errors.append(abs(sketch.estimate() / size - 1))
        for value in values:
            sketch.add(value, -1)
        assert sketch.is_zero and sketch.estimate() == 0
    assert max(errors) < 4 * 1.04 / 64


def test_estimate_of_more_than_registers() -> None:
    table = Database().table(int)
    view = table.aggregate(
        ApproxCountDistinct(lambda v: v % 3_000, error=0.1), ApproxCountDistinct(str)
    )
    found = view.materialize()
    table.add_all(range(6_000))
    coarse, fine = found.value
    assert abs(coarse - 3_000) < 1_200 and abs(fine - 6_000) < 480
    found.verify()
    table.remove_all(range(6_000))
    assert found.value == (0, 0)


def test_hashes_are_those_of_other_processes() -> None:
    text = (
        "from reactive.engine.collections.distinct_sketch import hash_of_value as h; "
        "print(h('text'), h(None), h(('a', 1, b'x')), h(2.0) == h(2))"
    )
    here = f"{hash_of_value('text')} {hash_of_value(None)} {hash_of_value(('a', 1, b'x'))} True"
    found = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    ).stdout
    assert found.strip() == here


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quantile("x", 1.5), "a fraction from 0 to 1, not 1.5"),
        (lambda: Quantile("x", True), "a fraction from 0 to 1, not True"),
        (
            lambda: _untyped(Quantile)("x", 0.5, interpolation="cubic"),
            "there is no interpolation 'cubic'",
        ),
        (lambda: MostCommon("x", 0), "a number of values, from 1 on, not 0"),
        (lambda: _untyped(StringJoin)("x", 3), "the separator of StringJoin is a text, not 3"),
        (lambda: StringJoin("x", order=desc("y", nulls="last")), "no place for None"),
        (lambda: ApproxCountDistinct("x", error=0), "from 0.0021 to 0.5, not 0"),
        (lambda: ApproxCountDistinct("x", error=0.001), "from 0.0021 to 0.5, not 0.001"),
    ],
)
def test_arguments_that_have_no_meaning(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make()


def _untyped(kind: Any) -> Any:
    return kind


def test_a_field_that_is_not_there_is_named() -> None:
    with pytest.raises(PlanError, match="tiem"):
        Database().table(Lap).aggregate(ArgMin("driver", by="tiem"))


def test_names_of_other_libraries_lead_here() -> None:
    with pytest.raises(AttributeError, match="StdDev"):
        getattr(reactive, "Stddev")  # noqa: B009


def test_texts_of_other_kinds_are_refused() -> None:
    table = Database().table(object)
    view = table.aggregate(_untyped(StringJoin)(lambda v: v)).materialize()
    with pytest.raises(TypeError, match="StringJoin joins texts, not int"):
        table.add(5)
    assert view.value is None


def test_ordered_copies_owe_what_was_removed_too_often() -> None:
    copies = OrderedCopies()
    copies.add(3, -2)
    copies.add(3, 3)
    assert len(copies) == 1 and copies.at(0) == 3
    copies.add(3, -1)
    assert copies.is_zero


def test_keys_that_are_equal_hold_different_values() -> None:
    values = KeyedValues(lambda value, weight: 0)
    one, other = object(), object()
    values.add(one, 1)
    values.add(other, 1)
    values.add(one, -1)
    assert list(values) == [other]
    assert value_key(1) < value_key("a") < value_key((1,)) < value_key(Lap("a", 1, None))
