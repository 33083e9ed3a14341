"""What all trees of nodes have in common: how they are compared, hashed and shown at any depth.

Those that dataclasses generate call themselves for each input, which Python allows a thousand deep.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import field, fields
from functools import lru_cache
from typing import Any

from optimizer.record import record

_ITERATIVE = ("__eq__", "__hash__", "__repr__", "__getstate__")


@record
class Tree:
    """Base of nodes whose inputs are nodes: the fields that hold one, or a tuple of them.

    Fields that are not compared are no part of it. `known` is what has been found out about a node
    so far.
    """

    known: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        for name in _ITERATIVE:  # dataclass methods recurse into inputs, and keep what is known
            setattr(cls, name, getattr(Tree, name))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Tree) and _are_equal(self, other))

    def __hash__(self) -> int:
        waiting = [] if "hash" in self.known else [self]
        while waiting:
            node = waiting[-1]
            missing = [source for source in node.inputs() if "hash" not in source.known]
            waiting.extend(missing)
            if not missing:
                waiting.pop()
                inputs = [source.known["hash"] for source in node.inputs()]
                node.known["hash"] = hash((type(node), *inputs, *own(node)))
        found: int = self.known["hash"]
        return found

    def __repr__(self) -> str:
        waiting: list[Any] = [self]
        shown: list[str] = []
        while waiting:
            value = waiting.pop()
            shown.append(value if isinstance(value, str) else f"{type(value).__name__}(")
            if not isinstance(value, str):
                waiting.extend(reversed([*_spelled(value), ")"]))
        return "".join(shown)

    def __getstate__(self) -> list[Any]:
        """The fields as dataclasses restore them. What is known is so in this process: hashes."""
        return [{} if f.name == "known" else getattr(self, f.name) for f in fields(self)]

    def inputs(self) -> tuple[Any, ...]:
        """The nodes whose rows this one reads, left to right."""
        if "inputs" in self.known:
            return self.known["inputs"]  # type: ignore[no-any-return]
        kind: Any = type(self)
        found: list[Any] = []
        for name in _compared(kind):
            value = getattr(self, name)
            if isinstance(value, Tree):
                found.append(value)
            elif value.__class__ is tuple and value and isinstance(value[0], Tree):
                found += value
        inputs = self.known["inputs"] = tuple(found)
        return inputs


class Hashed:
    """A value that is hashed once: it is looked up by more often than it is made."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Hashable) -> None:
        self.value = value
        self._hash: int | None = None

    def __hash__(self) -> int:
        found = self._hash
        if found is None:
            found = self._hash = hash(self.value)
        return found

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Hashed) or hash(self) != hash(other):
            return False
        return bool(self.value == other.value)

    def __repr__(self) -> str:
        return repr(self.value)


def nodes_in(value: Any) -> tuple[Any, ...]:
    """The nodes in a field of a node: the field itself, the nodes of a tuple, or none."""
    if isinstance(value, Tree):
        return (value,)
    is_several = value.__class__ is tuple and value and isinstance(value[0], Tree)
    return value if is_several else ()


@lru_cache(maxsize=64)
def _compared(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.compare)


def own(node: Tree) -> tuple[Any, ...]:
    """What makes a node what it is, except its inputs: of these, how many each field has."""
    known: tuple[Any, ...] | None = node.known.get("own values")
    if known is None:
        kind: Any = type(node)
        values = [getattr(node, name) for name in _compared(kind)]
        known = tuple([len(found) if (found := nodes_in(value)) else value for value in values])
        node.known["own values"] = known
    return known


def _are_equal(a: Tree, b: Tree) -> bool:
    asked: set[tuple[int, int]] = set()
    waiting = [(a, b)]
    while waiting:
        a, b = waiting.pop()
        if a is b or (id(a), id(b)) in asked:
            continue
        asked.add((id(a), id(b)))
        if type(a) is not type(b) or own(a) != own(b):
            return False
        waiting.extend(zip(a.inputs(), b.inputs(), strict=True))
    return True


def _spelled(node: Tree) -> Iterator[Any]:
    """The fields of a node as they are written, with nodes in the place of their texts."""
    between = ""
    for each in fields(node):
        if each.repr:
            value = getattr(node, each.name)
            yield f"{between}{each.name}="
            between = ", "
            if value.__class__ is tuple and nodes_in(value):
                yield "("
                for number, part in enumerate(value):
                    yield from (", ", part) if number else (part,)
                yield ",)" if len(value) == 1 else ")"
            else:
                yield value if isinstance(value, Tree) else repr(value)
