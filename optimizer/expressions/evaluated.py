"""Evaluate beforehand what only constants decide: plain arithmetic, attributes of modules, enums.

Only values of the built-in types that nobody can change take part, so that no code of the user
runs, and what raises is left to raise where it is written.
"""

from __future__ import annotations

import operator
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from optimizer.expr import (
    NONE,
    And,
    Attempt,
    Attribute,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Operation,
    Or,
    Parameter,
    conjunction,
    constant,
)

PLAIN = (int, float, bool, str, bytes, type(None))
LARGEST = 1 << 64
LONGEST = 1_000
LEAVES = (Parameter, Constant)
BINARY: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "&": operator.and_,
    "|": operator.or_,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}
GIVE_BOOL = frozenset({"in", "not in", "is", "is not", "not"})
UNARY: dict[str, Any] = {
    "not": operator.not_,
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
}


def evaluated_attribute(of: Expr, name: str) -> Expr:
    """An attribute; of a module or an enumeration its value, if that is code or plain data."""
    if isinstance(of, Constant):
        owner = of.value
        enumeration = isinstance(owner, type) and issubclass(owner, Enum)
        if isinstance(owner, ModuleType) or enumeration:
            value = vars(owner).get(name) if not enumeration else owner.__members__.get(name)
            if isinstance(
                value, (*PLAIN, FunctionType, BuiltinFunctionType, type, ModuleType, Enum)
            ):
                return constant(value, name) if value is not None else Attribute(of, name)
    return Attribute(of, name)


def evaluated(expr: Expr) -> Expr:
    """One node, its parts being evaluated already: simpler where constants decide it."""
    match expr:
        case Operation(symbol, operands) if all(map(_is_plain, operands)):
            return _operation(expr, symbol, [o.value for o in operands])  # type: ignore[attr-defined]
        case Operation("is" | "is not" as symbol, (Display("tuple", items), other)) if (
            other == NONE and all(isinstance(item, LEAVES) for item in items)
        ):
            return constant(symbol == "is not")
        case Operation("not", (Operation("not", (inner,)),)) if _is_test(inner):
            return inner
        case And(parts):
            return _junction(expr, parts, stop=False)
        case Or(parts):
            return _junction(expr, parts, stop=True)
        case Conditional(Constant() as test, then, otherwise) if _is_plain(test):
            return then if test.value else otherwise
        case First(needs, then):
            rest = tuple(n for n in needs if not isinstance(n, Constant))
            return then if not rest else expr if len(rest) == len(needs) else First(rest, then)
        case Attempt(Constant() as of):
            return of
        case _:
            return expr


def _operation(expr: Expr, symbol: str, values: list[Any]) -> Expr:
    if symbol in ("is", "is not") and not any(v is None or isinstance(v, bool) for v in values):
        return expr
    compute = UNARY.get(symbol) if len(values) == 1 else BINARY.get(symbol)
    if compute is None or (
        symbol == "*" and any(isinstance(v, str | bytes | tuple) for v in values)
    ):
        return expr
    try:
        result = compute(*values)
    except Exception:  # it raises where it is written
        return expr
    return constant(result) if _is_small(result) else expr


def _junction(expr: Expr, parts: tuple[Expr, ...], *, stop: bool) -> Expr:
    """Drop the constants that do not decide; end at the first that does."""
    kept: list[Expr] = []
    for place, part in enumerate(parts):
        inner = part.parts if type(part) is type(expr) else (part,)  # type: ignore[attr-defined]
        last = place == len(parts) - 1
        if _is_plain(part):
            decides = bool(part.value) is stop  # type: ignore[attr-defined]
            if decides or (last and not kept):
                kept.append(part)
                break
            if not last:
                continue
        kept.extend(inner)
    if len(kept) == 1:
        return kept[0]
    if len(kept) == len(parts) and all(a is b for a, b in zip(kept, parts, strict=True)):
        return expr
    return conjunction(tuple(kept)) if isinstance(expr, And) else Or(tuple(kept))


def _is_test(expr: Expr) -> bool:
    """Whether it gives True or False and nothing else."""
    return isinstance(expr, Operation) and expr.operator in GIVE_BOOL


def _is_plain(expr: Expr) -> bool:
    if not isinstance(expr, Constant):
        return False
    if expr.kind is tuple or expr.kind is frozenset:
        value = expr.value
        return len(value) <= LONGEST and all(type(v) in PLAIN for v in value)
    return expr.kind in PLAIN


def _is_small(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -LARGEST < value < LARGEST
    return not isinstance(value, str | bytes) or len(value) <= LONGEST
