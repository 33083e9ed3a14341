"""The text of an expression is the same in each process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from optimizer.expr import constant
from optimizer.expressions.text import constant_text
from reactive import Database


@dataclass(frozen=True)
class Rounded:
    function: Any

    def __call__(self, value: int) -> Any:
        return self.function(value)


class Plain:
    def __call__(self, value: int) -> int:
        return value


@pytest.mark.parametrize(
    "value", [Rounded(constant_text), partial(constant_text), Plain(), object(), [len]]
)
def test_a_constant_is_described_without_an_address(value: Any) -> None:
    assert " at 0x" not in constant_text(constant(value))


@pytest.mark.parametrize("value", [Rounded(constant_text), partial(pow, 2), Plain()])
def test_a_plan_is_explained_without_an_address(value: Any) -> None:
    numbers: Any = Database().table(int, name="numbers")
    query = numbers.select(value).where(lambda n: value(n) != 3)
    assert " at 0x" not in str(query.explain())


def test_so_are_casts_of_arrays_and_their_error_rows() -> None:
    db = Database()
    db.execute("create table t (a timestamptz)")
    view = db.sql("select cast([a] as varchar[]) as x from t").materialize()
    assert " at 0x" not in f"{view.explain()}{view.errors.explain()}"
