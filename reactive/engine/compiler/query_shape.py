"""The shape of a query: what it is, but for constants, and for which tables of one kind it reads.

    orders.where(lambda o: o.customer == c)   for c = "ann", "bob", ...     one shape, a value each

Its form (`optimizer/plans/forms.py`), and which of the nodes, callables, tables and values are the
same.

Cost:  O(nodes and values).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import CellType, FunctionType
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Constant, Expr, Held, Lifted, Slot
from optimizer.lifting.kin import kin_of, with_values
from optimizer.plans.forms import fields_of, form_of, names_of, own_of, with_constants
from optimizer.record import record
from optimizer.rewriting.segments import is_low
from optimizer.traverse import with_inputs

MOST_NODES = 16
Place = tuple[int, Hashable]
"""A variable: which of the callables has it, and its name; or its place in an expression."""


@record
class Shaped:
    """A query as its shape, its tables and callables, and the values that may differ."""

    shape: Hashable
    home: type | None
    """The class that what is known of the shape goes with."""
    tables: tuple[plan.Table, ...]
    opaques: tuple[Opaque, ...]
    values: Mapping[Place, Any]


def shaped(written: plan.Node) -> Shaped | None:
    """The shape of a query; None if it is too large, or has none."""
    form = form_of(written)
    order = None if form is None else _inputs_first(written)
    if form is None or order is None or not is_low(written, form.levels):
        return None
    reader = _Reader()
    pattern = reader.pattern_of(order)
    same: dict[Any, int] = {}
    equal = [same.setdefault(value, len(same)) for value in reader.values.values()]
    return Shaped(
        (form, tuple(pattern), *equal),
        form.home,
        tuple(reader.tables),
        tuple(reader.opaques.values()),
        reader.values,
    )


def with_slots(
    written: plan.Node, held: Mapping[Place, Held]
) -> tuple[plan.Node, dict[int, Opaque]]:
    """A query of nodes of its own, with slots in the place of some values, to be read and not
    called; and its callables by their places, which tell nothing of who captured what."""
    made: dict[int, plan.Node] = {}
    maker = _Maker(held)
    for node in _inputs_first(written) or ():
        if isinstance(node, plan.Table):
            made[id(node)] = replace(node)
            continue
        inputs = [made[id(source)] for source in node.inputs()]
        own = {name: maker.made(getattr(node, name)) for name in names_of(node)}
        made[id(node)] = replace(with_inputs(node, inputs), **own)
    return made[id(written)], maker.places


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
        if len(found) > MOST_NODES:
            return None
    return list(found.values())


class _Reader:
    """Reads what nodes of some form share, and the values that may differ."""

    def __init__(self) -> None:
        self.tables: list[plan.Table] = []
        self.opaques: dict[int, Opaque] = {}
        self.values: dict[Place, Any] = {}
        self._places: dict[int, int] = {}
        self._count = 0

    def pattern_of(self, order: list[plan.Node]) -> list[int]:
        """Which of the nodes, tables and callables are the same."""
        found: list[int] = []
        nodes: dict[int, int] = {}
        for place, node in enumerate(order):
            nodes[id(node)] = place
            if isinstance(node, plan.Table):
                if node not in self.tables:
                    self.tables.append(node)
                found.append(self.tables.index(node))
                continue
            found.extend([nodes[id(source)] for source in node.inputs()])
            for function, constants in own_of(node).callables:
                if isinstance(function, Lifted):
                    found.extend(self._lifted(function, constants))
                else:
                    found.append(self._opaque(function))
        return found

    def _opaque(self, function: Opaque) -> int:
        known = self._places.get(id(function))
        if known is not None:
            return known
        place = self._noted(function)
        kin = kin_of(function)
        assert kin is not None
        for name, value in kin.values:
            self.values[place, name] = value
        return place

    def _noted(self, function: Opaque) -> int:
        place = self._places[id(function)] = self._count
        self._count += 1
        self.opaques[id(function)] = function
        return place

    def _lifted(self, function: Lifted, constants: Sequence[Constant]) -> Iterator[int]:
        place = self._count
        self._count += 1
        for origin in function.origins:
            known = self._places.get(id(origin))
            yield self._noted(origin) if known is None else known
        for number, each in enumerate(constants):
            self.values[place, number] = each.value


class _Maker:
    """Makes what nodes hold again, in the order in which `_Reader` reads it."""

    def __init__(self, held: Mapping[Place, Held]) -> None:
        self._held = held
        self.opaques: dict[int, Opaque] = {}
        self.places: dict[int, Opaque] = {}
        self._count = 0

    def made(self, value: Any) -> Any:
        kind = type(value)
        if kind is Opaque:
            return self._opaque(value)
        if kind is Lifted:
            return self._lifted(value)
        if kind is tuple:
            return tuple(map(self.made, value))
        names = None if value is None else fields_of(value)
        return value if names is None else self._record(value, names)

    def _record(self, value: Any, names: tuple[str, ...]) -> Any:
        old = {name: getattr(value, name) for name in names}
        new = {name: self.made(each) for name, each in old.items()}
        return value if all(new[name] is old[name] for name in old) else replace(value, **new)

    def _opaque(self, function: Opaque) -> Opaque:
        if id(function) not in self.opaques:
            here = {name: h for (of, name), h in self._held.items() if of == self._count}
            self._note(function, with_values(function, here))
        return self.opaques[id(function)]

    def _lifted(self, function: Lifted) -> Lifted:
        place = self._count
        self._count += 1
        origins = tuple(map(self._origin, function.origins))
        made = self._opaque(function.made) if isinstance(function.made, Opaque) else None
        here = {name: held for (of, name), held in self._held.items() if of == place}
        body = _slotted(function.body, here, count())
        return replace(function, body=body, origins=origins, made=made)

    def _origin(self, origin: Opaque) -> Opaque:
        if id(origin) not in self.opaques:
            self._note(origin, _bare(origin))
        return self.opaques[id(origin)]

    def _note(self, function: Opaque, made: Opaque) -> None:
        self.opaques[id(function)] = self.places[self._count] = made
        self._count += 1


# Expressions.


def _slotted(expr: Expr, held: Mapping[Hashable, Held], numbers: Iterator[int]) -> Expr:
    def slot(constant: Constant) -> Constant:
        value = held.get(next(numbers))
        return constant if value is None else Slot(value, constant.name)

    return with_constants(expr, slot)


def _bare(origin: Opaque) -> Opaque:
    """A callable that was read already, without what it captured, which may be a database."""
    function = origin.function
    if not isinstance(function, FunctionType):
        return replace(origin, captures=())
    cells = tuple(CellType() for _ in function.__code__.co_freevars)
    module = function.__globals__
    made = FunctionType(function.__code__, module, function.__name__, None, cells or None)
    return replace(origin, function=made, captures=())
