"""Places of guards in plans with an error policy, as golden files show them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from optimizer import plan
from optimizer.expr import Attempt, walk
from optimizer.plans.explain import headline
from optimizer.plans.properties import nodes
from optimizer.plans.side_conditions import calls_may_raise
from optimizer.rewriting.on_error import Policy, guard_query
from optimizer.rewriting.optimize import optimize
from optimizer.rewriting.own_values import elements
from optimizer.traverse import read_functions
from reactive import Database
from tests.golden.cases import shown
from tests.golden.tables import NAMES, tables
from tests.written import evaluated

FOLDER = Path(__file__).parents[2] / "golden" / "on_error"


def cases() -> Iterator[Any]:
    for policy in get_args(Policy):
        for block in (FOLDER / f"{policy}.txt").read_text().split("\n\n"):
            lines = [line for line in block.splitlines() if not line.startswith("#")]
            arrow = lines.index("=>")
            query, expected = "\n".join(lines[:arrow]), "\n".join(lines[arrow + 1 :])
            yield pytest.param(policy, query, expected, id=f"{policy}: {query[:40]}")


def written(query: str) -> plan.Node:
    node: plan.Node = evaluated(query, {**NAMES, **tables(Database())}).plan
    return node


@pytest.mark.parametrize(("policy", "query", "expected"), [*cases()])
def test_guards_stand_where_something_may_raise(policy: Policy, query: str, expected: str) -> None:
    found = guard_query(written(query), policy, read=True).query
    assert shown(found) == expected
    for node in nodes(found):
        at_fault = isinstance(node, plan.Where | plan.Join) and calls_may_raise(node)
        at_fault = at_fault and "has_own(" not in headline(node)  # it reads classes alone
        assert not at_fault, shown(node)


@pytest.mark.parametrize(("policy", "query", "expected"), [*cases()])
def test_guards_come_through_all_rules(policy: Policy, query: str, expected: str) -> None:
    found = guard_query(written(query), policy, read=True).query
    assert attempts(optimize(found).plan) >= min(attempts(found), 1)


def attempts(root: plan.Node) -> int:
    """Return the number of guards."""
    functions = read_functions(*nodes(root))
    return sum(isinstance(part, Attempt) for f in functions for part in walk(f.body))


def test_what_is_not_read_is_called_within_guards() -> None:
    query = "students.where(lambda s: s.last_name == 'Doe').select(lambda s: s.age)"
    found = guard_query(written(query), "drop", read=False).query
    assert shown(found).splitlines()[:6] == [
        "select <lambda>(row)",
        "  where succeeds(hash(<lambda>(row)))",
        "    where attempt(<lambda>(row))",
        "      union_all",
        "        where not has_own(row.age)",
        "          table students",
    ]


def test_views_stay_as_they_are() -> None:
    db = Database()
    view = tables(db)["students"].select(lambda s: s.age + 1).materialize()
    above = view.select(lambda n: n + 1).plan
    found = guard_query(above, "drop", read=True)
    (below,) = (node for node in nodes(found.query) if isinstance(node, plan.View))
    assert below is above.inputs()[0]


@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize(
    ("condition", "operator"),
    [
        (lambda x: bool(6 // x), "where 6 // x"),
        (lambda x: 6 // x == 2 or 6 // x == 2, "where 6 // x == 2"),
    ],
)
def test_errors_name_the_operator_alike_with_and_without_rules(
    condition: Any, operator: str, policy: Policy
) -> None:
    for is_optimized in (True, False):
        db = Database(optimize=is_optimized)
        numbers = db.table(int)
        view: Any = numbers.where(condition).materialize(on_error=policy)
        numbers.add_all([0, 3])
        assert [error.operator for error in view.errors] == [operator]


def test_elements_are_those_that_can_be_in_rows() -> None:
    assert elements(iter("ab")) == ("a", "b")
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        elements([1, []])
    with pytest.raises(TypeError, match="not iterable"):
        elements(1)  # type: ignore[arg-type]
