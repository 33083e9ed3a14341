"""A join of an input with itself in a circle, of which no row is read: what a single row changes.

    a --> b --> c --> a         the same rows three times, and seen from each it is the same circle

    d(E E E)  =  3 dE E E       where dE does not meet itself

So one path is followed in the place of three, and nothing has to be found as it was before. A row
that meets itself, and several rows, which may meet each other, go along all paths.

State:  none of its own.
Cost:   O(the smaller of the two sides that the row meets).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from optimizer.expr import Parameter, reads, substitute
from reactive.codegen import Values, build
from reactive.generated.body import Body, Plan
from reactive.generated.itinerary import Key, Meet, Path, Step
from reactive.generated.paths import Paths, look_up
from reactive.generated.single import GroupingOfOne
from reactive.index import NOTHING, Mark
from reactive.operators.index_by import IndexBy
from reactive.trie import meetings
from reactive.zset import Pair


class Turning:
    """Runs the loop of one path for all of them."""

    __slots__ = ("_finds", "_loop", "_paths")

    def __init__(
        self, paths: Paths, loop: Callable[..., Any], finds: Sequence[Callable[..., Any]]
    ) -> None:
        self._paths = paths
        self._loop = loop
        self._finds = finds

    def step(
        self, groups: dict[Any, Any], before: dict[Any, Any], deltas: Sequence[Sequence[Any]]
    ) -> Sequence[Pair] | None:
        """What a delta of the input changes; None if it has to go along all paths."""
        delta = deltas[0]
        if len(delta) != 1 or not self._paths.is_plain:
            return None
        try:
            out: Sequence[Pair] | None = self._loop(groups, before, delta, *self._finds)
            return out
        except Exception:
            before.clear()
            return None


def turning(
    paths: Sequence[Path],
    indexes: Mapping[Key, IndexBy],
    todo: Plan,
    taker: GroupingOfOne | None,
    ways: Paths,
) -> Turning | None:
    """The loop of one path, if all are the same but for where they begin, and nothing is read."""
    if taker is None or any(map(reads, [*(act.expr for act in todo.acts), *taker.exprs()])):
        return None
    held: list[set[IndexBy]] = [set() for _ in paths]
    for key, index in indexes.items():
        held[key[0]].add(index)
    seen = {_seen_from(place, path, indexes) for place, path in enumerate(paths)}
    if len(seen) > 1 or None in seen or any(held[0] != of for of in held):
        return None
    (meet,) = paths[0][0]
    assert isinstance(meet, Meet)
    steps = (meet.left, meet.right)
    return Turning(ways, _loop(steps, todo, taker), [indexes[s.key].index.find for s in steps])


def _seen_from(place: int, path: Path, indexes: Mapping[Key, IndexBy]) -> Hashable:
    """What is looked up where; None if that is not all at once."""
    if len(path) > 1 or len(path[0]) > 1 or not isinstance(path[0][0], Meet):
        return None
    row = (*[Parameter(0)] * (place + 1),)
    meet = path[0][0]
    return frozenset(
        (indexes[step.key], tuple(substitute(part, row) for part in step.probe))
        for step in (meet.left, meet.right)
    )


def _loop(steps: Sequence[Step], todo: Plan, taker: GroupingOfOne) -> Callable[..., Any]:
    """The loop along the first path, as often as there are paths."""
    values = Values()
    body = Body(values, _NAMES, todo.shapes, 2)
    for step in steps:
        body.expect([*step.key[1], *step.probe])
    body.line("if key.__class__ is Mark: continue")
    body.line("row0, times_0 = pair")
    for meets in dict.fromkeys(_meets_itself(body, step) for step in steps):
        body.line(f"if {meets}: return None")
    for name, step in zip(("found", "also"), steps, strict=True):
        look_up(body, step, f"find_{name}", name)
    body.line(f"weight = meetings(found, also) * times_0 * {len(todo.shapes)}")
    body.line("if not weight: continue")
    body.write(todo.acts)
    taker.write(body, "weight")
    head = [
        "def step(groups, before, delta, find_found, find_also):",
        "    for key, pair in delta:",
    ]
    values.by_name |= {"NOTHING": NOTHING, "Mark": Mark, "meetings": meetings, **taker.bound}
    return build("step", "\n".join([*head, *body.lines, *taker.epilogue(), ""]), values)


def _meets_itself(body: Body, step: Step) -> str:
    """The condition by which a row would be found as one of the others."""
    pairs = zip(
        *([body.named(part) for part in of] for of in (step.key[1], step.probe)), strict=True
    )
    return " and ".join(" == ".join(sorted(pair)) for pair in pairs)


_NAMES = ("row0", "times_0", "also", "find_found", "find_also", "meetings")
