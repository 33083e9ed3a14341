"""The two recursive checks once more, as plain loops over the facts of all files."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from examples.live_lint.facts import Fact, Function, Import, Internal, Module, PrivateUse
from examples.live_lint.reachability import LONGEST
from examples.live_lint.shapes import is_private

Graph = dict[str, set[str]]
Place = tuple[str, int]


def import_cycles(facts: Iterable[Fact]) -> set[tuple[str, int, str]]:
    """File, line and message of each import in a circle."""
    facts = list(facts)
    modules = {fact.name for fact in facts if isinstance(fact, Module)}
    sites = {
        (fact.module, target, fact.file, fact.line)
        for fact in facts
        if isinstance(fact, Import) and not fact.deferred
        for target in [fact.full if fact.full in modules else fact.target]
        if target in modules and target != fact.module
    }
    graph: Graph = defaultdict(set)
    for module, target, _, _ in sites:
        graph[module].add(target)
    return {
        (file, line, f"a circle of imports: {' -> '.join((module, *_told(way)))}")
        for module, target, file, line in sites
        if (way := shortest_way(graph, target, module))
    }


def _told(way: tuple[str, ...]) -> tuple[str, ...]:
    return way if len(way) <= LONGEST else (way[0], "...", way[-1])


def shortest_way(graph: Graph, start: str, end: str) -> tuple[str, ...]:
    """The shortest way, the first of them by name; () if there is none."""
    paths: deque[tuple[str, ...]] = deque([(start,)])
    seen = {start}
    while paths:
        path = paths.popleft()
        if path[-1] == end:
            return path
        for target in sorted(graph.get(path[-1], ())):
            if target not in seen:
                seen.add(target)
                paths.append((*path, target))
    return ()


def unreachable(facts: Iterable[Fact]) -> set[Place]:
    """File and line of the internal definitions that nothing runs, but something mentions."""
    facts = list(facts)
    internals = [fact for fact in facts if isinstance(fact, Internal)]
    uses = [fact for fact in facts if isinstance(fact, PrivateUse)]
    running: set[str] = set()
    while more := _used(internals, uses, running | {""}) - running:
        running |= more
    mentioned = {use.name for use in uses}
    never = {
        (fact.file, fact.line)
        for fact in facts
        if isinstance(fact, Function) and fact.plain and is_private(fact.name)
        if fact.name not in mentioned
    }
    return {(i.file, i.line) for i in internals if i.symbol not in running} - never


def _used(internals: list[Internal], uses: list[PrivateUse], users: set[str]) -> set[str]:
    """Return the symbols that these users use."""
    names = {(use.module, use.name) for use in uses if use.user in users and use.bound}
    attributes = {use.name for use in uses if use.user in users and not use.bound}
    return {i.symbol for i in internals if (i.module, i.name) in names or i.name in attributes}
