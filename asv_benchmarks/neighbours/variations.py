"""The first query of each family, and its neighbours, which differ by one thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from asv_benchmarks.neighbours.query import KEPT, Query
from asv_benchmarks.neighbours.rules import has_rules
from asv_benchmarks.neighbours.special import RELATED, SPECIAL

FIRST = (
    Query("filter", conditions=("amount",)),
    Query("region", conditions=("region",), views=30),
    Query("groups", conditions=("amount",), result="sum"),
    Query("greatest", conditions=("quantity",), result="max"),
    Query("top", conditions=("quantity",), result="top"),
    Query("pairs", join="join", conditions=("amount",)),
    Query("sums of pairs", join="join", conditions=("quantity",), result="sum", group="c.nation"),
    Query("one nation", join="join", conditions=("nation",), result="sum", views=20),
    Query("ranges", join="join", on="range", conditions=("quantity",)),
    Query("sums of ranges", join="join", on="range", result="sum", group="c.nation"),
    Query("key and less", join="join", on="key and less", result="count", group="c.nation"),
    Query("semi-join", join="semi_join", result="sum"),
    Query("outer join", join="left_join", result="sum", group="c.nation"),
    Query("three tables", join="join", nations=True, result="sum", group="n.continent"),
)
"""The queries that are varied."""
RESULTS = ("rows", "sum", "count", "max", "avg", "count_distinct", "distinct", "top", "total")
CHOICES: dict[str, tuple[Any, ...]] = {
    "spelling": ("comprehension", "sql", "datalog"),
    "rows": ("dataclass", "tuple", "untyped", "attrs", "msgspec", "pydantic"),
    "amount": ("float", "Decimal", "str", "date"),
    "key": ("str", "float", "Decimal", "date", "tuple"),
    "nones": (True,),
    "ties": (True,),
    "hot": (True,),
    "policy": ("drop",),
    "constant": ("captured", "f-string"),
    "early": (True,),
    "below": ("distinct", "union", "unions", "difference", "intersection"),
    "above": ("having", "level", "top"),
    "swapped": (True,),
    "views": (1, 20),
    "result": RESULTS,
    "join": ("join", "left_join", "semi_join", "anti_join"),
    "on": (
        *("key", "range", "between", "near", "key and less", "less and key", "not other key"),
        *("no distance", "either key", "in keys", "key in arms", "two arms"),
    ),
}
"""The values that each field takes in turn."""
MORE = ("quantity", "chained", "negated", "in", "either", "region", "computed")
MORE_OF_BOTH = ("tier", "both", "either side", "nation")
"""Conditions that are added in turn."""


class Neighbours(NamedTuple):
    """A family's first query, and the queries that differ from it by one thing."""

    first: Query
    others: list[Query]


def families() -> list[Neighbours]:
    """Return all families: those of joins and groups, then those with texts of their own."""
    related = {name for names in RELATED.values() for name in names}
    return [
        *(Neighbours(first, list(_neighbours(first))) for first in FIRST),
        *(_spellings(result) for result in SPECIAL if result not in related),
    ]


def spelled(one: Query, other: Query) -> bool:
    """Return True if two queries ask the same of the same rows, in other words."""
    same = replace(other, spelling=one.spelling, constant=one.constant)
    same = replace(same, early=one.early, swapped=one.swapped)
    words = {"between", "range"}, {"key and less", "less and key"}
    keys = {"key", "not other key", "no distance"}
    if any({one.on, other.on} <= group for group in (*words, keys)):
        same = replace(same, on=one.on)
    if tuple(sorted(one.conditions)) == tuple(sorted(other.conditions)):
        same = replace(same, conditions=one.conditions)
    return same == one


def _neighbours(first: Query) -> Iterator[Query]:
    for field, values in CHOICES.items():
        for value in values:
            other = replace(first, **{field: value})
            if other != first and _has_meaning(other):
                yield other
    for name in (*MORE, *MORE_OF_BOTH):
        for conditions in {(*first.conditions, name): None, (name, *first.conditions): None}:
            other = replace(first, conditions=conditions)
            if name not in first.conditions and _has_meaning(other):
                yield other


def _has_meaning(query: Query) -> bool:
    """Return True if there is a text for the query, and values that it can take."""
    joined = bool(query.join) and query.join not in KEPT
    names = (*query.conditions, query.on if query.join else "")
    text = query.spelling == "comprehension"
    return not any(
        (
            not query.join and (query.on != "key" or query.group != "o.region"),
            not joined and (query.group[0] != "o" or set(query.conditions) & set(MORE_OF_BOTH)),
            query.nations and query.join != "join",
            query.join == "left_join" and (query.conditions or text),
            query.spelling == "datalog" and not has_rules(query),
            query.amount in ("str", "date") and query.result in ("sum", "avg", "total", "top"),
            query.swapped and query.join != "join",
            query.above and query.result not in ("sum", "count", "max"),
            query.above and query.amount in ("str", "date"),
            query.key in ("tuple", "date", "str") and {"either", "no distance"} & {*names},
            query.amount == "Decimal" and "amount" in query.conditions and text,
            query.key != "int" and {"range", "no distance"} & {*names},
            query.nones and "no distance" in names,
            query.constant != "literal" and not _constants(query),
            query.views > 1 and not {"region", "nation"} & set(query.conditions),
            query.constant == "f-string" and not {"region", "nation"} & set(query.conditions),
            query.early and not any(name in query.conditions for name in ("amount", "quantity")),
            query.early and not query.join,
            query.rows != "named" and query.spelling == "sql",
            len({"region", "amount", "nation"} & set(query.conditions)) > 1,
        )
    )


def _constants(query: Query) -> bool:
    return bool({"region", "amount", "nation"} & set(query.conditions))


def _spellings(result: str) -> Neighbours:
    """Return a family with texts of its own, in all its spellings and with a hot key."""
    spellings = tuple(SPECIAL[result])
    first = Query(result, result=result, spelling=spellings[0])
    others = [replace(first, spelling=spelling) for spelling in spellings[1:]]
    others += [replace(first, result=other) for other in RELATED.get(result, ())]
    others += [
        replace(first, **change)
        for change in ({"hot": True}, {"ties": True}, {"amount": "float"}, {"policy": "drop"})
    ]
    return Neighbours(first, others)
