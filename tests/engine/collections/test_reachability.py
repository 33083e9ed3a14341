"""Reachable nodes equal the result of a search, after every change and every undone change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.collections.reachability import (
    Arc,
    Bits,
    Reachability,
    components,
    select_items,
)
from tests.budget import examples
from tests.thresholds import HIGHEST, LOWEST, SHIPPED, Settings, thresholds

SETTINGS = {"as shipped": SHIPPED, "at their lowest": LOWEST, "at their highest": HIGHEST}
NODES = st.integers(0, 7)
CHANGES = st.lists(
    st.tuples(st.sets(st.tuples(NODES, NODES), max_size=6), st.booleans()), max_size=14
)


def members(bits: Bits) -> set[int]:
    return set(select_items(bits, range(10_000)))


def searched(arcs: set[Arc]) -> dict[int, set[int]]:
    """Return the nodes that each node reaches, by a search from each."""
    found = {}
    for start in {source for source, _ in arcs}:
        seen, waiting = set[int](), [start]
        while waiting:
            node = waiting.pop()
            new = {target for source, target in arcs if source == node} - seen
            seen |= new
            waiting += new
        found[start] = seen
    return found


def reached(graph: Reachability) -> dict[int, set[int]]:
    return {node: members(bits) for node, bits in graph.reach.items()}


@pytest.mark.parametrize("way", SETTINGS)
def test_nodes_reach_what_a_search_finds_after_every_change(way: str) -> None:
    """Each change deletes some present arcs and inserts others; some changes are undone."""

    @examples(60)
    @given(changes=CHANGES)
    def run(changes: list[tuple[set[Arc], bool]]) -> None:
        graph, arcs = Reachability(), set[Arc]()
        for turned, stays in changes:
            before = searched(arcs)
            graph.change(sorted(turned - arcs), sorted(turned & arcs))
            after = searched(arcs ^ turned)
            assert reached(graph) == after
            for node, bits in graph.was.items():
                assert members(bits) == before.get(node, set())
            for node in (before.keys() | after.keys()) - graph.was.keys():
                assert before[node] == after[node]
            if stays:
                graph.commit()
                arcs ^= turned
            else:
                graph.undo()
                assert reached(graph) == before
        assert {(s, t) for s, targets in graph.after.items() for t in targets} == arcs
        assert {(s, t) for t, sources in graph.before.items() for s in sources} == arcs

    with thresholds(_settings(SETTINGS[way])):
        run()


def _settings(settings: Settings) -> Settings:
    ours = tuple(
        f"reactive.engine.collections.{name}." for name in ("arcs", "bits", "reachability")
    )
    return {name: value for name, value in settings.items() if name.startswith(ours)}


@given(arcs=st.sets(st.tuples(NODES, NODES), max_size=20))
def test_nodes_of_a_component_reach_each_other_and_no_later_component(arcs: set[Arc]) -> None:
    after: dict[int, list[int]] = {}
    for source, target in sorted(arcs):
        after.setdefault(source, []).append(target)
    known, earlier = searched(arcs), set[int]()
    parts = list(components(set(range(8)), after))
    assert sorted(node for part in parts for node in part) == list(range(8))
    for part in parts:
        for node in part:
            assert known.get(node, set()) - earlier <= set(part)
            assert set(part) - {node} <= known.get(node, set())
        earlier.update(part)


def test_a_ring_that_loses_its_start_keeps_nothing_alive() -> None:
    graph = Reachability()
    graph.change([(0, 1), (1, 2), (2, 1)], [])
    graph.commit()
    graph.change([], [(0, 1)])
    assert reached(graph) == {1: {1, 2}, 2: {1, 2}}
    graph.commit()
    graph.change([], [(2, 1)])
    assert reached(graph) == {1: {2}}


def looked_at(graph: Reachability, came: list[Arc], gone: list[Arc]) -> int:
    before = graph.touched
    graph.change(came, gone)
    graph.commit()
    return graph.touched - before


def test_an_arc_that_nothing_hangs_on_touches_a_handful() -> None:
    """One of two ways is removed and restored; a thousand nodes lead to both."""
    graph = Reachability()
    graph.change([(n, n + 1) for n in range(1000)], [])
    graph.change([(1000, 1001), (1001, 1003), (1000, 1002), (1002, 1003)], [])
    graph.commit()
    assert looked_at(graph, [(1000, 1003)], []) <= 2
    assert looked_at(graph, [], [(1000, 1003)]) <= 2
    assert looked_at(graph, [], [(1001, 1003)]) <= 4


def test_a_leaf_of_a_hub_goes_without_a_look_at_the_others() -> None:
    graph = Reachability()
    graph.change([(0, n) for n in range(1, 5000)], [])
    graph.commit()
    graph.after[0] = hub = Counted(graph.after[0])
    assert looked_at(graph, [], [(0, 77)]) == 1
    assert looked_at(graph, [(0, 77)], []) == 1
    assert not hub.walks


class Counted(set[int]):
    """A set that counts its iterations."""

    walks = 0

    def __iter__(self) -> Iterator[int]:
        self.walks += 1
        return super().__iter__()
