"""A smaller case with a difference: fewer views, commits, statements and operators."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.random_queries.nodes import Node, every
from tests.soak.cases import Case
from tests.soak.play import play


def failure(case: Case) -> str | None:
    """Return the error of a case, or None if it has none."""
    try:
        play(case)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def fails_alike(case: Case) -> Callable[[Case], str | None]:
    """Return a function that returns the error of a case if it begins as that of this case."""
    kind = _kind(failure(case))

    def fails(smaller: Case) -> str | None:
        found = failure(smaller)
        return found if _kind(found) == kind else None

    return fails


def _kind(told: str | None) -> str:
    """Return the beginning of an error, without the places and names in it."""
    return re.sub(r"^.*?(?=\b[A-Z]\w+Error|missing|$)", "", told or "", flags=re.DOTALL)[:40]


def shrunk(case: Case, seconds: float, fails: Callable[[Case], str | None] = failure) -> Case:
    """The smallest case that is found in some seconds, and fails in whatever way."""
    end, found = time.monotonic() + seconds, True
    while found:
        found = False
        for smaller in _smaller(case):
            if time.monotonic() > end:
                return case
            if fails(smaller):
                case, found = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases with less of one thing; those first that are much smaller."""
    numbers = [*case.steps]
    for size in (len(numbers) // 2, len(numbers) // 5, 1):
        for start in range(0, len(numbers), size or 1):
            gone = set(numbers[start : start + (size or 1)])
            yield replace(case, steps={n: s for n, s in case.steps.items() if n not in gone})
    for place in case.lives if len(case.lives) > 1 else ():
        yield replace(case, lives={p: life for p, life in case.lives.items() if p != place})
    yield from _with_shorter_steps(case)
    yield from _with_smaller_plans(case)
    if case.settings:
        for name in case.settings:
            settings = {n: value for n, value in case.settings.items() if n != name}
            yield replace(case, settings=settings)


def _with_shorter_steps(case: Case) -> Iterator[Case]:
    for number, step in case.steps.items():
        for place in reversed(range(len(step.statements))):
            fewer = [s for p, s in enumerate(step.statements) if p != place]
            yield replace(case, steps={**case.steps, number: replace(step, statements=fewer)})


def _with_smaller_plans(case: Case) -> Iterator[Case]:
    for place, life in case.lives.items():
        for node in every(life.node):
            for other in _in_place_of(node, life.node):
                lives = {**case.lives, place: replace(life, node=other)}
                yield replace(case, lives=lives)


def _in_place_of(node: Node, root: Node) -> Iterator[Node]:
    """Yield plans without the operators above a node, and with one of its inputs in its place."""
    if node is not root and not node.free:
        yield node
    for source in node.inputs:
        if source.kinds == node.kinds and source.free <= node.free:
            yield _replaced(root, node, source)


def _replaced(root: Node, old: Node, new: Node) -> Node:
    if root is old:
        return new
    inputs = tuple(_replaced(source, old, new) for source in root.inputs)
    if all(a is b for a, b in zip(inputs, root.inputs, strict=True)):
        return root
    return Node(root.op, inputs, root.kinds, root.calls, root.more)
