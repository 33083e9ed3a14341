"""Unique keys of the rows of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from optimizer.expr import Attribute, Parameter
from optimizer.plans.forms import NO_KEY, unique_key
from reactive import Database


@dataclass(frozen=True, slots=True)
class Offer:
    part: int
    shop: int
    cost: int


PART, SHOP = (Attribute(Parameter(0), name) for name in ("part", "shop"))


@pytest.mark.parametrize(
    ("key", "found"),
    [
        (None, NO_KEY),
        ("part", {PART}),
        (lambda o: o.part, {PART}),
        (lambda o: (o.part, o.shop), {PART, SHOP}),
        (lambda o: o.part + o.shop, NO_KEY),
        (lambda o: (o.part, o.shop % 3), NO_KEY),
        (hash, NO_KEY),
    ],
)
def test_the_key_of_a_table_is_that_of_its_rows(key: Any, found: Any) -> None:
    offers = Database().table(Offer, key=key)
    assert unique_key(offers.plan) == found
    assert unique_key(offers.where(lambda o: o.cost > 3).plan) == found
    assert unique_key(offers.select(lambda o: o).plan) == NO_KEY
