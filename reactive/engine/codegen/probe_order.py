"""Probe orders: how a change of one input of a multiway join visits the other inputs.

    from a:   b and c together          both begin where a ends, or end where it begins; and meet
    from a:   b, then c, d              the other way round, if it is shorter
    from a:   d by its key, then ...    first an input that matches at most one row

An input with a unique key is looked up by that key alone, whatever else is known: other equations
are tested on the row found. So it needs one index, and if the rows of another input lead to it, no
intersection is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from optimizer.expr import Expr, Operation, Parameter, substitute
from optimizer.plans.forms import Key as UniqueKey
from optimizer.plans.multiway import Equation, MultiwayJoin
from optimizer.record import record

Key = tuple[int, tuple[Expr, ...], tuple[Expr, ...]]
"""An index: its input, the expressions over its row, and, of a trie, the expressions below."""


@record
class InputProbe:
    """The next input of a probe order: the index, and the expressions to look up in it.

    `is_only`: it finds at most one row. `tests` are the other equations, over all inputs.
    """

    key: Key
    exprs: tuple[Expr, ...]
    tests: tuple[Expr, ...] = ()
    is_only: bool = False

    @property
    def place(self) -> int:
        return self.key[0]


@record
class Intersection:
    """The next two inputs: two tries, and the values that both have below the looked-up keys."""

    left: InputProbe
    right: InputProbe


ProbeStep = InputProbe | Intersection
ProbeOrder = list[list[ProbeStep]]
"""One order through all other inputs, or two; then the shorter one is used."""


def probes_of(moves: Sequence[ProbeStep]) -> Iterator[InputProbe]:
    """Yield all probes of the steps, in order."""
    for move in moves:
        if isinstance(move, Intersection):
            yield move.left
            yield move.right
        else:
            yield move


def probe_keys(order: ProbeOrder) -> list[Key]:
    """Return the indexes of a probe order, each once."""
    return list(dict.fromkeys(step.key for moves in order for step in probes_of(moves)))


def probe_order(start: int, multiway: MultiwayJoin) -> ProbeOrder:
    """Return the probe order for changes of an input."""
    moves, bound = list[ProbeStep](), {start}
    while len(bound) < len(multiway.tests):
        steps = _find_best_probes(_nexts(bound, multiway), multiway)
        if len(steps) > 1 and _find_intersection(steps, multiway) is None:
            return [
                _complete_order([*moves, step], bound | {step.place}, multiway)
                for step in steps[:2]
            ]
        moves.append(_choose_step(steps, multiway))
        bound = bound | {step.place for step in probes_of(moves[-1:])}
        if not steps[0].is_only:
            break
    return [_complete_order(moves, bound, multiway)]


def is_led_by_keys(multiway: MultiwayJoin) -> bool:
    """Return True if unique keys lead around all cycles, so that no two inputs are intersected."""
    if not any(multiway.keys):
        return False
    orders = [probe_order(place, multiway) for place in range(len(multiway.tests))]
    steps = [step for order in orders for moves in order for step in moves]
    return not any(isinstance(step, Intersection) for step in steps)


def _complete_order(
    moves: list[ProbeStep], bound: set[int], multiway: MultiwayJoin
) -> list[ProbeStep]:
    """Return `moves`, extended until every input is visited; the list is changed."""
    while len(bound) < len(multiway.tests):
        move = _choose_step(_find_best_probes(_nexts(bound, multiway), multiway), multiway)
        moves.append(move)
        bound = bound | {step.place for step in probes_of([move])}
    return moves


def _find_best_probes(steps: Sequence[InputProbe], multiway: MultiwayJoin) -> Sequence[InputProbe]:
    """Return the best next probes: a unique one, or the probes with most equations.

    If the probes have one equation each, leave out inputs that a row of another input leads to.
    """
    only = [step for step in steps if step.is_only]
    if only:
        return only[:1]
    most = max(len(step.exprs) for step in steps)
    best = [step for step in steps if len(step.exprs) == most]
    if most > 1:
        return best
    return [step for step in best if not _is_led_to(step, best, multiway)] or best


def _choose_step(steps: Sequence[InputProbe], multiway: MultiwayJoin) -> ProbeStep:
    """Return the first probe, or the intersection of two with one equation each, if they meet."""
    return (_find_intersection(steps, multiway) if len(steps) > 1 else None) or steps[0]


def _is_led_to(step: InputProbe, others: Sequence[InputProbe], multiway: MultiwayJoin) -> bool:
    """Return True if the rows of another input determine the key of this one."""
    key, places = multiway.keys[step.place], {other.place for other in others}
    sides = [side for e in multiway.equations for side in _both_sides(e)]
    led = {own for place, own, other, _ in sides if place == step.place and other in places}
    return bool(key) and key <= led


def _find_intersection(steps: Sequence[InputProbe], multiway: MultiwayJoin) -> Intersection | None:
    """Return a step that visits two inputs together by their shared value; None if none can."""
    if len(steps[0].exprs) > 1:
        return None
    for left, right in combinations(steps, 2):
        shared = [e for e in multiway.equations if {e.left, e.right} == {left.place, right.place}]
        if len(shared) == 1:
            (equation,) = shared
            of = {equation.left: equation.of_left, equation.right: equation.of_right}
            return Intersection(*(_make_trie_probe(step, of[step.place]) for step in (left, right)))
    return None


def _make_trie_probe(step: InputProbe, below: Expr) -> InputProbe:
    """Return the probe of a trie: the keys of `step`, and `below` as the key below them."""
    place, own, _ = step.key
    return InputProbe((place, own, (below,)), step.exprs)


def _nexts(bound: set[int], multiway: MultiwayJoin) -> list[InputProbe]:
    """Return the probe of each input that an equation connects to the bound inputs."""
    found: dict[int, list[tuple[Expr, Expr]]] = {}
    for e in multiway.equations:
        for place, own, other, of_other in _both_sides(e):
            if place not in bound and other in bound:
                probe = substitute(of_other, (Parameter(other),))
                found.setdefault(place, []).append((own, probe))
    return [_make_probe(place, found[place], multiway.keys[place]) for place in sorted(found)]


def _both_sides(e: Equation) -> tuple[tuple[int, Expr, int, Expr], tuple[int, Expr, int, Expr]]:
    """Return an equation from each side: the input and its part, the other one and its part."""
    return (e.left, e.of_left, e.right, e.of_right), (e.right, e.of_right, e.left, e.of_left)


def _make_probe(place: int, pairs: list[tuple[Expr, Expr]], key: UniqueKey) -> InputProbe:
    """Return the look-up of an input by all its equations, or by its unique key alone."""
    pairs = sorted(pairs, key=_own_text)  # one index for any order
    rest = list[tuple[Expr, Expr]]()
    is_only = bool(key) and key <= {own for own, _ in pairs}
    if is_only:
        by_key = {own: (own, probe) for own, probe in reversed(pairs) if own in key}
        rest = [pair for pair in pairs if pair not in by_key.values()]
        pairs = [by_key[own] for own in sorted(by_key, key=repr)]
    tests = [Operation("==", (substitute(own, (Parameter(place),)), probe)) for own, probe in rest]
    own, probe = zip(*pairs, strict=True)
    return InputProbe((place, own, ()), probe, tuple(tests), is_only)


def _own_text(pair: tuple[Expr, Expr]) -> str:
    return repr(pair[0])
