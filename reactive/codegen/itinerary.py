"""In which order a change of one input of a wide join is followed through the others.

from a:   b and c together          both begin where a ends, or end where it begins; and meet
from a:   b, then c, d              the other way round, if it is shorter
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from optimizer.expr import Expr, Parameter, substitute
from optimizer.plans.multiway import Wide

Key = tuple[int, tuple[Expr, ...], tuple[Expr, ...]]
"""An index: of which input, by which expressions over its row, and, of a trie, by which below."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next input of a path: the index, and what is looked up in it, in terms of the others."""

    key: Key
    probe: tuple[Expr, ...]

    @property
    def place(self) -> int:
        return self.key[0]


@dataclass(frozen=True, slots=True)
class Meet:
    """The next two inputs: what is found of each in a trie, and the values below that both have."""

    left: Step
    right: Step


Move = Step | Meet
Path = list[list[Move]]
"""The ways to go from an input to all others: one, or two of which the shorter is taken."""


def steps_of(moves: Sequence[Move]) -> Iterator[Step]:
    """All inputs of a way, in their order."""
    for move in moves:
        if isinstance(move, Meet):
            yield move.left
            yield move.right
        else:
            yield move


def keys_of(path: Path) -> list[Key]:
    """The indexes of a path, each once."""
    return list(dict.fromkeys(step.key for moves in path for step in steps_of(moves)))


def path_from(start: int, wide: Wide) -> Path:
    """The path of changes of an input."""
    first = _nexts({start}, wide)
    move = _best(first, wide)
    if isinstance(move, Meet):
        return [_rest(move, {start}, wide)]
    begins = [step for step in first if len(step.probe) == len(move.probe)][:2]
    return [_rest(step, {start}, wide) for step in begins]


def _rest(move: Move, bound: set[int], wide: Wide) -> list[Move]:
    moves = [move]
    bound = bound | {step.place for step in steps_of(moves)}
    while len(bound) < len(wide.tests):
        move = _best(_nexts(bound, wide), wide)
        moves.append(move)
        bound = bound | {step.place for step in steps_of([move])}
    return moves


def _best(steps: Sequence[Step], wide: Wide) -> Move:
    """The one of which most is known; of two of which little is, both, if they meet."""
    best = max(steps, key=lambda step: len(step.probe))
    return _meet(steps, wide) or best if len(best.probe) == 1 else best


def _meet(steps: Sequence[Step], wide: Wide) -> Meet | None:
    for left, right in combinations(steps, 2):
        shared = [e for e in wide.equations if {e.left, e.right} == {left.place, right.place}]
        if len(shared) == 1:
            (equation,) = shared
            of = {equation.left: equation.of_left, equation.right: equation.of_right}
            return Meet(*(_over(step, of[step.place]) for step in (left, right)))
    return None


def _over(step: Step, below: Expr) -> Step:
    place, own, _ = step.key
    return Step((place, own, (below,)), step.probe)


def _nexts(bound: set[int], wide: Wide) -> list[Step]:
    """Each input that an equation leads to from those that are bound."""
    found: dict[int, list[tuple[Expr, Expr]]] = {}
    for e in wide.equations:
        for a, of_a, b, of_b in (
            (e.left, e.of_left, e.right, e.of_right),
            (e.right, e.of_right, e.left, e.of_left),
        ):
            if a in bound and b not in bound:
                found.setdefault(b, []).append((of_b, substitute(of_a, (Parameter(a),))))
    steps = []
    for place, pairs in sorted(found.items()):
        own, probe = zip(*sorted(pairs, key=_own_text), strict=True)  # one index for any order
        steps.append(Step((place, own, ()), probe))
    return steps


def _own_text(pair: tuple[Expr, Expr]) -> str:
    return repr(pair[0])
