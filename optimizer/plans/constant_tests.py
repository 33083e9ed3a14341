"""Which constants a condition pins the fields of a row to.

    o.kind == "sale" and o.price > 3     kind: {"sale"}
    o.kind in ("sale", "gift")           kind: {"sale", "gift"}
    o.price > 3 and o.kind == "sale"     kind: {"sale"}, where the price of a row is a number
    o.price > 3                          nothing

So rows can be looked up by that field instead of being asked one condition after another. What is
asked before must not raise: either it is certain not to, or it compares fields with constants, and
does not raise for rows whose fields are of certain classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from optimizer.expr import (
    Attribute,
    Constant,
    Display,
    Expr,
    Operation,
    Or,
    Parameter,
    conjuncts,
)
from optimizer.expressions.knowledge import Shapes, total

Pins = Mapping[str, frozenset[Any]]
Classes = frozenset[type]
KINDS = (str, int, bytes)
"""Constants that a dictionary finds exactly where `==` says so."""
_ORDERS = frozenset({"<", "<=", ">", ">="})
NUMBERS: Classes = frozenset({int, float, bool})
_COMPARABLE: Mapping[type, Classes] = {
    **dict.fromkeys(NUMBERS, NUMBERS),
    str: frozenset({str}),
    bytes: frozenset({bytes}),
}
"""With what a constant compares."""


class ConstantTests(Mapping[str, frozenset[Any]]):
    """The fields that conditions pin, each with the values that pass.

    `classes`: fields whose values are to be of certain classes, or it may raise before.
    `wants`: by which fields, and what of them, rows could be looked up (`wanted.py`).
    """

    __slots__ = ("_pins", "classes", "wants")

    def __init__(
        self,
        pins: Pins,
        classes: Mapping[str, Classes] = MappingProxyType({}),
        wants: Mapping[str, Hashable] = MappingProxyType({}),
    ) -> None:
        self._pins = dict(pins)
        self.classes = dict(classes)
        self.wants = wants

    def __getitem__(self, field: str) -> frozenset[Any]:
        return self._pins[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pins)

    def __len__(self) -> int:
        return len(self._pins)


NO_CONSTANT_TESTS = ConstantTests({})


def constant_tests(tests: Iterable[Expr], shapes: Shapes) -> ConstantTests:
    """The fields of the first binding that conditions pin, with the values that pass."""
    pins: dict[str, frozenset[Any]] = {}
    classes: dict[str, Classes] = {}
    needed: dict[str, Classes] = {}
    for part in (part for test in tests for part in conjuncts(test)):
        found = {n: values for n, values in _tests_of(part).items() if _is_field(n, shapes)}
        if found:
            classes = dict(needed)
        for name, values in found.items():
            pins[name] = pins[name] & values if name in pins else values
        if found or total(part, shapes):
            continue
        comparison = compared(part, shapes)
        if comparison is None:
            break
        field, allowed = comparison
        needed[field] = needed[field] & allowed if field in needed else allowed
    return ConstantTests(pins, classes)


def compared(part: Expr, shapes: Shapes) -> tuple[str, Classes] | None:
    """The field that a condition compares with a constant, and for which values it cannot raise."""
    match part:
        case Operation(operator, (Attribute(Parameter(0), name), Constant() as constant)):
            pass
        case Operation(operator, (Constant() as constant, Attribute(Parameter(0), name))):
            pass
        case _:
            return None
    allowed = _COMPARABLE.get(constant.kind)
    if operator not in _ORDERS or allowed is None or not _is_field(name, shapes):
        return None
    return name, allowed


def _is_field(name: str, shapes: Shapes) -> bool:
    return total(Attribute(Parameter(0), name), shapes)


def _tests_of(test: Expr) -> Pins:
    match test:
        case Operation("==", (Attribute(Parameter(0), name), Constant(value))):
            return _pin(name, (value,))
        case Operation("==", (Constant(value), Attribute(Parameter(0), name))):
            return _pin(name, (value,))
        case Operation("in", (Attribute(Parameter(0), name), Constant(tuple() as values))):
            return _pin(name, values)
        case Operation("in", (Attribute(Parameter(0), name), Display(_, items))):
            constants = [item.value for item in items if isinstance(item, Constant)]
            return _pin(name, constants) if len(constants) == len(items) else {}
        case Or(parts):
            return _either([_tests_of(part) for part in parts])
        case _:
            return {}


def _pin(name: str, values: Iterable[Any]) -> Pins:
    found = frozenset(value for value in values if type(value) in KINDS)
    return {name: found} if len(found) == len(list(values)) else {}


def _either(alternatives: list[Pins]) -> Pins:
    names = set.intersection(*(set(constant_tests) for constant_tests in alternatives))
    return {
        name: frozenset().union(*(constant_tests[name] for constant_tests in alternatives))
        for name in names
    }
