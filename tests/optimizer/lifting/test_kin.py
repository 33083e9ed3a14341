"""Kin: callables of one code that differ in plain values of their variables."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from optimizer.callables.opaque import Opaque, opaque
from optimizer.lifting.lift import lift
from optimizer.lifting.readings import Kin, kin_of


def taken(function: Callable[..., Any]) -> Opaque:
    return opaque(function, 1, "where")


def key_of(function: Callable[..., Any]) -> Any:
    kin = kin_of(taken(function))
    assert isinstance(kin, Kin)
    return kin.key


def above(limit: Any) -> Callable[[Any], bool]:
    return lambda row: bool(row.age > limit)


def by_default(limit: Any) -> Callable[..., Any]:
    return lambda row, limit=limit: row.age > limit


def calling(function: Any) -> Callable[[Any], Any]:
    return lambda row: function(row)


@pytest.mark.parametrize("make", [above, by_default])
def test_callables_of_one_code_are_kin_whatever_plain_value_of_a_class_they_have(make: Any) -> None:
    one, other = kin_of(taken(make(3))), kin_of(taken(make(5)))
    assert one is not None and other is not None and one.key == other.key
    assert (one.values, other.values) == ((("limit", 3),), (("limit", 5),))
    others = [3.0, True, None, "3", (3,), (4,), int, len]
    keys = [one.key, *map(key_of, map(make, others))]
    assert len(set(keys)) == len(keys)


def test_what_has_no_lasting_meaning_has_no_kin() -> None:
    for value in (object(), [object()], above(3)):
        kin = kin_of(taken(calling(value)))
        assert kin is None or not kin.values
    assert kin_of(taken(calling(above(3)))) is None


def test_a_function_that_is_gone_is_not_taken_for_another_one() -> None:
    names: dict[str, Any] = {}
    keys = set()
    for number in range(20):
        exec(f"def step(row): return {number}", names)
        keys.add(key_of(calling(names["step"])))
        names.clear()
        gc.collect()
    assert len(keys) == 20


@pytest.mark.parametrize("make", [above, by_default])
def test_kin_are_read_once_and_each_has_its_own_values(make: Any) -> None:
    for value in (3, 5, 7, "a", "b", -0.0, 0.0):
        lifted = lift(taken(make(value)))
        fresh = lift(taken(make((value,))))
        shown = repr(lifted.body)
        assert repr(value) in shown and "Slot" not in shown and "Held" not in shown
        assert shown == repr(fresh.body).replace(f"({value!r},)", repr(value))
