"""The form of a node: what it is and what it reads, but for plain values and for which tables.

    where o.customer == c       for c = "ann", "bob", ...       one form, a value each
      table orders

Of a captured variable, a default or a constant of an expression that is a plain value, a form has
the class alone; all else is part of it by value, and of a table what its rows are. Nodes of one
form have one object for it, which knows what is found out about one of them and holds for all.

Sound:  facts are shared of what depends on no value: of nodes whose callables have none, and where
        callables have no part in the facts.
State:  of the process, `MOST_FORMS` forms with their facts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    FIRST_UNIQUE,
    LEAVES,
    Apply,
    Constant,
    Expr,
    Item,
    Lifted,
    Outer,
    Quantified,
    Subquery,
    parts,
    rebuilt,
)
from optimizer.kinds.class_facts import ClassCache, classes_in, shortest_lived
from optimizer.lifting.kin import KINDS, Itself, has_no_meaning, kin_of, may_differ
from optimizer.plans.properties import fact
from optimizer.record import record

MOST_FORMS = 2048
FORMLESS = (
    *(plan.View, plan.Known, plan.Settled, plan.Recursive, plan.Given, plan.Values),
    *(plan.Fixpoint, plan.Component, plan.Iterate, plan.Previous),
)
PASSING = (plan.Where, plan.Join, plan.OuterJoin, plan.SemiJoin, plan.AntiJoin, plan.OrderBy)
"""Nodes of whose rows it is known what they are whatever their callables say."""
Value = tuple[Opaque | Lifted, tuple[Constant, ...]]
"""A callable of a node, and the constants of one that was read."""


class Form:
    """What all nodes of a form have in common. `known` is what has been found out about them."""

    __slots__ = ("home", "is_general", "known", "levels")

    def __init__(self, home: type | None = None) -> None:
        self.home = home
        """The class that it goes with."""
        self.is_general = False
        """Whether what its rows are depends on no value."""
        self.levels = 0
        """Of nodes, itself included."""
        self.known: dict[str, Any] = {}


_FORMS: ClassCache[Form] = ClassCache(Form, MOST_FORMS)


@record
class Own:
    """What a node is by itself but for values, and its callables in their order."""

    key: Hashable
    callables: tuple[Value, ...]

    @property
    def is_free(self) -> bool:
        """Whether it has no values."""
        return not any(_values(function, constants) for function, constants in self.callables)


class Formless(Exception):
    """A node captures what has no lasting meaning, or has what is not looked into."""


def form_of(node: plan.Node) -> Form | None:
    """The form of a node; None if it has none."""
    known = node.known
    if "form" not in known and all("form" in source.known for source in node.inputs()):
        known["form"] = _form(node)
    found: Form | None = known["form"] if "form" in known else fact(node, "form", _form)
    return found


def own_of(node: plan.Node) -> Own:
    """What a node of some form is by itself."""
    found: Own = node.known["own"]
    return found


def _form(node: plan.Node) -> Form | None:
    below = [source.known["form"] for source in node.inputs()]
    if None in below or isinstance(node, FORMLESS):
        return None
    reader = _Reader()
    try:
        own = reader.own(node)
        form = _FORMS.find((own.key, *below), _home)
    except (Formless, TypeError):  # what has no hash may differ from one time to the next
        return None
    node.known["own"] = own
    if not form.levels:
        is_own = own.is_free or isinstance(node, PASSING)
        form.is_general = is_own and all(source.is_general for source in below)
        form.levels = 1 + max([source.levels for source in below], default=0)
    return form


def _home(key: Hashable) -> type | None:
    """Return the class that a form goes with."""
    return shortest_lived(classes_in(key, _inside))


def _inside(value: Any) -> Iterable[Any]:
    """The parts of a part of a key that may be or have classes."""
    kind: Any = type(value)
    if kind is Form:
        return () if value.home is None else (value.home,)
    if kind is Constant or kind is Itself:
        return (value.value,)
    if not isinstance(value, Expr):
        return ()
    return (value.function.function, *parts(value)) if isinstance(value, Apply) else parts(value)


class _Reader:
    """Reads what a node is by itself, and puts aside its callables."""

    def __init__(self) -> None:
        self._callables: list[Value] = []

    def own(self, node: plan.Node) -> Own:
        if isinstance(node, plan.Table):
            key = None if node.key is None else node.key.identity
            if has_no_meaning(key):
                raise Formless
            return Own((plan.Table, key, node.stored, node.row_type), ())
        kind: Any = type(node)
        key = (kind, *[self._key(getattr(node, name)) for name in _names(kind)])
        return Own(key, tuple(self._callables))

    def _key(self, value: Any) -> Hashable:
        """What a field of a node is, but for values that may differ."""
        kind: Any = type(value)
        if kind is Opaque:
            return self._opaque(value)
        if kind is Lifted:
            return self._lifted(value)
        if kind is tuple:
            return (tuple, *map(self._key, value))
        names = None if value is None else _fields(kind)
        if names is not None:
            return (kind, *[self._key(getattr(value, name)) for name in names])
        if callable(value) and not isinstance(value, type):
            raise Formless
        return (kind, value)

    def _opaque(self, function: Opaque) -> Hashable:
        kin = kin_of(function)
        if kin is None:
            raise Formless
        self._callables.append((function, ()))
        return (function.parameters, function.role, function.name, kin.key)

    def _lifted(self, function: Lifted) -> Hashable:
        """What an expression is but for its constants. The callables that it came from are told
        apart by which of them are the same."""
        made = function.made
        if made is not None and type(made) is not Opaque:
            raise Formless
        constants: list[Constant] = []
        body = _apart(function.body, constants)
        self._callables.append((function, tuple(constants)))
        how = None if made is None else self._opaque(made)
        of = tuple([origin.role for origin in function.origins])
        return (function.parameters, function.names, of, how, body)


def _values(function: Opaque | Lifted, constants: tuple[Constant, ...]) -> bool:
    if isinstance(function, Lifted):
        return bool(constants)
    kin = kin_of(function)
    return kin is None or bool(kin.values)


def names_of(node: plan.Node) -> tuple[str, ...]:
    """The fields that make a node what it is, except those with inputs alone."""
    kind: Any = type(node)
    return _names(kind)


@lru_cache(maxsize=64)
def _names(kind: Any) -> tuple[str, ...]:
    hints = {each.name: str(each.type) for each in fields(kind) if each.init and each.compare}
    return tuple(name for name, hint in hints.items() if hint != "Node")


def fields_of(value: Any) -> tuple[str, ...] | None:
    """The fields that make a record what it is; None of what is none."""
    kind: Any = type(value)
    return _fields(kind)


@lru_cache(maxsize=256)
def _fields(kind: Any) -> tuple[str, ...] | None:
    if not is_dataclass(kind):
        return None
    return tuple(each.name for each in fields(kind) if each.init and each.compare)


# Expressions.


_MARKS = {kind: Constant(None, ("of class", kind)) for kind in KINDS}


def _apart(expr: Expr, found: list[Constant]) -> Expr:
    """An expression with marks in the place of its constants that may differ, which are added to
    those found."""

    def mark(constant: Constant) -> Constant:
        found.append(constant)
        return _MARKS[constant.kind]

    return with_constants(expr, mark)


def with_constants(expr: Expr, change: Callable[[Constant], Constant]) -> Expr:
    """An expression with other constants of those that may differ: positions of items do not."""
    kind = type(expr)
    if kind is Constant:
        return change(expr) if may_differ(expr.value) else expr  # type: ignore
    if kind in LEAVES:
        if kind is Outer and expr.index >= FIRST_UNIQUE:  # type: ignore[attr-defined]
            raise Formless
        return expr
    is_query = kind is Subquery or kind is Quantified
    if is_query or (isinstance(expr, Apply) and _has_variables(expr.function)):
        raise Formless
    old = parts(expr)
    stays = kind is Item and type(old[1]) is Constant
    new = tuple([with_constants(part, change) for part in (old[:1] if stays else old)])
    new += old[1:] if stays else ()
    return expr if all(a is b for a, b in zip(old, new, strict=True)) else rebuilt(expr, new)


def _has_variables(function: Opaque) -> bool:
    return bool(function.captures) or has_no_meaning(function.identity)
