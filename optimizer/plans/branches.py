"""Refuse a recursion whose branches give rows of different classes.

    reach  <-  edges                           rows of Edge
    reach  <-  select (p.src, e.dst) ...       tuples

The step reads its own rows by the fields of one class: rows of the other one would raise in the
second round of some commit. Classes may share a base other than `tuple`, as those of a union do.
"""

from __future__ import annotations

from collections.abc import Iterator

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.check_reads import believed_shapes


def check_branches(node: plan.Fixpoint) -> None:
    """Raise `PlanError` if two branches of a relation give rows of different classes."""
    for name, body in zip(node.names, node.bodies, strict=True):
        found: dict[type, None] = {}
        for branch in _branches(body):
            shape = believed_shapes(branch)[0]
            if shape is not None:
                found[tuple if isinstance(shape, tuple) else shape] = None
        first, *others = found or (None,)
        for other in others:
            if first is not None and not _are_related(first, other):
                raise PlanError(
                    f"fixpoint {name!r} has rows of {_text(first)} and of {_text(other)}\n"
                    "  select() makes rows of one class: the step reads all rows alike"
                )


def _branches(body: plan.Node) -> Iterator[plan.Node]:
    """Iterate over the nodes whose rows are together the rows of a body, of one binding."""
    waiting = [body]
    while waiting:
        node = waiting.pop()
        match node:
            case plan.Union(left, right) | plan.UnionAll(left, right):
                waiting += [right, left]
            case plan.Distinct(source) | plan.Where(source):
                waiting.append(source)
            case _ if len(believed_shapes(node)) == 1:
                yield node


def _are_related(one: type, other: type) -> bool:
    """Return True if a class is a base of the other, or both have a base of the user's."""
    if issubclass(one, other) or issubclass(other, one):
        return one is other or tuple not in (one, other)
    shared = set(one.__mro__) & set(other.__mro__)
    return any(base.__module__ not in ("builtins", "typing", "abc") for base in shared)


def _text(kind: type) -> str:
    return "tuple" if kind is tuple else kind.__qualname__
