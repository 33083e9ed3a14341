"""Which constants a condition pins the fields of a row to.

    o.kind == "sale" and o.price > 3     kind: {"sale"}
    o.kind in ("sale", "gift")           kind: {"sale", "gift"}
    o.price > 3                          nothing

So rows can be looked up by that field instead of being asked one condition after another. Only what
is certain to be asked before anything can raise is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

ConstantTests = Mapping[str, frozenset[Any]]
NO_CONSTANT_TESTS: ConstantTests = MappingProxyType({})
KINDS = (str, int, bytes)
"""Constants that a dictionary finds exactly where `==` says so."""


def constant_tests(tests: Iterable[Expr], shapes: Shapes) -> ConstantTests:
    """The fields of the first binding that conditions pin, with the values that pass."""
    constant_tests: dict[str, frozenset[Any]] = {}
    for test in tests:
        for part in conjuncts(test):
            found = {
                name: values for name, values in _tests_of(part).items() if _is_field(name, shapes)
            }
            if not found and not total(part, shapes):
                return constant_tests
            for name, values in found.items():
                constant_tests[name] = (
                    constant_tests[name] & values if name in constant_tests else values
                )
    return constant_tests


def _is_field(name: str, shapes: Shapes) -> bool:
    return total(Attribute(Parameter(0), name), shapes)


def _tests_of(test: Expr) -> ConstantTests:
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


def _pin(name: str, values: Iterable[Any]) -> ConstantTests:
    found = frozenset(value for value in values if type(value) in KINDS)
    return {name: found} if len(found) == len(list(values)) else {}


def _either(alternatives: list[ConstantTests]) -> ConstantTests:
    names = set.intersection(*(set(constant_tests) for constant_tests in alternatives))
    return {
        name: frozenset().union(*(constant_tests[name] for constant_tests in alternatives))
        for name in names
    }
