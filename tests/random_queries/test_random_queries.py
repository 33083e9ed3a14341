"""Random queries are of all kinds: every node of a plan, every method of a relation, every rule."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

import reactive
from optimizer import plan
from optimizer.plans.properties import nodes
from reactive import Database, OrderedRelation, Relation
from tests.budget import TIMES
from tests.properties.test_rules import RULES, drawn_of, node_of, ways
from tests.random_queries.drawn import MODES, Drawn, draw
from tests.random_queries.histories import Held
from tests.random_queries.plans import Switches
from tests.random_queries.values import POOLS

SEEDS = 300
NOT_DRAWN = {
    "materialize": "makes a view, as all tests do of what is drawn",
    "subscribe": "listens, as replicas do",
    "changes": "listens, which the soak does",
    "observe": "listens, as replicas do",
    "head": "reads once",
    "read": "reads once, as tests/engine/provenance do",
    "show": "prints",
    "explain": "prints",
    "tables": "tells of a query",
    "nest": "is drawn in tests/nests",
    "apply": "is played in tests/api/test_apply.py",
    "expire_after": "is the same as a where, in tests/api/test_clock.py",
    "negate": "is drawn in tests/engine/operators/test_negate.py and tests/nests",
    "previous": "is drawn in tests/engine/operators/test_previous.py",
    "rows": "is tried in tests/api/test_group_rows.py, and its rules on all small tables",
    "lookup": "is for streams, whose rows cannot be removed: drawn in the soak",
    "left_lookup": "is for streams, whose rows cannot be removed: drawn in the soak",
    "when_closed": "is for streams: played in tests/api/test_state_bounds.py",
    "over": "needs rows of an order that is known: drawn in the soak",
    "window": "needs moments: drawn in the soak",
}
"""Public methods of relations that make no relation, or are not for queries."""
NO_NODES = {
    "Component": "one of several relations that are defined by each other: drawn, but rarely",
    "Empty": "made by rules",
    "Given": "made by the engine within a loop",
    "Lookup": "only over streams: drawn in the soak",
    "Known": "made for queries that come late",
    "Negate": "drawn in tests/engine/operators/test_negate.py",
    "Previous": "drawn in tests/engine/operators/test_previous.py",
    "SetOperation": "the base of five nodes",
    "Settled": "made while rules run",
    "Shared": "made while rules run",
    "Tolerate": "made of iterations with a tolerance: properties/test_loops",
    "View": "made of views: the soak makes queries of views",
}
RARE = {
    "factor_disjunction": "needs the same condition in all parts of an `or`",
    "order_joins": "needs three inputs, the first two without an equation",
    "empty_false_where": "done before to what it is tried on",
    "propagate_constants": "needs a condition on both sides of an equation",
    "push_where_into_fixpoint": "needs a recursion that hands on what is asked",
    "limit_reduce": "needs a window, which only SQL has",
    "push_where_below_reduce": "needs a condition on the key of a reduce",
    "push_where_below_top": "needs a condition on the key of a top",
    "push_where_below_aggregate": "needs a condition on the key of a group",
    "propagate_empty": "needs a condition that nothing passes",
    "drop_true_where": "needs a condition that everything passes",
}


@pytest.fixture(scope="module")
def drawn() -> list[Drawn]:
    tables = (Held("P"), Held("N", "id"), Held("D"))
    return [draw(seed, Switches(), count=2, steps=2, tables=tables) for seed in range(SEEDS)]


@pytest.mark.long
def test_every_method_of_a_relation_is_drawn(drawn: list[Drawn]) -> None:
    found = Counter(name for each in drawn for name in re.findall(r"\.(\w+)\(", each.text))
    groups = type(Database().table(int).group_by(lambda n: n))
    for owner in (Relation, OrderedRelation, groups):
        for name, _ in inspect.getmembers(owner, callable):
            if not name.startswith("_") and name not in NOT_DRAWN:
                assert found[name], f"{owner.__name__}.{name}"
    assert all(found[name] == 0 for name in NOT_DRAWN)


@pytest.mark.long
def test_every_kind_of_node_is_drawn(drawn: list[Drawn]) -> None:
    found = Counter(
        type(node)
        for each in drawn[:80]
        for relation in each.relations(each.open(Database()))
        for node in nodes(relation.plan)
    )
    kinds = {kind for kind in vars(plan).values() if _is_node(kind)}
    missing = {kind.__name__ for kind in kinds if not found[kind]} - NO_NODES.keys()
    assert not missing


def _is_node(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, plan.Node) and kind is not plan.Node


@pytest.mark.long
def test_every_aggregate_is_drawn(drawn: list[Drawn]) -> None:
    text = "\n".join(each.text for each in drawn)
    for name in ("Count", "Sum", "Avg", "Min", "Max", "CountDistinct", "Collect"):
        assert hasattr(reactive, name) and f"{name}(" in text
    for some in (
        "Own(",
        "Monoid(",
        "skip_none=True",
        "as_=",
        "keep=",
        "keep=union",
        "Copies",
        "nulls='first'",
        "desc(",
    ):
        assert some in text


def test_values_are_of_all_kinds(drawn: list[Drawn]) -> None:
    assert {each.mode for each in drawn} == {*MODES} < {*POOLS}


def test_rules_do_something_to_random_queries() -> None:
    """Most rules apply to these queries, and in a longer run all but the rare ones."""
    found = Counter[str]()
    for seed in range(1_000 if TIMES else 60):
        names = (name for name, _ in ways(node_of(drawn_of(seed)), set()))
        found.update(name.split(" ")[0].rstrip(",") for name in names)
    missing = {rule.__name__ for rule in RULES if not found[rule.__name__]}
    assert missing <= RARE.keys() if TIMES else len(missing) < len(RULES) / 2


def test_switches_leave_kinds_out() -> None:
    def ops(**switches: Any) -> Mapping[str, int]:
        some = (draw(seed, Switches(**switches)) for seed in range(20))
        return Counter(word for each in some for word in re.findall(r"\w+", each.text))

    assert not ops(recursion=False).keys() & {"fixpoint", "iterate"}
    assert ops(joins_only=True)["join"] >= 20
    assert not ops(orders=False, sizes=(0,))["order_by"]


def test_a_seed_is_a_query_and_a_history() -> None:
    for seed in range(10):
        one, other = draw(seed), draw(seed)
        assert one.text == other.text and repr(one.steps) == repr(other.steps)
