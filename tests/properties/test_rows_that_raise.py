"""Rows that raise follow their policy: the other rows equal plain Python, after every commit.

The views of databases with and without rules, and of errors, go through the same history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from reactive import Database, OrderedView
from tests.budget import examples
from tests.properties.test_rules import RAISING, some_tables
from tests.random_queries.by_policy import ByPolicy
from tests.random_queries.drawn import SEEDS, Drawn, commit, draw
from tests.random_queries.nodes import every
from tests.random_queries.oracle import TooLarge
from tests.random_queries.plans import Switches
from tests.random_queries.rows import bag
from tests.random_queries.statements import Call

POLICIES = st.sampled_from(["drop", "null"])
DRAWN_APART = {"each", "best", "iterate"}
"""Operators whose groups, or rounds, say more of a row than the rows of a plan do."""


def drawn_of(seed: int, **switches: Any) -> Drawn:
    """A query that may raise, and a history."""
    return draw(
        seed,
        Switches(sizes=(1, 2, 2, 3), raising=True, **switches),
        tables=some_tables,
        modes=RAISING,
    )


class Copy:
    """A database with a view of a query by a policy, and of its errors."""

    def __init__(self, drawn: Drawn, policy: Any, *, optimize: bool) -> None:
        self.db = Database(optimize=optimize)
        self.tables = drawn.open(self.db)
        (relation,) = drawn.relations(self.tables)
        self.is_recursive = any(e.op == "best" for node in drawn.nodes for e in every(node))
        self.view: Any = relation.materialize(on_error=policy)

    def commit(self, calls: Sequence[Call]) -> None:
        """Make a commit that may only raise for a comparison in a recursion."""
        try:
            commit(self.db, self.tables, calls)
        except TypeError as error:
            if "not supported between instances" not in str(error) or not self.is_recursive:
                raise
            reject()

    def check(self) -> None:
        self.view.verify()
        self.view.errors.verify()

    def rows(self) -> Any:
        return [*self.view] if isinstance(self.view, OrderedView) else bag(self.view)

    def errors(self) -> Counter[Any]:
        return bag((error.operator, error.row, error.error) for error in self.view.errors)


@pytest.mark.long
@examples(200)
@given(seed=SEEDS, policy=POLICIES)
def test_what_is_left_equals_plain_python_after_every_commit(seed: int, policy: str) -> None:
    drawn = drawn_of(seed, recursion=False)
    (node,) = drawn.nodes
    assume(DRAWN_APART.isdisjoint(each.op for each in every(node)))
    copies = [Copy(drawn, policy, optimize=optimize) for optimize in (True, False)]
    script = drawn.script()
    for calls in script:
        for copy in copies:
            copy.commit(calls)
            copy.check()
        try:
            rows = ByPolicy(drawn.names, script.model.tables, policy).rows(node)
        except TooLarge:
            return
        for copy in copies:
            assert bag(copy.view) == bag(rows), drawn
        assert copies[0].errors() == copies[1].errors(), drawn


@pytest.mark.long
@examples(120)
@given(seed=SEEDS, policy=POLICIES)
def test_rules_change_neither_what_is_left_nor_the_errors(seed: int, policy: str) -> None:
    drawn = drawn_of(seed)
    assume(all(each.op != "iterate" for node in drawn.nodes for each in every(node)))
    copies = [Copy(drawn, policy, optimize=optimize) for optimize in (True, False)]
    for calls in drawn.script():
        for copy in copies:
            copy.commit(calls)
            copy.check()
        assert copies[0].rows() == copies[1].rows(), drawn
        assert copies[0].errors() == copies[1].errors(), drawn
