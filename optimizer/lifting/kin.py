"""Callables of one code that differ in plain values of their variables alone: kin.

    lambda o: o.customer == c     for c = "ann", "bob", ...     kin, with a value each

Sound:  who has the same key does the same with the same values. All else that a callable captured
        is part of the key, by what it means; classes and functions by themselves, held weakly, so
        that the key of what is gone is equal to no other.
State:  none but the codes in the keys; nothing else that a callable captured.
"""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from operator import attrgetter, itemgetter
from types import CellType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any

from optimizer.callables.captures import CODE, REFLECTIVE
from optimizer.callables.loads import defaults, global_names
from optimizer.callables.opaque import Opaque
from optimizer.callables.same_code import CodeItself
from optimizer.record import record

KINDS = frozenset({int, str, float, bytes})
"""Classes of values that may differ between kin."""
PARTS = 5
"""Of the identity of a function (`opaque.py`)."""
KNOWN = "kin"


@record
class Kin:
    """What a callable is but for plain values of its variables, and these by their names."""

    key: Hashable
    values: tuple[tuple[str, Any], ...]


class Itself:
    """An object by identity, which is not held."""

    __slots__ = ("_hash", "_reference")

    def __init__(self, value: Any) -> None:
        self._hash = id(value)
        self._reference = weakref.ref(value)

    @property
    def value(self) -> Any:
        """The object; None once it is gone."""
        return self._reference()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        value = self._reference()
        return value is not None and isinstance(other, Itself) and other._reference() is value


class Unlike(Exception):
    """A callable captures what has no lasting meaning."""


def kin_of(function: Opaque) -> Kin | None:
    """What a callable is but for values; None if it is like no other one. Found once."""
    if KNOWN not in function.readings:
        try:
            function.readings[KNOWN] = _kin(function)
        except Unlike:
            function.readings[KNOWN] = None
    found: Kin | None = function.readings[KNOWN]
    return found


def may_differ(value: Any) -> bool:
    """Whether it is a plain value, which kin may have other ones of."""
    return type(value) in KINDS and value == value


def _kin(function: Opaque) -> Kin:
    identity, called = function.identity, function.function
    if type(called) is not FunctionType:
        if isinstance(called, MethodType) or has_no_meaning(identity):
            raise Unlike
        return Kin(_itself(called) if isinstance(called, CODE) else identity, ())
    if type(identity) is not tuple or len(identity) != PARTS:
        raise Unlike
    code, _, fixed, captured, unset = identity
    if unset or len(captured) != len(function.captures):  # it does not tell what it captured
        raise Unlike
    key: list[Hashable] = [CodeItself(code), *_from_outside(called)]
    values: dict[str, Any] = {}
    if fixed:
        given = defaults(called)
        for name, meaning in fixed:
            if may_differ(given[name]):
                values[name] = given[name]
                key.append((name, type(given[name])))
            else:
                key.append((name, _lasting(given[name], meaning)))
    for (name, meaning), capture in zip(captured, function.captures, strict=True):
        value = capture.frozen
        if may_differ(value) and name not in values and not capture.is_live:
            values[name] = value
            key.append((name, type(value)))
        else:
            of = _plain if capture.is_live else _lasting
            key.append((name, of(capture.original, meaning)))
    return Kin(tuple(key), tuple(values.items()))


def _lasting(value: Any, meaning: Any) -> Hashable:
    """The meaning of a value, or itself where it is code."""
    if isinstance(value, (*CODE, Enum)):
        if getattr(value, "__closure__", None):
            raise Unlike  # who knows it would keep what it captured, such as a database
        return _itself(value)
    return _plain(value, meaning)


def _itself(value: Any) -> Hashable:
    if isinstance(value, MethodDescriptorType):
        return value  # which holds nothing but a name
    if isinstance(value, attrgetter | itemgetter):  # of which two are never equal
        names: Any = value.__reduce__()[1]
        return (type(value), *[(type(name), name) for name in names])
    try:
        return Itself(value)
    except TypeError:
        raise Unlike from None


def _plain(value: Any, meaning: Any) -> Hashable:
    """The meaning of a value that is data through and through."""
    kind = type(value)
    if kind in (tuple, list, set, frozenset, dict):
        for each in [*value, *value.values()] if kind is dict else value:
            _plain(each, None)
    elif isinstance(value, (*CODE, Enum)):
        raise Unlike
    if has_no_meaning(meaning):
        raise Unlike
    return meaning  # type: ignore[no-any-return]


def has_no_meaning(meaning: Any) -> bool:
    """Whether it stands for an object of which nothing is known."""
    if type(meaning) is tuple or type(meaning) is frozenset:
        return any(map(has_no_meaning, meaning))
    return type(meaning) is object


def _from_outside(function: Any) -> Iterator[Hashable]:
    """What else a function reads of its module: modules, and what is not defined yet."""
    module = function.__globals__
    names = global_names(function.__code__)
    if not REFLECTIVE.isdisjoint(names) or function.__builtins__ is not vars(builtins):
        raise Unlike
    for name in names:
        value = module.get(name, module)
        if isinstance(value, ModuleType):
            yield name, value
        elif value is module and name not in function.__builtins__:
            raise Unlike


def with_values(opaque: Opaque, values: Mapping[Any, Any]) -> Opaque:
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
