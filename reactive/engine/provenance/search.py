"""The lowest proof of a row: least height, then fewest facts, then the first found.

    reach (1, 5)                               height 2
      reach (1, 4)                             height 1
        edges (1, 4)
      edges (4, 5)

The goals are searched backwards, those at a distance of one rule after the other, and heights are
passed forward as soon as all premises of a derivation have one. When the first goal has a height,
nothing beyond that distance can lower it: a proof of height h has no goal at a distance above h.

Sound:  a goal has a height only by a derivation whose premises have smaller ones, or are inputs of
        its node: so that no proof contains itself.
Cost:   O(derivations of the goals that were reached).
Source: Knuth, A Generalization of Dijkstra's Algorithm, 1977; heights of proofs as in Soufflé
        (Zhao, Subotic, Scholz, TOPLAS 2020), which stores them, while here they are found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from optimizer import plan
from reactive.engine.provenance.derivations import RowDerivations
from reactive.engine.provenance.goals import Beside, Derivation, Goal

RULES = (plan.Component, plan.Aggregate, plan.Reduce, plan.View)
"""Nodes whose rows are heads of rules: a proof is as high as it has these below each other."""


@dataclass(eq=False, slots=True)
class Step:
    """A row with the derivation that was chosen, and the steps of its premises."""

    goal: Goal
    derivation: Derivation
    premises: list[Step] = field(default_factory=list)
    height: int = 0

    @property
    def beside(self) -> tuple[Beside, ...]:
        return self.derivation.beside


@dataclass(eq=False, slots=True)
class _Known:
    """State of a goal in the search: its derivations, and the lowest height so far."""

    goal: Goal
    distance: int
    ways: list[_Way] = field(default_factory=list)
    used_by: list[_Way] = field(default_factory=list)
    height: int | None = None
    facts: int | None = None
    best: _Way | None = None
    is_searched: bool = False


@dataclass(eq=False, slots=True)
class _Way:
    """A derivation with its premises."""

    head: _Known
    derivation: Derivation
    premises: list[_Known]

    def height(self) -> int | None:
        """Return the height of the goal by this derivation; None as long as it is not known."""
        found = 0
        for premise in self.premises:
            if premise.height is None:
                return None
            found = max(found, premise.height)
        return found + rises(self.head.goal)


def rises(goal: Goal) -> int:
    """Return 1 for the head of a rule, else 0."""
    return int(isinstance(goal.node, RULES))


class Search:
    """Searches proofs of rows; what was found serves the next question.

    With `is_flat`, rows of groups are shown and not proved, as in a group that its own rows enter.
    """

    def __init__(self, derivations: RowDerivations, *, is_flat: bool = False) -> None:
        self.derivations = derivations
        self._is_flat = is_flat
        self._known: dict[Goal, _Known] = {}
        self._layers: dict[int, deque[_Known]] = {}

    def lowest(self, goal: Goal) -> Step | None:
        """Return the lowest proof of a goal; None if there is none."""
        self._known, self._layers = {}, {}
        first = self._find(goal, 0)
        distance = 0
        while self._layers:
            distance = min(self._layers)
            if first.height is not None and first.height < distance:
                break
            layer = self._layers[distance]
            while layer:
                known = layer.popleft()
                if not known.is_searched:
                    self._expand(known)
            del self._layers[distance]
        return None if first.height is None else self._step(first)

    def _find(self, goal: Goal, distance: int) -> _Known:
        """Return what is known of a goal; a new one waits to be searched."""
        known = self._known.get(goal)
        if known is None:
            known = self._known[goal] = _Known(goal, distance)
            self._layers.setdefault(distance, deque()).append(known)
        elif distance < known.distance and not known.is_searched:
            known.distance = distance
            self._layers.setdefault(distance, deque()).append(known)
        return known

    def _expand(self, head: _Known) -> None:
        """Search the derivations of a goal, and pass heights on."""
        head.is_searched = True
        distance = head.distance + rises(head.goal)
        for derivation in self.derivations.of(head.goal):
            goals = dict.fromkeys(derivation.premises)
            if self._is_flat and isinstance(head.goal.node, plan.Aggregate | plan.Reduce):
                goals = {}
            way = _Way(head, derivation, [self._find(each, distance) for each in goals])
            head.ways.append(way)
            for premise in way.premises:
                premise.used_by.append(way)
            self._lower(way)

    def _lower(self, way: _Way) -> None:
        """Note the height that a derivation gives its goal, and what follows from it."""
        waiting = deque([way])
        while waiting:
            way = waiting.popleft()
            height = way.height()
            head = way.head
            if height is None or (head.height is not None and head.height <= height):
                continue
            head.height = height
            waiting += head.used_by

    def _step(self, first: _Known) -> Step:
        """Return the proof of a goal with the fewest facts among the lowest."""
        self._count_facts(first)
        made: dict[int, Step] = {}
        waiting = [first]
        while waiting:
            known = waiting[-1]
            if id(known) in made:
                waiting.pop()
                continue
            best = known.best
            assert best is not None
            missing = [each for each in best.premises if id(each) not in made]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            goals = best.derivation.premises if best.premises else ()
            premises = [made[id(self._known[each])] for each in goals]
            step = Step(known.goal, best.derivation, premises)
            step.height = known.height or 0
            made[id(known)] = step
        return made[id(first)]

    def _count_facts(self, first: _Known) -> None:
        """Choose, for each goal of the proof, the derivation with the fewest facts."""
        waiting = [first]
        while waiting:
            known = waiting[-1]
            if known.facts is not None:
                waiting.pop()
                continue
            ways = [way for way in known.ways if way.height() == known.height]
            missing = [p for way in ways for p in way.premises if p.facts is None]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            known.best = min(ways, key=_facts_of)
            known.facts = _facts_of(known.best)

    def every(self, goal: Goal) -> Iterator[Step]:
        """Yield all proofs of a goal that do not contain themselves, lazily."""
        yield from self._every(goal, frozenset())

    def _every(self, goal: Goal, above: frozenset[Goal]) -> Iterator[Step]:
        if goal in above:
            return
        inside = above | {goal}
        for derivation in self.derivations.of(goal):
            for premises in self._combined(list(derivation.premises), inside):
                height = max((each.height for each in premises), default=0) + rises(goal)
                yield Step(goal, derivation, premises, height)

    def _combined(self, goals: list[Goal], above: frozenset[Goal]) -> Iterator[list[Step]]:
        """Yield the proofs of several goals, in all combinations."""
        if not goals:
            yield []
            return
        for first in self._every(goals[0], above):
            for rest in self._combined(goals[1:], above):
                yield [first, *rest]


def _facts_of(way: _Way) -> int:
    return max(1, sum(each.facts or 0 for each in way.premises)) if way.premises else 1
