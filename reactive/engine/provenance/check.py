"""Check a proof step by step, by evaluating each node from scratch, with no part of the search.

a step of premises alone      the node, over the rows of the premises, makes the row
a step with something beside  the node makes the row, over all rows of its inputs, among which
the premises are
a fact                        the table has the row
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from optimizer import plan
from optimizer.plans.explain import headline
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.provenance.goals import Note, Rounds
from reactive.engine.provenance.search import Step
from reactive.engine.reference.asking import evaluate_node
from reactive.engine.reference.bags import Bag, caller, pairing
from reactive.errors import VerificationError

Evaluated = Callable[[plan.Node, Rounds], Bag]
"""Returns the rows of a node, evaluated from scratch."""


def check_steps(root: Step, evaluated: Evaluated) -> int:
    """Check all steps of a proof, and return their number.

    Raises
    ------
    VerificationError: a step does not hold, which it names.
    """
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        step = waiting.pop()
        if id(step) in seen:
            continue
        seen.add(id(step))
        waiting += step.premises
        if not _holds(step, evaluated):
            raise VerificationError(
                f"a step of a proof does not hold: {headline(step.goal.node)}\n"
                f"  it does not make {step.goal.row!r:.200}"
            )
    _check_that_it_ends(root)
    return len(seen)


def _holds(step: Step, evaluated: Evaluated) -> bool:
    node, row, rounds = step.goal.node, step.goal.row, step.goal.rounds
    match node:
        case plan.Table() | plan.Values() | plan.Given() | plan.Previous():
            return evaluated(node, rounds).get(row, 0) > 0
        case plan.Component(plan.Fixpoint() as fixpoint, index):
            best = fixpoint.best[index]
            if isinstance(best, plan.JoinedValue):
                return _is_joined(best, fixpoint.bodies[index], step)
            return _is_premise(step, row)
        case plan.Component() | plan.View():
            return _is_premise(step, row)
    if step.beside and not all(isinstance(each, Note) for each in step.beside):
        return _holds_of_all(step, evaluated)
    given = [Counter([premise.goal.row]) for premise in step.premises]
    made = evaluate_node(node, _in_turn(node, given))
    return made.get(row, 0) > 0


def _in_turn(node: plan.Node, given: list[Bag]) -> Callable[[plan.Node], Bag]:
    """Return the rows of the inputs of a node: of the only premise, each of them."""
    if pairing(node) is None and len(given) == 1:
        return lambda source: given[0]
    rows = iter(given)
    return lambda source: next(rows)


def _holds_of_all(step: Step, evaluated: Evaluated) -> bool:
    """Return True if a node makes the row of all rows of its inputs, the premises among them."""
    node, rounds = step.goal.node, step.goal.rounds
    found = pairing(node)
    sources = node.inputs() if found is None else (found.left, found.right)
    bags = [evaluated(source, rounds) for source in sources]
    if any(not any(bag.get(p.goal.row, 0) > 0 for bag in bags) for p in step.premises):
        return False
    if found is None:
        known = {id(source): bag for source, bag in zip(sources, bags, strict=True)}
        return evaluate_node(node, lambda source: known[id(source)]).get(step.goal.row, 0) > 0
    pair = iter(bags)
    return evaluate_node(node, lambda source: next(pair)).get(step.goal.row, 0) > 0


def _is_premise(step: Step, row: Row) -> bool:
    return any(premise.goal.row == row for premise in step.premises)


def _is_joined(best: plan.JoinedValue, body: plan.Node, step: Step) -> bool:
    """Return True if the value of a row is the join of the values of its premises, or above it."""
    value, key = caller(best.value, body), caller(best.by, body)
    mine, joined = value(step.goal.row), None
    for premise in step.premises:
        if (key(premise.goal.row),) != (key(step.goal.row),):  # NaN is one object
            return False
        new = value(premise.goal.row)
        joined = new if joined is None else best.lattice.join(joined, new)
    if not step.premises:
        return False
    is_widened = any(isinstance(each, Note) for each in step.beside)
    whole = best.lattice.join(joined, mine) if is_widened else joined
    return bool((canonical(whole),) == (mine,))


def _check_that_it_ends(root: Step) -> None:
    """Raise if a proof contains itself."""
    above: set[Any] = set()
    done: set[int] = set()
    waiting: list[tuple[Step, bool]] = [(root, False)]
    while waiting:
        step, is_left = waiting.pop()
        if is_left:
            above.discard(step.goal)
            done.add(id(step))
            continue
        if id(step) in done:
            continue
        if step.goal in above:
            raise VerificationError(f"a proof of {step.goal.row!r:.200} contains itself")
        above.add(step.goal)
        waiting.append((step, True))
        waiting += [(premise, False) for premise in step.premises]
