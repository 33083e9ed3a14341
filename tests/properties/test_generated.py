"""Generated loops return the rows of the plain operators, and raise in the same cases."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from optimizer.rewriting.optimize import optimize
from optimizer.rules.read_callables import read_callables
from tests.budget import examples
from tests.properties.test_rules import Copy, drawn_of, node_of, play
from tests.random_queries.drawn import SEEDS, Drawn


def copies(drawn: Drawn) -> list[Copy]:
    """The plain operators, and the loops for the plan as written and for the optimized one."""
    node = node_of(drawn)
    read = optimize(node, ((read_callables,),)).plan
    plans = {"plain operators": node, "loops as written": read, "loops": optimize(node).plan}
    made = [Copy(name, node, drawn) for name, node in plans.items()]
    for copy in made[1:]:
        copy.db._engine.queries.generates = True
    return made


@examples(200, share=8)
@given(seed=SEEDS, late=st.sampled_from([0, 0, 2]))
def test_loops_and_plain_operators_agree(seed: int, late: int) -> None:
    drawn = drawn_of(seed)
    play(copies(drawn), drawn, late)
