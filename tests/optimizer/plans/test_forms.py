"""Forms: facts shared by all nodes that differ in plain values."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from optimizer.errors import PlanError
from optimizer.plans.check_reads import believed_shapes
from optimizer.plans.forms import form_of
from reactive import Count, Database


class Sale(NamedTuple):
    shop: str
    price: int


def sales() -> Any:
    return Database().table(Sale, name="sales")


def test_nodes_that_differ_in_plain_values_have_one_form() -> None:
    def made(table: Any, limit: Any) -> Any:
        dear = table.where(lambda s: s.price > limit)
        return dear.group_by(lambda s: s.shop).aggregate(Count()).plan

    forms = [form_of(made(sales(), limit)) for limit in (1, 2, 3)]
    assert forms[0] is not None and forms[0].is_general
    assert all(form is forms[0] for form in forms)
    assert form_of(made(sales(), 1.5)) is not forms[0]


@pytest.mark.parametrize("first", [0, 1])
def test_what_a_value_decides_is_found_for_each(first: int) -> None:
    pairs = sales().select(lambda s: (s.shop, s.price, s.shop))

    def item(place: int) -> Any:
        return pairs.select(lambda p: (p[place], place))

    for place in (first, 2, 1 - first):
        assert believed_shapes(item(place).plan) == ((None, None),)
        item(place).where(lambda r: r[1] == place)
        with pytest.raises(PlanError, match="no item 3"):
            item(3)
        with pytest.raises(PlanError, match="no item 2"):
            item(place).where(lambda r: r[2] == place)


def test_a_field_that_is_missing_is_refused_each_time() -> None:
    for limit in range(4):
        with pytest.raises(PlanError, match="prise"):
            sales().where(lambda s, limit=limit: s.prise > limit)
