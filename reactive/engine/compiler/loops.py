"""The operator of an iteration whose rounds are no part of the graph.

    bodies over what is given --passes--> rounds that are evaluated whole    (generated/whole.py)
                              --reference--> the same, where something raises
                              --a graph within--> rounds that follow changes

What has no passes is evaluated by the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from optimizer import plan
from optimizer.plans.loops import over_given
from optimizer.plans.properties import bindings, free, may_be_negative, nodes
from optimizer.traverse import unrolled
from reactive.engine.collections.zset import Pair, Pairs
from reactive.engine.operators.loop.anew import Anew, Loop, Near
from reactive.engine.operators.loop.measured import Measured
from reactive.engine.operators.loop.onward import OneRound, Onward
from reactive.engine.operators.loops.whole import has_layout, whole_of
from reactive.engine.operators.plain import spread
from reactive.engine.operators.tolerate import Tolerate
from reactive.engine.reference.evaluate import evaluate_part

Contents = Callable[[], Iterable[Pair]]


class InnerNodes(OneRound, Protocol):
    """Nodes that step as often as they are told to."""

    def step(self, deltas: Sequence[Pairs], most: int = ...) -> list[Pairs] | None: ...


class MakeInner(Protocol):
    """What makes a graph within an operator: some plans, over relations that have `contents`."""

    def __call__(
        self, roots: Sequence[plan.Node], contents: Sequence[Contents], *, generate: bool
    ) -> InnerNodes: ...


class ByReference:
    """Rounds evaluated as `verify()` does it."""

    def __init__(self, node: plan.Iterate) -> None:
        self._bodies = node.bodies
        self._level = node.level
        self._given: dict[tuple[Any, int], Counter[Any]] = {}
        self._looked = 0

    def begin(self, place: int, rows: list[Any]) -> None:
        self._given[self._level, place] = Counter(rows)

    def round(self, rows: Sequence[list[Any]]) -> list[list[Any]]:
        own = {(self._level, place): Counter(some) for place, some in enumerate(rows)}
        made = [evaluate_part(body, {**self._given, **own}) for body in self._bodies]
        found = [list(bag.elements()) for bag in made]
        self._looked += sum(map(len, found)) + sum(map(len, rows))
        return found

    def run(self, rows: Sequence[list[Any]], times: int) -> list[list[Any]]:
        found = list(rows)
        for _ in range(times):
            found = self.round(found)
        return found

    def forget(self) -> None:
        self._given = {}

    def looked(self) -> int:
        looked, self._looked = self._looked, 0
        return looked


def pays(node: plan.Iterate) -> bool:
    """Whether an iteration of a number of rounds runs as an operator of its own: where a round has
    passes, and groups, which are what operators take long for."""
    parts = [part for body in node.bodies for part in nodes(body)]
    if node.is_tolerant() or free(node) or may_be_negative(node) or (node.times or 0) < 2:
        return False
    if not any(isinstance(part, plan.Aggregate) for part in parts):
        return False
    inputs, given = over_given(node)
    return whole_of(given.bodies, len(inputs), len(node.names)) is not None


def laid_out(node: plan.Iterate, given: int) -> bool:
    """Whether the rounds of an iteration over relations that are given have a layout to keep."""
    if node.times is None or not has_layout(node.times):
        return False
    whole = whole_of(node.bodies, given, len(node.names))
    return whole is not None and whole.layout is not None


def loop_of(
    node: plan.Iterate, places: tuple[int, ...], inner: MakeInner, *, generate: bool
) -> Callable[[], Any]:
    """How to make the operator of an iteration over relations that are given.

    `places` says for each of them which input of the operator it is.
    """
    loop = _loop(node)

    def body(held: Anew) -> InnerNodes:
        return inner(unrolled(node), [given.items for given in held.given], generate=generate)

    def one_round(contents: Sequence[Contents]) -> OneRound:
        return inner(node.bodies, contents, generate=generate)

    def make() -> Any:
        anew = _anew(loop, node, places, generate=generate)
        if node.times is not None:
            return anew if any(loop.near) else Measured(anew, body)
        if node.contraction is None or not all(loop.near):
            return anew
        shown = [Tolerate(each.by, each.value, each.least) for each in loop.near if each]
        return Onward(anew, loop, shown, one_round)

    return make


def evaluated(
    node: plan.Iterate, starts: list[list[Any]], given: Sequence[dict[Any, int]]
) -> list[list[Any]]:
    """What an iteration over relations that are given comes to, once, from some rows on; with a
    number of rounds before any tolerance. In its bodies what is `given` comes after its own."""
    own = len(node.names)
    anew = _anew(_loop(node), node, tuple(range(own + len(given))), generate=True)
    anew.given[own:] = given
    return anew.settled(starts)


def _loop(node: plan.Iterate) -> Loop:
    near = tuple(None if t is None else _near(t, node, i) for i, t in enumerate(node.tolerances))
    return Loop(node.names, node.times, node.max_rounds, near)


def _anew(loop: Loop, node: plan.Iterate, places: tuple[int, ...], *, generate: bool) -> Anew:
    whole = whole_of(node.bodies, len(places), len(node.names)) if generate else None
    return Anew(loop, places, whole, ByReference(node))


def _near(tolerance: plan.Tolerance, node: plan.Iterate, index: int) -> Near:
    count = bindings(node.starts[index])
    return Near(spread(tolerance.by, count), spread(tolerance.value, count), tolerance.least)
