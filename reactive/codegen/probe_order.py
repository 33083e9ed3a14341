"""In which order a change of one input of a multiway join is followed through the others.

from a:   b and c together          both begin where a ends, or end where it begins; and meet
from a:   b, then c, d              the other way round, if it is shorter
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from optimizer.expr import Expr, Parameter, substitute
from optimizer.plans.multiway import MultiwayJoin
from optimizer.record import record

Key = tuple[int, tuple[Expr, ...], tuple[Expr, ...]]
"""An index: of which input, by which expressions over its row, and, of a trie, by which below."""


@record
class Probe:
    """The next input of a probe order: the index, and what is looked up in it, in terms of the
    others."""

    key: Key
    exprs: tuple[Expr, ...]

    @property
    def place(self) -> int:
        return self.key[0]


@record
class Intersection:
    """The next two inputs: what is found of each in a trie, and the values below that both have."""

    left: Probe
    right: Probe


ProbeStep = Probe | Intersection
ProbeOrder = list[list[ProbeStep]]
"""From an input through all others: one order, or two of which the shorter is taken."""


def probes_of(moves: Sequence[ProbeStep]) -> Iterator[Probe]:
    """All probes of the steps, in their order."""
    for move in moves:
        if isinstance(move, Intersection):
            yield move.left
            yield move.right
        else:
            yield move


def keys_of(order: ProbeOrder) -> list[Key]:
    """The indexes of a probe order, each once."""
    return list(dict.fromkeys(step.key for moves in order for step in probes_of(moves)))


def probe_order(start: int, multiway: MultiwayJoin) -> ProbeOrder:
    """The probe order for changes of an input."""
    first = _nexts({start}, multiway)
    move = _best(first, multiway)
    if isinstance(move, Intersection):
        return [_rest(move, {start}, multiway)]
    begins = [step for step in first if len(step.exprs) == len(move.exprs)][:2]
    return [_rest(step, {start}, multiway) for step in begins]


def _rest(move: ProbeStep, bound: set[int], multiway: MultiwayJoin) -> list[ProbeStep]:
    moves = [move]
    bound = bound | {step.place for step in probes_of(moves)}
    while len(bound) < len(multiway.tests):
        move = _best(_nexts(bound, multiway), multiway)
        moves.append(move)
        bound = bound | {step.place for step in probes_of([move])}
    return moves


def _best(steps: Sequence[Probe], multiway: MultiwayJoin) -> ProbeStep:
    """The one of which most is known; of two of which little is, both, if they meet."""
    best = max(steps, key=lambda step: len(step.exprs))
    return _intersection(steps, multiway) or best if len(best.exprs) == 1 else best


def _intersection(steps: Sequence[Probe], multiway: MultiwayJoin) -> Intersection | None:
    for left, right in combinations(steps, 2):
        shared = [e for e in multiway.equations if {e.left, e.right} == {left.place, right.place}]
        if len(shared) == 1:
            (equation,) = shared
            of = {equation.left: equation.of_left, equation.right: equation.of_right}
            return Intersection(*(_over(step, of[step.place]) for step in (left, right)))
    return None


def _over(step: Probe, below: Expr) -> Probe:
    place, own, _ = step.key
    return Probe((place, own, (below,)), step.exprs)


def _nexts(bound: set[int], multiway: MultiwayJoin) -> list[Probe]:
    """Each input that an equation leads to from those that are bound."""
    found: dict[int, list[tuple[Expr, Expr]]] = {}
    for e in multiway.equations:
        for a, of_a, b, of_b in (
            (e.left, e.of_left, e.right, e.of_right),
            (e.right, e.of_right, e.left, e.of_left),
        ):
            if a in bound and b not in bound:
                found.setdefault(b, []).append((of_b, substitute(of_a, (Parameter(a),))))
    steps = []
    for place, pairs in sorted(found.items()):
        own, probe = zip(*sorted(pairs, key=_own_text), strict=True)  # one index for any order
        steps.append(Probe((place, own, ()), probe))
    return steps


def _own_text(pair: tuple[Expr, Expr]) -> str:
    return repr(pair[0])
