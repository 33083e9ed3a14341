"""Conditions of queries, as texts in Python and in SQL, with places for the fields.

The words of both languages differ in few places, so that a condition has one text where it can.
"""

from __future__ import annotations

from dataclasses import dataclass

JOINED = ("key", "range", "between", "key and less", "near", "either key")
"""The names of the conditions of joins."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, in Python, and in SQL if its words differ.

    `{o.amount}` stands for a field, `{k}` for a constant of the query.
    """

    python: str
    words: str | None = None

    @property
    def sql(self) -> str:
        """The text in SQL."""
        return self.words or self.python.replace(" == ", " = ").replace(" != ", " <> ")


CONDITIONS = {
    "key": Condition("{o.customer} == {c.id}"),
    "range": Condition("{c.low} <= {o.place} and {o.place} < {c.high}"),
    "between": Condition(
        "{c.low} <= {o.place} < {c.high}", "{o.place} >= {c.low} and {o.place} < {c.high}"
    ),
    "key and less": Condition("{o.customer} == {c.id} and {o.quantity} > {c.tier}"),
    "less and key": Condition("{o.quantity} > {c.tier} and {o.customer} == {c.id}"),
    "not other key": Condition("not {o.customer} != {c.id}", "not {o.customer} <> {c.id}"),
    "no distance": Condition("{o.customer} - {c.id} == 0"),
    "near": Condition("abs({o.place} - {c.low}) < 2"),
    "either key": Condition("{o.customer} == {c.id} or {o.seller} == {c.id}"),
    "in keys": Condition("{c.id} in ({o.customer}, {o.seller})"),
    "key in arms": Condition(
        "({o.customer} == {c.id} and {o.quantity} > 5) or ({o.customer} == {c.id} and {c.tier} > 2)"
    ),
    "two arms": Condition(
        "({o.customer} == {c.id} and {o.quantity} > 5) or ({o.seller} == {c.id} and {c.tier} > 2)"
    ),
    "linked": Condition("{c.nation} == {n.name}"),
    "amount": Condition("{o.amount} > {k}"),
    "region": Condition("{o.region} == {k}"),
    "quantity": Condition("{o.quantity} > 2"),
    "chained": Condition("2 < {o.quantity} <= 8", "{o.quantity} > 2 and {o.quantity} <= 8"),
    "negated": Condition("not {o.quantity} <= 2"),
    "in": Condition("{o.quantity} in (3, 4, 5, 6, 7, 8)"),
    "either": Condition("({o.quantity} > 2 or {o.seller} == 1)"),
    "either side": Condition("({o.quantity} > 2 or {c.tier} == 1)"),
    "tier": Condition("{c.tier} < 4"),
    "nation": Condition("{c.nation} == {k}"),
    "both": Condition("{o.quantity} > {c.tier}"),
    "computed": Condition("{o.quantity} * 2 + 1 > 5"),
}
