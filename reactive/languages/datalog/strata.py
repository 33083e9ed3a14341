"""The order in which relations are computed: those that depend on each other together.

A relation that is negated or aggregated must be complete before, in a lower stratum.

Source: stratified negation: Apt, Blair, Walker, 1988; components: Tarjan, 1972.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from optimizer.errors import StratificationError
from optimizer.record import record
from reactive.languages.datalog.places import Span, wrong
from reactive.languages.datalog.rules import Goal, Rule, Total
from reactive.languages.datalog.syntax import Atom, Negation


@record
class Dependency:
    """A relation that a rule reads: as it is, or for its `"negation"` or an `"aggregate"`."""

    name: str
    barrier: str | None
    at: Span


def dependencies(goals: Sequence[Goal], barrier: str | None = None) -> Iterator[Dependency]:
    """What some goals read."""
    for goal in goals:
        match goal:
            case Atom(name, _, at):
                yield Dependency(name, barrier, at)
            case Negation(atom, at):
                yield Dependency(atom.name, "negation", at)
            case Total(bodies=bodies):
                for body in bodies:
                    yield from dependencies(body, "aggregate")


def strata(rules: Mapping[str, Sequence[Rule]]) -> list[list[str]]:
    """The relations that have rules, each stratum after all that it reads.

    Raises
    ------
    StratificationError: a relation depends on its own negation or aggregate.
    """
    read = {
        name: [d for rule in some for d in dependencies(rule.goals)] for name, some in rules.items()
    }
    found = _components({name: [d.name for d in some] for name, some in read.items()})
    for group in found:
        for name in group:
            for dependency in read[name]:
                if dependency.barrier is not None and dependency.name in group:
                    raise _unstratified(name, dependency, group, read)
    return found


def _unstratified(
    name: str,
    dependency: Dependency,
    group: Sequence[str],
    read: Mapping[str, Sequence[Dependency]],
) -> Exception:
    way = _way(dependency.name, name, group, read)
    through = "!" if dependency.barrier == "negation" else "aggregate of "
    shown = " -> ".join([name, f"{through}{way[0]}", *way[1:]])
    found = wrong(
        dependency.at,
        f"relation {name!r} depends on its own {dependency.barrier}",
        f"{shown}\n  it has no meaning: negate or aggregate what does not depend on it",
    )
    return StratificationError(str(found))


def _way(
    start: str, end: str, group: Sequence[str], read: Mapping[str, Sequence[Dependency]]
) -> list[str]:
    """Relations from one to another, each of which reads the next."""
    ways = {start: [start]}
    waiting = [start]
    while waiting:
        at = waiting.pop(0)
        if at == end:
            return ways[at]
        for following in (dependency.name for dependency in read[at]):
            if following in group and following not in ways:
                ways[following] = [*ways[at], following]
                waiting.append(following)
    return [start]


def _components(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Those that reach each other, together; each group after those that it reaches."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    found: list[list[str]] = []
    for root in edges:
        waiting = [(root, iter(edges[root]))] if root not in numbers else []
        while waiting:
            name, following = waiting[-1]
            if name not in numbers:
                numbers[name] = lowest[name] = len(numbers)
                open_.append(name)
            next_ = next((n for n in following if n in edges), None)
            if next_ is None:
                waiting.pop()
                if waiting:
                    above = waiting[-1][0]
                    lowest[above] = min(lowest[above], lowest[name])
                if lowest[name] == numbers[name]:
                    place = open_.index(name)
                    found.append(sorted(open_[place:], key=list(edges).index))
                    del open_[place:]
            elif next_ not in numbers:
                waiting.append((next_, iter(edges[next_])))
            elif next_ in open_:
                lowest[name] = min(lowest[name], numbers[next_])
    return found
