"""A plan as a tree: operators, their rows, and the callables that they call, by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from tests.random_queries.rows import Kind

_numbers = itertools.count(1)
NAMES = "xyzuvw"
"""Names of parameters, one per binding."""


REDUCERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "size": lambda key, rows: [len(rows)],
    "keys": lambda key, rows: [key] * min(len(rows), 2),
    "rows": lambda key, rows: iter(rows),
    "none": lambda key, rows: (),
}
"""Functions of the rows of a group; a plan has the name of one."""


class Fold(NamedTuple):
    """An aggregate, the callable for its values, and the name of its column."""

    name: str
    of: str | None
    skip_none: bool = False
    column: str | None = None


class Key(NamedTuple):
    """One of the keys of an order."""

    of: str
    descending: bool = False
    nulls: str | None = None


@dataclass(frozen=True, eq=False)
class Node:
    """An operator over others.

    `calls` names its callables by their role, and `more` holds its other arguments.
    """

    op: str
    inputs: tuple[Node, ...]
    kinds: tuple[Kind, ...]
    calls: Mapping[str, str] = field(default_factory=dict)
    more: Any = None
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def row(self) -> Kind:
        """The kind of its rows, where they are one binding of a join."""
        return self.kinds[0] if len(self.kinds) == 1 else self.kinds

    @cached_property
    def free(self) -> frozenset[int]:
        """The recursions that it reads and that are not in it."""
        found = frozenset[int]().union(*(source.free for source in self.inputs))
        match self.op:
            case "recursive":
                return found | {self.more[0]}
            case "fixpoint" | "best" | "lattice" | "iterate" | "each" | "until":
                return found - {self.more[0]}
        return found


def level() -> int:
    """Return a number that identifies a recursion."""
    return next(_numbers)


def every(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    for source in node.inputs:
        yield from every(source)


def called(node: Node) -> set[str]:
    """The callables of a plan."""
    found = set[str]()
    for each in every(node):
        found.update(each.calls.values())
        if each.op == "group":
            found.update(fold.of for fold in each.more if fold.of)
        if each.op in ("order", "top", "over"):
            found.update(key.of for key in each.more[0])
    return found


def shown(node: Node, indent: int = 0) -> list[str]:
    """A line per node."""
    of = " ".join(f"{part}={name}" for part, name in node.calls.items())
    more = "" if node.more is None else repr(node.more)
    lines = ["  " * indent + " ".join(filter(None, (node.op, more, of)))]
    for source in node.inputs:
        lines += shown(source, indent + 1)
    return lines
