"""A join, what is left of its predicate, and the chain above it, as two loops.

    for key, (row, weight) in left:                 dL join (R + dR)
        found = get(key)
        for other in found:
            ...                                     the rest of the predicate, the chain above
            append((result, weight))
    for key, (other, weight) in right:              L join dR
        ...

Fields of the row that the outer loop has are read before the inner loop begins. What takes the
pairs is written into both loops: a list, or the groups of an aggregate (`grouped.py`).

Where pairs may come and go in one commit, and while there are suspects, the plain join does it.

State:  none of its own.
Cost:   O(|dL| + |dR| + matches).
Source: [dbsp] bilinear operators; [i3ql] join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer.expr import Lifted
from optimizer.expressions.knowledge import Shapes
from optimizer.traverse import read_functions
from reactive.codegen.body import Body, Chain, Plan, row_names
from reactive.codegen.functions import Values, build
from reactive.codegen.taker import Taker
from reactive.collections.index import (
    NO_MATCH,
    NOTHING,
    KeyedBatch,
    KeyedPair,
    Rows,
    Weighted,
)
from reactive.collections.zset import Pair
from reactive.operators.index_by import IndexBy
from reactive.runtime.interrupts import reraise_asynchronous


class Pairing:
    """The two indexes of a join, and when its loops may run."""

    __slots__ = ("_finds", "left", "right")

    def __init__(self, left: IndexBy, right: IndexBy) -> None:
        self.left = left
        self.right = right
        self._finds = right.index.find, left.index.find

    def look_ups(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
        """How to find the partners of a left and of a right row; None if the plain join must."""
        if self.left.odd or self.right.odd:
            return None
        if left and right:
            if _removes(left):
                return None
            return self.right.index.find, self.left.index.before(left)
        return self._finds


def _removes(delta: Sequence[KeyedPair]) -> bool:
    if type(delta) is KeyedBatch:
        return delta.weight < 0
    return any(pair[1] < 0 for _, pair in delta)


class Joined:
    """Runs the loops into a list; when they may not run, or raise, the plain operators."""

    __slots__ = ("_carefully", "_contents", "_loop", "_pairing", "source", "touched")

    def __init__(
        self,
        pairing: Pairing,
        loop: Callable[..., Any],
        carefully: Callable[..., Sequence[Pair]],
        contents: Callable[[], Sequence[Pair]],
        source: str,
    ) -> None:
        self._pairing = pairing
        self._loop = loop
        self._carefully = carefully
        self._contents = contents
        self.source = source
        self.touched = 0

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Pair]:
        self.touched += len(left) + len(right)
        found = self._pairing.look_ups(left, right)
        if found is None:
            return self._carefully(left, right)
        out: list[Pair] | None
        try:
            out, pairs = self._loop(None, None, left, right, *found)
        except Exception as error:  # the plain operators raise it, or see that it does not count
            reraise_asynchronous(error)
            out, pairs = None, 0
        self.touched += pairs
        return self._carefully(left, right) if out is None else out

    def contents(self) -> Sequence[Pair]:
        return self._contents()


def join_loops(
    bindings: int,
    shapes: Shapes,
    rest: Lifted | None,
    chain: Chain,
    taker: Callable[[Plan], Taker],
) -> tuple[Callable[..., Any], str]:
    """The function, and its text. `groups` and `before` are for a taker that has groups."""
    values = Values()
    called = [*([] if rest is None else [rest]), *read_functions(*chain)]
    names = row_names(called, bindings + 1)
    lines: list[str] = []
    for is_left in (True, False):
        todo = Plan((), bindings + 1, shapes)
        todo.is_input = False  # a pair has to be made
        if rest is not None:
            todo.test(rest.body)
        todo.extend(chain)
        takes = taker(todo)
        lines += _loop(todo, names, values, takes, is_left=is_left)
    head = "def step(groups, before, left, right, find_right, find_left):"
    lines = [head, "    pairs = 0", *takes.prologue(), *lines, *takes.epilogue()]
    text = "\n".join([*lines[:-1], "    return out, pairs", ""])
    values.bind({"NO_MATCH": NO_MATCH, "NOTHING": NOTHING, "Rows": Rows, "Weighted": Weighted})
    values.bind(takes.bound)
    return build("step", text, values), text


def _loop(
    todo: Plan, names: tuple[str, ...], values: Values, taker: Taker, *, is_left: bool
) -> list[str]:
    """The loop over the delta of one side, and in it those over the rows of the other."""
    outer, inner = (names[:-1], names[-1:]) if is_left else (names[-1:], names[:-1])
    delta, find = ("left", "find_right") if is_left else ("right", "find_left")
    lines = [f"    for key, pair in {delta}:", f"        found = {find}(key, NOTHING)"]
    lines += ["        if found is NOTHING or key is NO_MATCH: continue"]
    head = Body(values, names, todo.shapes, 2)
    head.expect(todo.acts, taker.exprs())
    head.line(f"{outer[0] if len(outer) == 1 else 'row'}, weight = pair")
    head.unpack(outer)
    count = len(names) - 1
    head.hoist(frozenset(range(count)) if is_left else frozenset({count}))
    head.line("if found.__class__ is Weighted:")
    lines += head.lines
    one = inner[0] if len(inner) == 1 else "row"
    lines.append("            pairs += len(found)")
    lines.append(f"            for {one}, times in found.values():")
    lines.append("                times *= weight")
    lines += _inner(head, todo, inner, taker, "times")
    lines.append("        else:")
    lines.append("            if found.__class__ is not Rows: found = (found,)")
    lines.append("            pairs += len(found)")
    lines.append(f"            for {one} in found:")
    return lines + _inner(head, todo, inner, taker, "weight")


def _inner(head: Body, todo: Plan, inner: Sequence[str], taker: Taker, weight: str) -> list[str]:
    body = head.nested(4)
    body.unpack(inner)
    body.write(todo.acts)
    taker.write(body, weight)
    return body.lines
