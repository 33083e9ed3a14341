"""Captured sets and lists that are only searched: immutable from the lifting on.

    wanted = {"sale", "gift"}
    lambda e: e.kind in wanted          kind in frozenset({"sale", "gift"})

A relation keeps a copy of a small captured container, as it was when the relation was made. If the
callable only tests items by `in`, nothing changes the copy, and its items are constants for rules
and look-ups like those of a tuple.

Sound:  an expression that uses the container in another way, or keeps a part as code, may change
        it. A container that is no copy may change too: a large one, or one of a called function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from optimizer.expr import Apply, Constant, Expr, Operation, constant, transform, walk

FROZEN: dict[type, type] = {set: frozenset, list: tuple}
"""Containers with the immutable ones that find the same items."""


def freeze_containers(body: Expr, copied: Iterable[Any]) -> Expr:
    """Return an expression with immutable containers for the copied ones that it only searches."""
    copies = set(map(id, copied))
    copies &= _only_searched(body) if copies else set()

    def freeze(expr: Expr) -> Expr:
        match expr:
            case Operation("in" | "not in" as symbol, (item, Constant() as held)) if (
                held.kind in FROZEN and id(held.value) in copies
            ):
                return Operation(symbol, (item, constant(FROZEN[held.kind](held.value), held.name)))
            case _:
                return expr

    return transform(body, freeze) if copies else body


def _only_searched(body: Expr) -> set[int]:
    """Return the ids of the sets and lists that an expression uses by `in` and `not in` alone."""
    used: Counter[int] = Counter()
    searched: Counter[int] = Counter()
    for part in walk(body):
        match part:
            case Apply():
                return set()
            case Constant() if part.kind in FROZEN:
                used[id(part.value)] += 1
            case Operation("in" | "not in", (_, Constant() as held)) if held.kind in FROZEN:
                searched[id(held.value)] += 1
            case _:
                pass
    return {each for each, times in used.items() if times == searched[each]}
