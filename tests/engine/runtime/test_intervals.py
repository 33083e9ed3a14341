"""Values of `trigger=`, in numbers and in words."""

from __future__ import annotations

from typing import Any

import pytest

from optimizer.errors import PlanError
from reactive.engine.runtime.background import UNITS, seconds


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("form", ["{n}{unit}", "{n} {unit}", " {n}  {unit}s ", "{n}{upper}"])
def test_every_unit_is_known_with_and_without_a_space_as_a_plural_and_in_capitals(
    unit: str, form: str
) -> None:
    for n in (1, 90, 0.25):
        text = form.format(n=n, unit=unit, upper=unit.upper())
        assert seconds(text, otherwise="") == n * UNITS[unit]


def test_numbers_are_seconds() -> None:
    assert [seconds(n, otherwise="") for n in (1, 0.001, 1e9)] == [1.0, 0.001, 1e9]


@pytest.mark.parametrize("given", [0, 0.0, "0s", "0 hours"])
def test_no_time_at_all_is_an_interval_only_where_it_may_be_one(given: Any) -> None:
    assert seconds(given, otherwise="", may_be_zero=True) == 0.0
    with pytest.raises(PlanError, match="is no interval"):
        seconds(given, otherwise="")


@pytest.mark.parametrize(
    "given",
    [
        *(-1, -0.5, float("nan"), float("inf"), True, None, b"1s", (1,)),
        *(
            "",
            "s",
            "10",
            "ten seconds",
            "1 month",
            "5 m",
            "1s 2s",
            "-1s",
            "1e3s",
            "1,5 s",
            "\u0663s",
        ),
        "1" * 400 + "s",
    ],
)
def test_what_is_none_says_which_units_there_are_and_what_else_can_be_given(given: Any) -> None:
    with pytest.raises(PlanError) as told:
        seconds(given, otherwise="or a bell", may_be_zero=True)
    assert repr(given) in str(told.value)
    assert "\n  give seconds, or a number with one of ms, millisecond, s," in str(told.value)
    assert str(told.value).endswith("or a bell")
