"""Recursions of many relations are split into strata by work that grows with their number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.plans.strata import _group_relations
from reactive import Database
from tests.counted_calls import calls_of

READS = st.integers(1, 7).flatmap(
    lambda n: st.lists(st.sets(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n)
)


@given(READS)
def test_relations_are_grouped_after_what_they_read(reads: list[set[int]]) -> None:
    reached = [{index, *direct} for index, direct in enumerate(reads)]
    for _ in reads:
        reached = [set().union(*(reached[near] for near in mine)) for mine in reached]
    groups = _group_relations(reads)
    assert sorted(index for group in groups for index in group) == list(range(len(reads)))
    seen: set[int] = set()
    for group in groups:
        for index in group:
            assert {far for far in reached[index] if index in reached[far]} == set(group)
        seen.update(group)
        assert set().union(*(reads[index] for index in group)) <= seen


def calls_for(relations: int) -> int:
    """Return the calls that make a program of relations that all depend on each other."""
    names = [f"r{number}" for number in range(relations)]
    lines = [f".decl {name}(a: number, b: number)" for name in ["e", *names]]
    lines += [".input e", ".output r0", "r0(a, b) :- e(a, b)."]
    for name, following in zip(names, [*names[1:], names[0]], strict=True):
        lines.append(f"{name}(a, b) :- {following}(a, c), e(c, b).")
    text = "\n".join(lines)
    return calls_of(lambda: Database().datalog(text))


@pytest.mark.parametrize("relations", [10, 40])
def test_twice_the_relations_take_twice_the_calls(relations: int) -> None:
    calls_for(3)  # imports
    assert calls_for(4 * relations) < 5 * calls_for(relations)


def test_a_rule_of_a_recursion_takes_few_calls() -> None:
    calls_for(3)  # imports
    assert (calls_for(60) - calls_for(20)) / 40 < 3_500
