"""`apply` against the function itself, called with plain bags after every commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Bag, Count, Database, PlanError, fixpoint
from tests.budget import examples
from tests.thresholds import LOWEST, thresholds

Edge = tuple[int, Any]
NODES = st.sampled_from([0, 1, 2, 3, None, float("nan")])
COMMITS = st.lists(
    st.tuples(
        st.sampled_from(["edges", "starts", "both"]), NODES, NODES, st.sampled_from([1, 1, -1])
    ),
    max_size=10,
)


def reached(edges: Bag[Edge], starts: Bag[Any]) -> Iterable[Any]:
    """Return the reachable nodes; each node once per edge that ends there."""
    found, waiting = set(starts), list(starts)
    while waiting:
        at = waiting.pop()
        for source, target in edges:
            if source == at and target not in found:
                found.add(target)
                waiting.append(target)
    ends = Counter(target for _, target in edges)
    return [node for node in found for _ in range(ends[node] or 1)]


def refuse(node: Any) -> bool:
    return bool(1 // (node != "refused"))


@pytest.mark.parametrize("given_settings", [{}, LOWEST], ids=["as shipped", "at their lowest"])
@examples(40)
@given(commits=COMMITS)
def test_a_function_gives_what_it_gives_for_plain_bags(
    given_settings: dict[str, int], commits: list[tuple[str, Any, Any, int]]
) -> None:
    with thresholds(given_settings), Database() as db:
        edges, starts = db.table(tuple, name="edges"), db.table(object, name="starts")
        made = edges.apply(reached, starts)
        view = made.materialize()
        counted = made.where(lambda n: n is not None).group_by(lambda n: n).aggregate(Count())
        groups, refused = counted.materialize(), starts.where(refuse).materialize()
        changes: list[Any] = []
        subscription = view.subscribe(changes.append, snapshot=True)
        for which, source, target, weight in commits:
            with db.transaction():
                for table, row in ((edges, (source, target)), (starts, source)):
                    if which in ("both", table.name):
                        table.add(row) if weight > 0 else table.discard(row)
            expected = Bag(reached(Bag(list(edges)), Bag(list(starts))))
            assert view == expected
            assert sum((change.zset for change in changes[1:]), changes[0].zset) == view.zset()
            plain = {n: c for n, c in expected.items() if n is not None}
            assert {row[0]: row[1] for row in groups} == plain
            with pytest.raises(ZeroDivisionError):
                starts.add("refused")
            assert view == expected
            with made.materialize() as late:
                assert late == expected
        view.verify()
        subscription.close()
        refused.close()


def test_it_is_called_once_for_a_commit_that_changes_an_input() -> None:
    db = Database()
    words, others, third = db.table(str), db.table(str), db.table(str)
    calls = Counter[str]()

    def longest(one: Bag[str], other: Bag[tuple[str, str]]) -> list[str]:
        calls.update("x")
        return sorted([*one, *map("".join, other)], key=len)[-1:]

    view = words.apply(longest, others.join(others)).materialize()
    third.add("three")
    assert calls["x"] == 1 and list(view) == []
    with db.transaction():
        words.add_all(["a", "to"])
        others.add("be")
    assert calls["x"] == 2 and list(view) == ["bebe"]
    words.clear()
    others.clear()
    assert calls["x"] == 4 and list(view) == []


def test_what_it_raises_is_told_and_leaves_all_as_it_was() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    numbers.add(2)
    view = numbers.apply(lambda rows: [6 // len(rows)]).materialize()
    with pytest.raises(ZeroDivisionError) as caught:
        numbers.clear()
    assert "rolled back" in "".join(caught.value.__notes__) and list(view) == [6]
    bad: Any = numbers.apply(lambda rows: [[1]])
    with pytest.raises(TypeError, match="hash"):
        bad.materialize()


def test_what_it_refuses_and_says() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    assert "apply(<lambda>): whole relations, at each change of one" in (
        numbers.apply(lambda rows: rows).materialize().explain()
    )
    with pytest.raises(PlanError, match="2 arguments"):
        numbers.apply(lambda rows: rows, numbers)
    with pytest.raises(PlanError, match="two databases"):
        numbers.apply(lambda rows, more: rows, Database().table(int))
    with pytest.raises(PlanError, match="aggregate"):
        fixpoint(lambda it: numbers | it.apply(lambda rows: rows))
