"""What is known under another name elsewhere, or asked of the wrong object, gets a hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive import Count, Database, PlanError

ASKED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "filter": (lambda t: t.filter(len), "its name is where"),
    "map": (lambda t: t.map(len), "its name is select"),
    "limit": (lambda t: t.limit(3), r"first order_by\(key\)"),
    "groups": (lambda t: t.group_by(len).materialize(), "first what to keep of each group"),
    "view": (lambda t: t.materialize().filter(len), "its name is where"),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_method_that_is_elsewhere_is_pointed_to(name: str) -> None:
    ask, hint = ASKED[name]
    with pytest.raises(AttributeError, match=hint):
        ask(Database().table(str))


def test_what_nobody_knows_gets_no_hint() -> None:
    relation: Any = Database().table(str).distinct()
    with pytest.raises(AttributeError, match=r"has no attribute 'frobnicate'$"):
        _ = relation.frobnicate


@pytest.mark.parametrize("row_type", ["orders", dict, list])
def test_what_no_row_can_be_of_is_refused_when_the_table_is_made(row_type: Any) -> None:
    with pytest.raises(PlanError):
        Database().table(row_type)


def test_a_grouped_view_has_its_keys_in_it() -> None:
    words = Database().table(str)
    view = words.group_by(len).aggregate(Count()).materialize()
    words.add("to")
    assert 2 in view
    assert (2, 1) in view
    assert 3 not in view


def test_names_that_only_give_hints_are_not_listed_and_not_there() -> None:
    table = Database().table(str)
    assert "filter" not in dir(table) and not hasattr(table, "filter")
    view = table.materialize()
    assert "filter" not in dir(view) and not hasattr(view, "filter")
    assert {"where", "items"} < set(dir(table)) and {"items", "count", "where"} < set(dir(view))
