"""The refusal of a query names the place, the reason, and a remedy."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from reactive import Database, PlanError
from tests.comprehensions.play import function_of

GOLDEN = Path(__file__).with_name("refusals.txt")
BETWEEN = "\n=>\n"


@dataclass(frozen=True)
class Customer:
    id: int
    name: str


@dataclass(frozen=True)
class Order:
    id: int
    cid: int
    total: int
    paid: bool
    tags: tuple[int, ...] = ()


def refusal_of(text: str) -> str:
    """The message of a query of this text, in a file of its own."""
    db = Database()
    customers, orders = db.table(Customer, name="customers"), db.table(Order, name="orders")
    others = Database().table(Order, name="others")
    library = {"islice": islice, "reduce": reduce, "mean": mean, "defaultdict": defaultdict}
    tables = {"customers": customers, "orders": orders, "others": others, "limit": 3}
    function = function_of(text, {**library, **tables, "later": None} | made_with(orders))
    del function.__globals__["later"]
    with pytest.raises(PlanError) as caught:
        db.query(function).materialize()
    return re.sub(r"<comprehension \d+>", "shop.py", str(caught.value))


def made_with(orders: Any) -> dict[str, Any]:
    """A function over orders that calls itself with arguments."""
    text = "def query(n):\n    return {o.id for o in orders if o.id < n} | count_up(n - 1)\n"
    made = function_of(text, {"orders": orders})
    made.__globals__["count_up"] = made
    return {"count_up": made}


def cases() -> list[tuple[str, str]]:
    return [
        (text, message.strip("\n"))
        for text, message in (case.split(BETWEEN) for case in GOLDEN.read_text().split("\n----\n"))
    ]


def test_there_are_more_than_twenty_five() -> None:
    assert len({message.splitlines()[0] for _, message in cases()}) >= 25


@pytest.mark.parametrize(("text", "message"), cases())
def test_refusals_are_as_they_were_read(text: str, message: str) -> None:
    assert refusal_of(f"{text}\n") == message
