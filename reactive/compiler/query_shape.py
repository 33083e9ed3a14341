"""The shape of a query: what it is, but for constants, and for which tables of one kind it reads.

    orders.where(lambda o: o.customer == c)   for c = "ann", "bob", ...     one shape, a value each

Of a captured variable, a default or a constant of an expression that is a plain value, the shape
has the class alone; all else is part of it by value. So is which of the values, and which of the
tables, are equal.

A shape holds no code of which it has the `id`: who keeps it keeps the codes too.

Cost:  O(nodes, captured variables and parts of expressions that came as such).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from itertools import count
from types import CellType, FunctionType, ModuleType
from typing import Any

from optimizer import plan
from optimizer.callables.captures import REFLECTIVE, Capture, defaults, global_names
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    LEAVES,
    Apply,
    Constant,
    Expr,
    Held,
    Item,
    Lifted,
    Slot,
    Subquery,
    parts,
    rebuilt,
)
from optimizer.record import record
from optimizer.rewriting.segments import is_low
from optimizer.traverse import with_inputs

MOST_NODES = 16
KINDS = frozenset({int, str, float, bytes})
"""Classes of values that may differ between queries of one shape."""
PARTS = 5
"""Of the identity of a function (`opaque.py`)."""
UNSHAPED = (
    *(plan.View, plan.Known, plan.Settled, plan.Recursive, plan.Given, plan.Values),
    *(plan.Fixpoint, plan.Component, plan.Iterate),
)
Place = tuple[int, Hashable]
"""A variable: which of the callables has it, and its name; or its place in an expression."""


class Shapeless(Exception):
    """A query captures what has no lasting meaning, or has what is not looked into."""


@record
class Shaped:
    """A query as its shape, its tables and callables, and the values that may differ."""

    shape: Hashable
    tables: tuple[plan.Table, ...]
    opaques: tuple[Opaque, ...]
    values: Mapping[Place, Any]

    @property
    def codes(self) -> tuple[Any, ...]:
        """Those of the callables."""
        return tuple(getattr(each.function, "__code__", None) for each in self.opaques)


def shaped(written: plan.Node) -> Shaped | None:
    """The shape of a query; None if it is too large, or has none."""
    order = _inputs_first(written)
    if order is None or not is_low(written):
        return None
    reader = _Reader()
    try:
        key = tuple(reader.key_of(order))
        hash(key)
    except (Shapeless, TypeError):  # what has no hash may differ from one time to the next
        return None
    same: dict[Any, int] = {}
    pattern = [same.setdefault(value, len(same)) for value in reader.values.values()]
    return Shaped(
        (*key, *pattern), tuple(reader.tables), tuple(reader.opaques.values()), reader.values
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
        own = {name: maker.made(getattr(node, name)) for name in _names_of(node)}
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
        if len(found) > MOST_NODES or isinstance(node, UNSHAPED):
            return None
    return list(found.values())


class _Reader:
    """Reads what the nodes of a query are, and puts aside what may differ."""

    def __init__(self) -> None:
        self.tables: list[plan.Table] = []
        self.opaques: dict[int, Opaque] = {}
        self.values: dict[Place, Any] = {}
        self._places: dict[int, int] = {}
        self._count = 0

    def key_of(self, order: list[plan.Node]) -> list[Hashable]:
        found: list[Hashable] = []
        nodes: dict[int, int] = {}
        for place, node in enumerate(order):
            nodes[id(node)] = place
            if isinstance(node, plan.Table):
                found.append(self._table(node))
                continue
            found.append((type(node), *[nodes[id(source)] for source in node.inputs()]))
            found.extend([self.key(getattr(node, name)) for name in _names_of(node)])
        return found

    def key(self, value: Any) -> Hashable:
        """What a field of a node is, but for values that may differ."""
        kind = type(value)
        if kind is Opaque:
            return self._opaque(value)
        if kind is Lifted:
            return self._lifted(value)
        if kind is tuple:
            return (tuple, *map(self.key, value))
        if is_dataclass(value) and not isinstance(value, type):
            return (kind, *[self.key(getattr(value, name)) for name in _fields_of(value)])
        if callable(value) and not isinstance(value, type):
            raise Shapeless
        return (kind, value)

    def _table(self, node: plan.Table) -> Hashable:
        if node not in self.tables:
            self.tables.append(node)
        key = None if node.key is None else node.key.identity
        if _has_no_meaning(key):
            raise Shapeless
        return (plan.Table, self.tables.index(node), key, node.stored, node.row_type)

    def _opaque(self, function: Opaque) -> Hashable:
        """What a callable is but for plain values of its variables, which are put aside."""
        known = self._places.get(id(function))
        if known is not None:
            return known
        place = self._noted(function)
        identity, of = function.identity, (function.parameters, function.role, function.name)
        if type(identity) is not tuple or len(identity) != PARTS:
            return (*of, _meant(identity))
        code, _, fixed, captured, unset = identity
        found: list[Hashable] = [*of, id(code), unset, *_from_outside(function.function)]
        if fixed:
            given = defaults(function.function)  # type: ignore[arg-type]
            for name, meaning in fixed:
                found.append(self._variable(place, name, meaning, given[name]))
        for (name, meaning), capture in zip(captured, function.captures, strict=True):
            if getattr(capture.original, "__closure__", None):
                raise Shapeless  # a template would keep what it captured, such as a database
            found.append(self._variable(place, name, meaning, _plain(capture)))
        return tuple(found)

    def _noted(self, function: Opaque) -> int:
        place = self._places[id(function)] = self._count
        self._count += 1
        self.opaques[id(function)] = function
        return place

    def _variable(self, place: int, name: str, meaning: Any, value: Any) -> Hashable:
        if _may_differ(value) and (place, name) not in self.values:
            self.values[place, name] = value
            return (name, type(value))
        return (name, _meant(meaning))

    def _lifted(self, function: Lifted) -> Hashable:
        """What an expression is but for its constants. The callables that it came from are told
        apart by which of them are the same."""
        place = self._count
        self._count += 1
        of = tuple([self._origin(origin) for origin in function.origins])
        made = function.made
        if made is not None and type(made) is not Opaque:
            raise Shapeless
        how = None if made is None else self._opaque(made)
        constants: list[Constant] = []
        body = _apart(function.body, constants)
        for number, each in enumerate(constants):
            self.values[place, number] = each.value
        return (function.parameters, function.names, of, how, body)

    def _origin(self, origin: Opaque) -> Hashable:
        known = self._places.get(id(origin))
        return (self._noted(origin) if known is None else known), origin.role


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
        if is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        return value

    def _record(self, value: Any) -> Any:
        old = {name: getattr(value, name) for name in _fields_of(value)}
        new = {name: self.made(each) for name, each in old.items()}
        return value if all(new[name] is old[name] for name in old) else replace(value, **new)

    def _opaque(self, function: Opaque) -> Opaque:
        if id(function) not in self.opaques:
            here = {name: h for (of, name), h in self._held.items() if of == self._count}
            self._note(function, _with(function, here))
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


_MARKS = {kind: Constant(None, ("of class", kind)) for kind in KINDS}


def _apart(expr: Expr, found: list[Constant]) -> Expr:
    """An expression with marks in the place of its constants that may differ, which are added to
    those found."""

    def mark(constant: Constant) -> Constant:
        found.append(constant)
        return _MARKS[constant.kind]

    return _changed(expr, mark)


def _slotted(expr: Expr, held: Mapping[Hashable, Held], numbers: Iterator[int]) -> Expr:
    def slot(constant: Constant) -> Constant:
        value = held.get(next(numbers))
        return constant if value is None else Slot(value, constant.name)

    return _changed(expr, slot)


def _changed(expr: Expr, change: Callable[[Constant], Constant]) -> Expr:
    """An expression with other constants of those that may differ: positions of items do not."""
    kind = type(expr)
    if kind is Constant:
        return change(expr) if _may_differ(expr.value) else expr  # type: ignore
    if kind in LEAVES:
        return expr
    if kind is Subquery or (isinstance(expr, Apply) and _has_variables(expr.function)):
        raise Shapeless
    old = parts(expr)
    stays = kind is Item and type(old[1]) is Constant
    new = tuple([_changed(part, change) for part in (old[:1] if stays else old)])
    new += old[1:] if stays else ()
    return expr if all(a is b for a, b in zip(old, new, strict=True)) else rebuilt(expr, new)


def _has_variables(function: Opaque) -> bool:
    return bool(function.captures) or _has_no_meaning(function.identity)


# Values.


def _may_differ(value: Any) -> bool:
    return type(value) in KINDS and value == value


def _plain(capture: Capture) -> Any:
    """What a variable held; None where the callable sees a change of it."""
    return None if capture.is_live else capture.frozen


def _meant(meaning: Any) -> Hashable:
    if _has_no_meaning(meaning):
        raise Shapeless
    return meaning  # type: ignore[no-any-return]


def _has_no_meaning(meaning: Any) -> bool:
    """Whether it stands for an object of which nothing is known."""
    if type(meaning) is tuple or type(meaning) is frozenset:
        return any(map(_has_no_meaning, meaning))
    return type(meaning) is object


def _from_outside(function: Any) -> Iterator[Hashable]:
    """What else a function reads of its module: modules, and what is not defined yet."""
    module = function.__globals__
    names = global_names(function.__code__)
    if not REFLECTIVE.isdisjoint(names) or function.__builtins__ is not vars(builtins):
        raise Shapeless
    for name in names:
        value = module.get(name, module)
        if isinstance(value, ModuleType):
            yield name, value
        elif value is module and name not in function.__builtins__:
            raise Shapeless


def _names_of(node: plan.Node) -> tuple[str, ...]:
    kind: Any = type(node)
    return _names(kind)


@lru_cache(maxsize=64)
def _names(kind: Any) -> tuple[str, ...]:
    """The fields that make a node what it is, except those with inputs alone."""
    hints = {each.name: str(each.type) for each in fields(kind) if each.init and each.compare}
    return tuple(name for name, hint in hints.items() if hint != "Node")


def _fields_of(value: Any) -> tuple[str, ...]:
    kind: Any = type(value)
    return _fields(kind)


@lru_cache(maxsize=256)
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.init and each.compare)


def _bare(origin: Opaque) -> Opaque:
    """A callable that was read already, without what it captured, which may be a database."""
    function = origin.function
    if not isinstance(function, FunctionType):
        return replace(origin, captures=())
    cells = tuple(CellType() for _ in function.__code__.co_freevars)
    module = function.__globals__
    made = FunctionType(function.__code__, module, function.__name__, None, cells or None)
    return replace(origin, function=made, captures=())


def _with(opaque: Opaque, values: Mapping[Hashable, Held]) -> Opaque:
    """A callable with other values of some variables, which tells of no captured ones."""
    function = opaque.function
    if not values or not isinstance(function, FunctionType):
        return replace(opaque, captures=()) if opaque.captures else opaque
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
    identity = (opaque.identity, tuple(values.items()))
    return replace(opaque, function=made, captures=(), identity=identity)
