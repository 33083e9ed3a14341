"""A query of the benchmark: what it asks, how it is spelled, and what its rows are."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

FIELDS = {
    "o": ("id", "customer", "seller", "region", "amount", "quantity", "place"),
    "c": ("id", "nation", "tier", "low", "high"),
    "n": ("name", "continent"),
    "e": ("src", "dst"),
}
"""The fields of each table, by the name of its binding."""
TABLES = {"o": "orders", "c": "customers", "n": "nations", "e": "edges"}
KEPT = ("semi_join", "anti_join")
"""Joins that keep rows of the first table alone."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query by the rows it asks for, its spelling and the kind of its rows.

    Parameters
    ----------
    family: the name of the query that this one varies.
    join: the method that joins the customers; empty without a join. on: the name of its condition.
    conditions: the names of further conditions, in this order.
    result: an aggregate per group, or `rows`, `distinct`, `top`, `total`, or the name of a
        recursion, a window or a nest, which has texts of its own.
    group: the field of the groups.
    nations: True if a third table is joined.
    below: what happens to the orders first: `distinct`, `union`, `unions` (nested ones),
        `difference`, `intersection`, or nothing.
    above: what is asked of the groups: `having`, `level` (groups of groups), `top`, or nothing.
    swapped: True if the customers come before the orders.
    early: True if conditions of one table come before the join.
    spelling: `methods`, `comprehension`, `sql` or `datalog`.
    constant: the way in which a constant stands in the query: `literal`, `captured` or `f-string`.
    rows: the class of rows. amount, key: the types of the amounts, and of the keys of customers.
    nones: True if some orders have no customer. ties: True if there are ten amounts only.
    hot: True if half of the orders are of one customer.
    policy: the view's `on_error`. views: the number of views with other constants beside it.
    """

    family: str
    join: str = ""
    on: str = "key"
    conditions: tuple[str, ...] = ()
    result: str = "rows"
    group: str = "o.region"
    nations: bool = False
    below: str = ""
    above: str = ""
    swapped: bool = False
    early: bool = False
    spelling: str = "methods"
    constant: str = "literal"
    rows: str = "named"
    amount: str = "int"
    key: str = "int"
    nones: bool = False
    ties: bool = False
    hot: bool = False
    policy: str = "raise"
    views: int = 1

    @property
    def bindings(self) -> tuple[str, ...]:
        """The names of the bindings that its conditions and results may read."""
        joined = ("c",) if self.join and self.join not in KEPT else ()
        return ("o", *joined, *(("n",) if self.nations else ()))

    @property
    def name(self) -> str:
        """The family, and what differs from its first query."""
        first = Query(self.family)
        told = [
            f"{field.name}={_shown(getattr(self, field.name))}"
            for field in fields(Query)
            if getattr(self, field.name) != getattr(first, field.name)
        ]
        return " ".join([f"{self.family}:", *told])


def _shown(value: Any) -> str:
    return "+".join(value) if isinstance(value, tuple) else str(value)


def difference(one: Query, other: Query) -> str:
    """Return the fields in which two queries differ, as text."""
    return ", ".join(
        f"{field.name}: {_shown(getattr(one, field.name))} -> {_shown(getattr(other, field.name))}"
        for field in fields(Query)
        if getattr(one, field.name) != getattr(other, field.name)
    )
