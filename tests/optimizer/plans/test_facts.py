"""Plan nodes state their facts, and readers of facts handle unknown nodes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest

from optimizer import plan
from optimizer.callables.opaque import opaque
from optimizer.errors import StratificationError
from optimizer.expr import Function, Lifted
from optimizer.plans import facts as costs
from optimizer.plans.explain import explain
from optimizer.plans.facts import Calls, Facts, as_first, of_input, same_rows
from optimizer.plans.properties import bindings, is_set, row_shape
from optimizer.plans.side_conditions import plan_may_raise
from optimizer.plans.strata import check_stratified
from optimizer.rewriting.optimize import optimize
from optimizer.traverse import called, functions, with_functions

ROWS = plan.Table(0, "rows", None, True, tuple)


@dataclass(frozen=True, slots=True)
class Few(plan.Node):
    """The rows of largest values: a node that no other file of the project has heard of."""

    input: plan.Node
    count: int
    by: Function

    facts = Facts(
        calls=(Calls("by", of_input),),
        raises=True,
        recursion=lambda _: ("order",),
        shapes=same_rows,
        is_set=as_first,
        costs=costs.logarithmic,
        degree=costs.no_degree,
        headline=lambda node: f"few {node.count}",
    )


def few(source: plan.Node = ROWS) -> Few:
    return Few(source, 3, opaque(lambda row: 1 // row[0], 1, "few"))


def test_a_node_without_facts_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="plan node Nameless does not say what it is"):
        type("Nameless", (plan.Node,), {})


@pytest.mark.parametrize("fact", [field.name for field in fields(Facts)])
def test_a_node_cannot_leave_a_fact_open(fact: str) -> None:
    given = {f.name: getattr(Few.facts, f.name) for f in fields(Facts) if f.name != fact}
    with pytest.raises(TypeError, match=fact):
        Facts(**given)


def test_the_callables_of_an_unknown_node_are_read() -> None:
    (read,) = functions(optimize(few()).plan)
    assert isinstance(read, Lifted)
    assert called(few())[0][1] == (tuple,)


def test_an_unknown_node_that_may_raise_is_not_dropped() -> None:
    never = opaque(lambda row: 1 > 2, 1, "where")
    found = optimize(plan.Where(few(), never)).plan
    assert plan_may_raise(few())
    assert any(isinstance(node, Few) for node in [found, *found.inputs()])


def test_rows_of_an_unknown_node_are_known_by_its_facts() -> None:
    keyed = plan.Table(1, "keyed", opaque(lambda row: row, 1, "key"), True, tuple)
    assert (bindings(few()), row_shape(few())) == (1, tuple)
    assert not is_set(few()) and is_set(few(keyed))


def test_an_unknown_node_is_shown_by_its_headline() -> None:
    assert explain(few()) == "few 3\n  table rows"


def test_recursion_through_an_unknown_node_is_refused_if_it_says_so() -> None:
    inner = plan.Recursive(1, 0, "r", True)
    body = plan.Union(ROWS, few(inner))
    with pytest.raises(StratificationError, match="depends on its own order\n  r -> few -> r"):
        check_stratified(plan.Fixpoint((body,), 1, ("r",), (None,), 10))


def test_callables_are_replaced_where_the_facts_say_they_are() -> None:
    other = opaque(lambda row: row[1], 1, "few")
    changed = with_functions(few(), lambda _: other)
    assert isinstance(changed, Few) and changed.by is other
    assert with_functions(changed, lambda f: f) is changed


KINDS = [
    kind
    for kind in vars(plan).values()
    if isinstance(kind, type) and issubclass(kind, plan.Node) and kind is not plan.Node
]
"""All nodes. `__subclasses__` also has each class as it was before its decorator made it again,
until that is collected: workers would not collect the same tests."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_node_says_where_all_its_callables_are(kind: Any) -> None:
    """A field whose type speaks of a callable is on the path of one of the node's calls."""
    reached = {calls.names[0] for calls in kind.facts.calls}
    holders = {"Function", "Match", "Folded", "Best"}
    if issubclass(kind, plan.Table):
        reached.add("time")  # as its key, it is called when a row comes, before any node
    for field in fields(kind):
        if field.init and any(word in str(field.type) for word in holders):
            assert field.name in reached, f"{kind.__name__}.{field.name}"
