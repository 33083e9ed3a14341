"""Walk and rebuild plans: merge equal parts, replace relations, change callables.

Plans are graphs without cycles and may be deep; nothing here recurses into inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from itertools import islice
from operator import is_
from typing import Any, Protocol, TypeVar, cast

from optimizer import plan
from optimizer.expr import Function, Lifted, has_subquery
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.facts import Tree
from optimizer.plans.properties import free, nodes, once, shapes

T = TypeVar("T")
Rule = Callable[[plan.Node], plan.Node]
"""A function from a plan node to a node with the same rows; itself where it does not apply."""


class Interned:
    """One node for all equal nodes, so that equal plans are the same object."""

    def __init__(self) -> None:
        self._known: dict[Hashable, plan.Node] = {}
        self._ids: set[int] = set()

    def one(self, node: plan.Node) -> plan.Node:
        """Return the node that stands for all nodes equal to this one; its inputs do already."""
        if id(node) in self._ids:
            return node
        signature: list[Any] = [type(node)]
        for name in _field_names(node):
            value = getattr(node, name)
            if isinstance(value, Tree):  # as `nodes_in`, without a call for each field
                value = (id(value),)
            elif value.__class__ is tuple and value and isinstance(value[0], Tree):
                value = tuple(map(id, value))
            signature.append(value)
        found = self._known.setdefault(tuple(signature), node)
        self._ids.add(id(found))
        return found

    def all(self, root: plan.Node) -> plan.Node:
        """Return the plan, with every node replaced by the one for its equals.

        Cost: O(nodes that are not such nodes already); all below such a node are.
        """
        made: dict[int, plan.Node] = {}
        waiting = [root]
        while waiting:
            node = waiting[-1]
            inputs = () if id(node) in self._ids else node.inputs()
            missing = [source for source in inputs if id(source) not in made]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            known = id(node) in self._ids
            made[id(node)] = (
                node if known else self.one(with_inputs(node, [made[id(s)] for s in inputs]))
            )
        return made[id(root)]


def rebuilt(root: plan.Node, change: Callable[[plan.Node], plan.Node]) -> plan.Node:
    """Return the plan with every node changed, inputs first."""
    made: dict[int, plan.Node] = {}
    for node in nodes(root):
        inputs = [made[id(source)] for source in node.inputs()]
        made[id(node)] = change(with_inputs(node, inputs))
    return made[id(root)]


def has_subqueries(node: plan.Node) -> bool:
    """Return True if a callable of the node was lifted with sub-queries in it."""
    return any(isinstance(f, Lifted) and has_subquery(f.body) for f in functions(node))


def relations_read(root: plan.Node, level: Any) -> list[plan.Recursive]:
    """Return the recursive relations of a level that a plan reads and does not define.

    Definitions that are not inside each other when they are written may have the same level.
    """
    every = nodes(root, until=lambda node: level not in free(node))
    return [n for n in every if isinstance(n, plan.Recursive) and n.level == level]


class Beside(Protocol):
    """Plans that belong to a node beside its inputs, and change with these."""

    def parts(self, node: plan.Node) -> tuple[plan.Node, ...]: ...

    def carry(
        self, node: plan.Node, made: plan.Node, part: Callable[[plan.Node], plan.Node]
    ) -> None:
        """Copy the plans of a node to the node that was made of it, each changed by `part`."""
        ...


def substituted(
    root: plan.Node, level: Any, value: Callable[[plan.Recursive], plan.Node]
) -> plan.Node:
    """Replace the recursive relations of a level, where they are not defined."""
    return all_substituted((root,), level, value)[0]


def all_substituted(
    roots: Sequence[plan.Node],
    level: Any,
    value: Callable[[plan.Recursive], plan.Node],
    beside: Beside | None = None,
) -> list[plan.Node]:
    """Replace the recursive relations of a level in several plans; shared parts stay shared."""
    made: dict[int, plan.Node] = {}
    waiting = list(roots)
    while waiting:
        node = waiting[-1]
        if id(node) in made:
            waiting.pop()
            continue
        is_open = level in free(node)
        below = node.inputs() if is_open else ()
        if is_open and beside is not None:
            below += beside.parts(node)
        missing = [s for s in below if id(s) not in made]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        if not is_open:
            made[id(node)] = node
        elif isinstance(node, plan.Recursive):
            made[id(node)] = value(node)
        else:
            found = with_inputs(node, [made[id(source)] for source in node.inputs()])
            made[id(node)] = found
            if beside is not None and found is not node:
                beside.carry(node, found, lambda part: made[id(part)])
    return [made[id(root)] for root in roots]


def unrolled(node: plan.Iterate) -> tuple[plan.Node, ...]:
    """Return an iteration written out: its bodies over its bodies over ... over its starts."""
    rounds = node.starts
    assert node.times is not None
    for _ in range(node.times):
        rounds = tuple([_body_over_rows(node, body, rounds) for body in node.bodies])
        rounds = tuple(map(_tolerant, rounds, node.tolerances or (None,) * len(rounds)))
    return rounds


Keeps = Callable[[plan.Iterate], bool]


def without_iterations(root: plan.Node, keeps: Keeps = lambda node: False) -> plan.Node:
    """Write out iterations, except iterations that `keeps` accepts or without number of rounds."""
    written: dict[int, tuple[plan.Node, ...]] = {}

    def unroll_node(node: plan.Node) -> plan.Node:
        match node:
            case plan.Component(plan.Iterate() as iterate, index) if id(iterate) in written:
                return written[id(iterate)][index]
            case plan.Iterate(times=int()) if not keeps(node):
                found = unrolled(node)
                if len(found) == 1:
                    return found[0]
                written[id(node)] = found
        return node

    return rebuilt(root, unroll_node)


def without_views(root: plan.Node) -> plan.Node:
    """Return the plan without views, so that rules may reach through them."""
    return rebuilt(root, lambda n: n.input if isinstance(n, plan.View) else n)


def _body_over_rows(node: plan.Iterate, body: plan.Node, rows: Sequence[plan.Node]) -> plan.Node:
    """Return a body of an iteration with `rows` in place of its relations."""

    def value(relation: plan.Recursive) -> plan.Node:
        return rows[relation.index] if relation.index < len(rows) else relation

    return substituted(body, node.level, value)


def _tolerant(rows: plan.Node, tolerance: plan.Tolerance | None) -> plan.Node:
    return rows if tolerance is None else plan.Tolerate(rows, tolerance)


def has_components(node: plan.Node) -> bool:
    """Return True if a node is read through its components, which no rule reaches through."""
    return isinstance(node, plan.Fixpoint | plan.Iterate) and len(node.names) > 1


def share_input(node: plan.Node) -> plan.Node:
    """Return an input that several nodes read from now on, marked as `Shared`."""
    is_one = isinstance(node, plan.Shared) or not node.inputs() or has_components(node)
    return node if is_one else plan.Shared(node)


def with_inputs(node: plan.Node, inputs: Iterable[plan.Node]) -> plan.Node:
    """Return the node over other inputs; itself if they are the same."""
    inputs = tuple(inputs)
    if all(map(is_, inputs, node.inputs())):
        return node
    values: list[Any] = []
    given = iter(inputs)
    for name in _field_names(node):
        value = getattr(node, name)
        if isinstance(value, Tree):
            value = next(given)
        elif value.__class__ is tuple and value and isinstance(value[0], Tree):
            value = tuple(islice(given, len(value)))
        values.append(value)
    return type(node)(*values)


def functions(node: plan.Node) -> list[Function]:
    """Return the callables of a node, in the order of its facts."""
    return once(node, "functions", _functions) if node.facts.calls else []


def _functions(node: plan.Node) -> list[Function]:
    """Return the callables of a node, in the order of its facts."""
    found: list[Function] = []
    for calls in node.facts.calls:
        found += [function for function, _ in _at(node, calls.names)]
    return found


def functions_of_rows(node: plan.Node) -> list[Function]:
    """Return the callables of a node that are called for each row."""
    every = [calls for calls in node.facts.calls if calls.of_rows]
    return [function for calls in every for function, _ in _at(node, calls.names)]


def called(node: plan.Node, of: Sequence[Shapes] | None = None) -> list[tuple[Function, Shapes]]:
    """Return the callables of a node, with the shapes of their arguments.

    With `of`, with other facts about the bindings of its inputs.
    """
    if not node.facts.calls:
        return []
    if of is None:
        of = [shapes(source) for source in node.inputs()]
    return [
        (function, calls.given(of, place))
        for calls in node.facts.calls
        for function, place in _at(node, calls.names)
    ]


def read_functions(*nodes: plan.Node) -> list[Lifted]:
    """Return the callables of some nodes that were lifted."""
    return [f for node in nodes for f in functions(node) if isinstance(f, Lifted)]


def with_functions(node: plan.Node, change: Callable[[Function], Function]) -> plan.Node:
    """Return the node with other callables; itself if they are the same."""
    old = functions(node)
    return _with_new_functions(node, old, [change(function) for function in old]) if old else node


def with_called(node: plan.Node, change: Callable[[Function, Shapes], Function]) -> plan.Node:
    """Return the node with other callables; `change` also gets the shapes of the arguments."""
    old = called(node)
    new = [change(function, of) for function, of in old]
    return _with_new_functions(node, [function for function, _ in old], new) if old else node


def _with_new_functions(node: plan.Node, old: list[Function], new: list[Function]) -> plan.Node:
    """Return the node with new callables in place of the old ones, in the order of its facts.

    Return `node` itself if all are the same objects.
    """
    if all(map(is_, new, old)):
        return node
    given = iter(new)
    for calls in node.facts.calls:
        node = _change_at_path(node, calls.names, lambda _: next(given))
    return node


def _at(node: plan.Node, names: Sequence[str]) -> list[tuple[Function, int]]:
    """Return the callables at a path of fields, each with its place in a tuple on the path."""
    holders: list[tuple[Any, int]] = [(node, 0)]
    for name in names[:-1]:
        below: list[tuple[Any, int]] = []
        for holder, place in holders:
            value = getattr(holder, name)
            if value.__class__ is tuple:
                below += [(each, number) for number, each in enumerate(value) if each is not None]
            elif value is not None:
                below.append((value, place))
        holders = below
    found: list[tuple[Function, int]] = []
    for holder, place in holders:
        value = getattr(holder, names[-1])
        if value.__class__ is tuple:
            found += [(each, place) for each in value]
        elif value is not None:
            found.append((value, place))
    return found


def _change_at_path(thing: T, names: Sequence[str], change: Callable[[Function], Function]) -> T:
    """Return a record with other callables at a path of fields; itself if they are the same."""
    value, rest = getattr(thing, names[0]), names[1:]
    new: Any
    if value is None:
        return thing
    if not rest and value.__class__ is tuple:
        new = tuple([change(each) for each in value])
        new = value if all(map(is_, new, value)) else new
    elif not rest:
        new = change(value)
    elif value.__class__ is tuple:
        new = tuple([v and _change_at_path(v, rest, change) for v in value])
        new = value if all(map(is_, new, value)) else new
    else:
        new = _change_at_path(value, rest, change)
    return thing if new is value else replace(thing, **{names[0]: new})  # type: ignore[type-var]


def _field_names(node: plan.Node) -> tuple[str, ...]:
    """Return the names of a node's fields."""
    return _names_of(cast(Hashable, type(node)))


@lru_cache(maxsize=64)
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.init)
