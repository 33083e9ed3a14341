"""The values of a group, in order or not, against a dictionary of weights."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Collect, Count, CountDistinct, Database, Max, Min, Sum
from reactive.engine.collections.values import OrderedValues
from tests.budget import sampled

POOLS: dict[str, list[Any]] = {
    "integers": list(range(12)),
    "many integers": list(range(3_000)),
    "numbers": [0, 1.5, Fraction(1, 3), Decimal("2.5"), -4, True, 1e300],
    "with nan": [1, 2, 3.5, float("nan"), Decimal("NaN")],
    "texts": list("abcdef"),
    "tuples": [(1, "a"), (1, "b"), (2, "a")],
    "short tuples": [(1,), (2,), (3,)],
}


@sampled
@pytest.mark.long
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("asked_from", [0, 20, 3_900, 10_000])
def test_they_are_those_of_a_dictionary(name: str, asked_from: int) -> None:
    random, values = Random(name), OrderedValues()
    model: Counter[Any] = Counter()
    for turn in range(4_000 if name == "many integers" else 400):
        value = random.choice(POOLS[name])
        weight = random.choice([1, 1, 1, 2, -1, -1, -2])
        key = repr(value) if value != value else value
        values.add(value, weight)
        model[key] += weight
        model = Counter({k: w for k, w in model.items() if w})
        owed, model_of_all = {k: w for k, w in model.items() if w < 0}, model
        model = +model  # negative counts are not among the values
        if turn >= asked_from:
            known = [k for k in model if not (isinstance(k, str) and "n" in k.lower())]
            nans = [k for k in model if isinstance(k, str) and "n" in k.lower()]
            if name in ("texts",):
                known, nans = list(model), []
            least, greatest = values.least(), values.greatest()
            if known:
                assert least == min(known)
            if nans:
                assert greatest != greatest
            elif known:
                assert greatest == max(known)
            if not model:
                assert least is None and greatest is None
        assert len(values) == len(model)
        if turn % 25 and name == "many integers":
            model = model_of_all
            continue
        assert {repr(v) if v != v else v: w for v, w in values.weights().items()} == model
        assert {repr(v) if v != v else v: w for v, w in (values.negative or {}).items()} == owed
        model = model_of_all


def test_most_are_in_no_dictionary_once_their_order_was_asked_for() -> None:
    values = OrderedValues()
    for number in range(1_000):
        values.add(number, 1)
    before = values.__sizeof__()
    assert values.least() == 0
    assert values.__sizeof__() < before / 3


def test_one_of_another_kind_brings_them_back_to_the_dictionary() -> None:
    values = OrderedValues()
    values.add(2.5, 1)
    values.add(7, 2)
    assert values.greatest() == 7
    values.add(Odd(9), 1)
    assert values.greatest() == Odd(9) and len(values) == 3
    values.add(Odd(9), -1)
    values.add(7, -2)
    assert values.greatest() == 2.5 and dict(values.weights()) == {2.5: 1}


def test_what_does_not_compare_changes_nothing() -> None:
    values = OrderedValues()
    values.add(1, 1)
    values.add(3, 2)
    assert values.least() == 1
    for _ in range(2):
        with pytest.raises(TypeError):
            values.add("a", 1)
    assert dict(values.weights()) == {1: 1, 3: 2} and values.greatest() == 3


class Odd:
    """A value that compares with numbers, and whose class is unknown."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __lt__(self, other: Any) -> bool:
        return bool(self.number < getattr(other, "number", other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.number > getattr(other, "number", other))

    def __eq__(self, other: object) -> bool:
        return bool(self.number == getattr(other, "number", other))

    def __hash__(self) -> int:
        return hash(self.number)


@pytest.mark.parametrize("optimize", [False, True])
def test_aggregates_that_share_values_are_right_and_taken_back(optimize: bool) -> None:
    db = Database(optimize=optimize)
    rows: Any = db.table(tuple, name="rows")
    view = (
        rows.group_by(lambda r: r[0])
        .aggregate(
            Min(lambda r: r[1]),
            Sum(lambda r: r[0]),
            Max(lambda r: r[1]),
            CountDistinct(lambda r: r[1]),
            Collect(lambda r: r[1]),
            Count(),
        )
        .materialize()
    )
    whole = rows.aggregate(Max(lambda r: r[1])).materialize()
    random = Random(4)
    held: list[tuple[int, Any]] = []
    for turn in range(300):
        came = [(random.randrange(3), random.randrange(30)) for _ in range(random.randrange(4))]
        went = random.sample(held, min(len(held), random.randrange(3)))
        before = sorted(view, key=lambda row: row[0])
        fails = turn % 7 == 0
        try:
            with db.transaction():
                rows.add_all(came)
                rows.remove_all(went)
                if fails and held:
                    rows.add((held[0][0], "does not compare"))
        except TypeError:
            assert sorted(view, key=lambda row: row[0]) == before
        else:
            held += came
            for row in went:
                held.remove(row)
        view.verify()
        whole.verify()


class Thing:
    """A value that cannot be compared, not even with itself."""


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("odd", [None, Thing()])
def test_a_value_without_an_order_may_be_the_only_one_and_go(optimize: bool, odd: Any) -> None:
    db = Database(optimize=optimize)
    rows: Any = db.table(tuple, name="rows")
    view: Any = rows.group_by(lambda r: r[0]).aggregate(Min(lambda r: r[1])).materialize()
    rows.add((0, odd))
    rows.add((0, odd))
    view.verify()
    rows.remove((0, odd))
    assert dict(view) == {0: odd}
    rows.remove((0, odd))
    assert not len(view)
    rows.add((0, 1))
    assert dict(view) == {0: 1}


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("odd", [None, "x", 2.5])
@pytest.mark.parametrize("aggregates", [(Min,), (Max, Collect), (CountDistinct, Min)])
def test_what_another_operator_refuses_is_taken_back(
    optimize: bool, odd: Any, aggregates: tuple[Any, ...]
) -> None:
    db = Database(optimize=optimize)
    rows: Any = db.table(tuple, name="rows", key=lambda r: r[0])
    of = [aggregate(lambda r: r[2]) for aggregate in aggregates]
    view: Any = rows.group_by(lambda r: r[1]).aggregate(*of).materialize()
    last = rows.aggregate(Sum(lambda r: 1 // (r[0] - 9))).materialize()
    rows.add_all([(0, 0, 4), (1, 1, 5), (2, 1, 6)])
    before = dict(view.zset().items())
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), db.transaction():
            rows.upsert((0, 0, odd))
            rows.upsert((9, 9, 1))
        assert dict(view.zset().items()) == before
        view.verify()
    rows.upsert((0, 0, 3))
    view.verify()
    last.verify()


class Measured(NamedTuple):
    value: float
    place: int


@pytest.mark.long
@pytest.mark.parametrize("kind", [lambda value, place: (value, place), Measured])
@pytest.mark.parametrize("seed", range(20))
def test_tuples_with_a_nan_stand_after_those_without(kind: Any, seed: int) -> None:
    random = Random(seed)
    rows = Database().table(tuple)
    least = rows.aggregate(Min(lambda r: r)).materialize()
    greatest = rows.aggregate(Max(lambda r: r)).materialize()
    groups = rows.group_by(lambda r: r[1] % 2).aggregate(Max(lambda r: r)).materialize()
    in_order = rows.order_by(lambda r: r).materialize()
    held: list[Any] = []
    for _ in range(60):
        if held and random.random() < 0.45:
            rows.remove(held.pop(random.randrange(len(held))))
        else:
            held.append(kind(random.choice([float("nan"), 1.0, 2.5, -1.0]), random.randrange(3)))
            rows.add(held[-1])
        ends = (in_order[0], in_order[-1]) if held else (None, None)
        assert repr((least.value, greatest.value)) == repr(ends)
        for view in (least, greatest, groups, in_order):
            view.verify()
