"""The shape of a query: what it is, but for the constants that its callables captured.

    orders.where(lambda o: o.customer == c)   for c = "ann", "bob", ...     one shape, a value each

Of a captured variable, or a default, that is a plain value, the shape has the class alone; all else
is part of it by value. So is which of the values are equal.

Cost:  O(nodes and captured variables).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from types import CellType, FunctionType
from typing import Any

from optimizer import plan
from optimizer.callables.captures import Capture, defaults
from optimizer.callables.opaque import Opaque
from optimizer.expr import Function
from optimizer.record import record
from optimizer.traverse import functions, rebuilt, with_functions

MOST_NODES = 16
KINDS = frozenset({int, str, float, bytes})
"""Classes of values that may differ between queries of one shape."""
PARTS = 5
"""Of the identity of a function (`opaque.py`)."""
UNSHAPED = (
    *(plan.View, plan.Known, plan.Settled, plan.Recursive),
    *(plan.Fixpoint, plan.Component, plan.Iterate),
)
Slot = tuple[int, str]
"""A variable: which of the callables has it, and its name."""


@record
class Shaped:
    """A query as its shape, its callables, and the values of the variables that may differ."""

    shape: Hashable
    opaques: tuple[Opaque, ...]
    values: Mapping[Slot, Any]


def shaped(written: plan.Node) -> Shaped | None:
    """The shape of a query; None if it is too large, or captures what has no lasting meaning."""
    order = _inputs_first(written)
    if order is None:
        return None
    places = {id(node): place for place, node in enumerate(order)}
    opaques: list[Opaque] = []
    values: dict[Slot, Any] = {}
    key: list[Hashable] = []
    for node in order:
        inputs = node.inputs()
        if not inputs:
            key.append(node)
            continue
        meant: dict[int, Hashable] = {}
        for function in functions(node):
            if isinstance(function, Opaque):
                identity = _identity(function, len(opaques), values)
                if identity is None:
                    return None
                meant[id(function)] = identity
                opaques.append(function)
        own = [getattr(node, name) for name in _names_of(node)]
        key.append((type(node), *[places[id(source)] for source in inputs]))
        key.extend([meant.get(id(value), value) for value in own])
    same: dict[Any, int] = {}
    pattern = tuple([same.setdefault(value, len(same)) for value in values.values()])
    return Shaped((*key, pattern), tuple(opaques), values)


def with_values(
    written: plan.Node, given: Shaped, values: Mapping[Slot, Any]
) -> tuple[plan.Node, tuple[Opaque, ...]]:
    """The query with other values of some variables, and its callables: to be read, not called."""
    made = {
        id(opaque): _with(opaque, {name: v for (of, name), v in values.items() if of == place})
        for place, opaque in enumerate(given.opaques)
    }

    def changed(function: Function) -> Function:
        return made.get(id(function), function)

    changed_plan = rebuilt(written, lambda node: with_functions(node, changed))
    return changed_plan, tuple([made[id(opaque)] for opaque in given.opaques])


def _inputs_first(written: plan.Node) -> list[plan.Node] | None:
    """The nodes of a query, if they are few."""
    found: dict[int, plan.Node] = {}
    waiting = [written]
    while waiting:
        node = waiting[-1]
        missing = [source for source in node.inputs() if id(source) not in found]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        found[id(node)] = node
        if len(found) > MOST_NODES or isinstance(node, UNSHAPED):
            return None
    return list(found.values())


def _names_of(node: Any) -> tuple[str, ...]:
    kind: Any = type(node)
    return _names(kind)


@lru_cache(maxsize=64)
def _names(kind: Any) -> tuple[str, ...]:
    """The fields that make a node what it is, except those with inputs alone."""
    hints = {each.name: str(each.type) for each in fields(kind) if each.init and each.compare}
    return tuple(name for name, hint in hints.items() if hint != "Node")


def _identity(function: Opaque, place: int, values: dict[Slot, Any]) -> Hashable | None:
    """What a callable is but for plain values of its variables, which are put aside."""
    identity = function.identity
    if type(identity) is not tuple or len(identity) != PARTS:
        return None if _has_no_meaning(identity) else identity
    code, module, fixed, captured, unset = identity
    parts: list[Hashable] = [code, module, unset]
    if fixed:
        given = defaults(function.function)  # type: ignore[arg-type]
        for name, meaning in fixed:
            parts.append(_part(name, meaning, given[name], place, values))
    for (name, meaning), capture in zip(captured, function.captures, strict=True):
        parts.append(_part(name, meaning, _plain(capture), place, values))
    return None if None in parts else tuple(parts)


def _part(
    name: str, meaning: Any, value: Any, place: int, values: dict[Slot, Any]
) -> Hashable | None:
    if type(value) in KINDS and value == value and (place, name) not in values:
        values[place, name] = value
        return (name, type(value))
    return None if _has_no_meaning(meaning) else (name, meaning)


def _plain(capture: Capture) -> Any:
    """What a variable held; None where the callable sees a change of it."""
    return None if capture.is_live else capture.frozen


def _has_no_meaning(meaning: Any) -> bool:
    """Whether it stands for an object of which nothing is known."""
    if type(meaning) is tuple:
        return any(map(_has_no_meaning, meaning))
    return type(meaning) is object


def _with(opaque: Opaque, values: Mapping[str, Any]) -> Opaque:
    """A callable with other values of some variables."""
    function = opaque.function
    if not values or not isinstance(function, FunctionType):
        return replace(opaque)
    cells = [
        CellType(values[name]) if name in values else cell
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        )
    ]
    names = {name: v for name, v in values.items() if name in function.__globals__}
    module = {**function.__globals__, **names} if names else function.__globals__
    made = FunctionType(function.__code__, module, function.__name__, None, tuple(cells) or None)
    fixed = {name: values.get(name, value) for name, value in defaults(function).items()}
    positional = len(function.__defaults__ or ())
    made.__defaults__ = tuple(fixed.values())[:positional] or None
    made.__kwdefaults__ = {name: fixed[name] for name in function.__kwdefaults__ or ()} or None
    captures = tuple(_held(capture, values) for capture in opaque.captures)
    identity = (opaque.identity, tuple(values.items()))
    return replace(opaque, function=made, captures=captures, identity=identity)


def _held(capture: Capture, values: Mapping[str, Any]) -> Capture:
    if capture.is_live or capture.name not in values:
        return capture
    value = values[capture.name]
    return replace(capture, original=value, frozen=value, witness=value)
