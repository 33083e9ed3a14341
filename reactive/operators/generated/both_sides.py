"""The loops of a join of which sums are kept: over what changes on either side, and what it meets.

    for key, (times_left, left_sum0) in left:       what changes on the left, summed by key
        found = find_right(key, NOTHING)
        for row1, times_right in found:             the rows of the right
            ...
    for key, pair in right:
        ...

State:  none.
Cost:   O(keys that change + the rows, or groups, that they meet).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer.expressions.knowledge import Shapes
from optimizer.plans.factors import Factors, Sums
from reactive.codegen.body import Body, Chain, Plan
from reactive.codegen.functions import Values, build
from reactive.codegen.taker import Taker
from reactive.collections.index import NO_MATCH, NOTHING
from reactive.operators.generated.paths import PAIRED, pair_up

LEFT, RIGHT = "left", "right"


def pair_loops(
    names: tuple[str, ...],
    shapes: Shapes,
    factors: Factors,
    chain: Chain,
    taker: Callable[[Plan], Taker],
    *,
    counts: bool,
) -> tuple[Callable[..., Any], str]:
    """The loops over both sides, with a chain on the pairs, and their text.

    Parameters
    ----------
    names: of the bindings of a pair.
    counts: whether it is given groups, and gives the number of what it met as well.
    """
    values = Values()
    lines: list[str] = []
    for side in (LEFT, RIGHT):
        todo = _planned(shapes, factors, chain)
        takes = taker(todo)
        lines += _loop(todo, names, values, takes, factors, outer=side)
    given = "groups, before, " if counts else ""
    head = [f"def step({given}left, right, find_right, find_left):"]
    head += ["    pairs = 0"] * counts
    end = takes.epilogue()
    end = [*end[:-1], "    return out, pairs"] if counts else end
    text = "\n".join([*head, *takes.prologue(), *lines, *end, ""])
    if not counts:
        text = text.replace("            pairs += 1\n", "")
    values.bind({"NO_MATCH": NO_MATCH, "NOTHING": NOTHING, **PAIRED, **takes.bound})
    return build("step", text, values), text


def loop_of_one(
    names: tuple[str, ...],
    shapes: Shapes,
    factors: Factors,
    taker: Callable[[Plan], Taker],
    outer: str,
) -> Callable[..., Any]:
    """What a single change of a side makes of what it meets, if that is a single row or sum."""
    todo, values = _planned(shapes, factors, ()), Values()
    takes = taker(todo)
    lines = _loop(todo, names, values, takes, factors, outer=outer, alone=True)
    inner = RIGHT if outer == LEFT else LEFT
    text = "\n".join(
        [
            f"def step(groups, before, {outer}, find_{inner}):",
            *(line for line in lines if line.strip() != "pairs += 1"),
            *takes.epilogue(),
            "",
        ]
    )
    values.bind({"NO_MATCH": NO_MATCH, "NOTHING": NOTHING, **PAIRED, **takes.bound})
    return build("step", text, values)


def _planned(shapes: Shapes, factors: Factors, chain: Chain) -> Plan:
    """What is done with the pairs."""
    todo = Plan((), len(shapes), shapes)
    todo.is_input = False
    for test in factors.tests:
        todo.test(test)
    todo.extend(chain)
    return todo


def _loop(
    todo: Plan,
    names: tuple[str, ...],
    values: Values,
    taker: Taker,
    factors: Factors,
    *,
    outer: str,
    alone: bool = False,
) -> list[str]:
    """The loop over the delta of one side, and in it that over what it meets of the other.

    A change that is alone meets a single row, or a sum; otherwise it takes the loops for many.
    """
    inner = RIGHT if outer == LEFT else LEFT
    kept = {LEFT: factors.left, RIGHT: factors.right}
    bound = {LEFT: names[:-1], RIGHT: names[-1:]}
    spelled = [name for side, of in kept.items() if of for name in _spelled(side, of)]
    head = Body(values, (*names, *spelled, "times_left", "times_right"), todo.shapes, 2)
    head.expect(todo.acts, taker.exprs())
    of = kept[outer]
    if of is None:
        head.line(f"{_one(bound[outer])}, times_{outer} = pair")
        head.unpack(bound[outer])
        count = len(names) - 1
        head.hoist(frozenset(range(count)) if outer == LEFT else frozenset({count}))
        lines = [f"    for key, pair in {outer}:"]
    else:
        key = "(key, part)" if of.groups else "key"
        lines = [f"    for {key}, sums in {outer}:"]
        _unpack(head, outer, of, "part")
    lines += [f"        found = find_{inner}(key, NOTHING)"]
    lines += ["        if found is NOTHING or key is NO_MATCH: continue"]
    other = kept[inner]
    if alone and other is None:
        head.line("if found.__class__ is Weighted or found.__class__ is Rows: return None")
        head.line(f"{_one(bound[inner])}, times_{inner} = found, 1")
    elif alone:
        head.line("sums = found")
    elif other is None:
        pair_up(head, "found")
        head.line(f"for {_one(bound[inner])}, times_{inner} in found:")
    elif other.groups:
        head.line("for part, sums in found.items():")
    else:
        head.line("for sums in (found,):")
    body = head.nested(2 if alone else 3)
    if other is None:
        body.unpack(bound[inner])
    else:
        _unpack(body, inner, other, "part")
    body.line("pairs += 1")
    body.line("weight = times_left * times_right")
    body.write(todo.acts)
    taker.write(body, "weight")
    return [*lines, *head.lines, *body.lines]


def _one(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "row"


def _spelled(side: str, of: Sums) -> list[str]:
    """The variables of what is kept of a side."""
    groups = [f"{side}_group{i}" for i in range(len(of.groups))]
    return [*groups, *(f"{side}_sum{i}" for i in range(len(of.values)))]


def _unpack(body: Body, side: str, of: Sums, part: str) -> None:
    """Put what is kept of a side into variables."""
    sums = [f"times_{side}", *(f"{side}_sum{i}" for i in range(len(of.values)))]
    body.line(f"{', '.join(sums)}, = sums")
    groups = [f"{side}_group{i}" for i in range(len(of.groups))]
    if groups:
        body.line(f"{', '.join(groups)} = {part}")
