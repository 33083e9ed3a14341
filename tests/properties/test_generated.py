"""Generated loops give the rows that the plain operators give, and raise where they raise."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.rewriting.optimize import optimize
from optimizer.rules.read_callables import read_callables
from tests import queries
from tests.properties.test_rules import SLOW, Copy, agree, node_of, same_rows


def copies(query: str) -> list[Copy]:
    """The plain operators, and the loops for the plan as written and for the optimized one."""
    node = node_of(query)
    read = optimize(node, ((read_callables,),)).plan
    made = [Copy("plain operators", node), Copy("loops", read), Copy("loops", optimize(node).plan)]
    for copy in made[1:]:
        copy.db._engine.queries.generates = True
    return made


def play(query: str, history: Any, late: int) -> None:
    """All go through a history; they begin after so many commits."""
    made = copies(query)
    for number, changes in enumerate(history):
        if number >= late and made[0].view is None:
            agree(made, [copy.materialize() for copy in made], query)
        if agree(made, [copy.commit(changes) for copy in made], query) and made[0].view is not None:
            same_rows(made, query)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(case=queries.cases(), late=st.sampled_from([0, 0, 2]))
def test_loops_and_plain_operators_agree(case: queries.Case, late: int) -> None:
    query, history = case
    play(query, history, late)
