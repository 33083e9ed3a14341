"""Evaluate beforehand what only constants decide: plain arithmetic, attributes of modules, enums.

Only values of the built-in types that nobody can change take part, so that no code of the user
runs, and what raises is left to raise where it is written.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from optimizer.callables.captures import meaning
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
    Held,
    Operation,
    Or,
    Parameter,
    Slot,
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
COMPUTED = frozenset({"+", "-", "*"})
"""Operators of numbers whose result is of a class that those of the operands tell."""
NUMBERS = (int, float)
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
        case Operation(symbol, operands) if symbol in COMPUTED and _are_slots(operands):
            return _of_slots(expr, symbol, operands)
        case Operation(symbol, operands) if all(map(_is_plain, operands)):
            return _operation(expr, symbol, [o.value for o in operands])  # type: ignore[attr-defined]
        case Operation("is" | "is not" as symbol, (Display("tuple") as made, other)) if (
            other == NONE and _is_of_leaves(made)
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


def _is_of_leaves(expr: Expr) -> bool:
    """Whether it is what raises nothing, or a tuple of such, and so is no None."""
    if isinstance(expr, Display) and expr.kind == "tuple":
        return all(map(_is_of_leaves, expr.items))
    return isinstance(expr, LEAVES)


def computed(symbol: str, values: Sequence[Any]) -> Any:
    """What arithmetic makes of numbers; None where it is not evaluated beforehand.

    >>> computed("+", (1, 500)), computed("*", (1e300, 1e300)), computed("*", (2**40, 2**40))
    (501, inf, None)
    """
    try:
        found = (UNARY if len(values) == 1 else BINARY)[symbol](*values)
    except ArithmeticError:
        return None
    return found if _is_small(found) and found == found else None


def _of_slots(expr: Expr, symbol: str, operands: tuple[Expr, ...]) -> Expr:
    """Arithmetic of slots: a slot again, whose value is that of others. One without a value notes
    that there is none for these."""
    parts = [each.held if isinstance(each, Slot) else each.value for each in operands]  # type: ignore[attr-defined]
    first = next(each for each in parts if isinstance(each, Held))
    key = (symbol, *[id(each) if isinstance(each, Held) else meaning(each) for each in parts])
    found = first.computed.get(key)
    if found is None:
        value = computed(symbol, [p.value if isinstance(p, Held) else p for p in parts])
        found = first.computed[key] = Held(value, by=symbol, operands=tuple(parts))
    return expr if found.value is None else Slot(found)


def _are_slots(operands: tuple[Expr, ...]) -> bool:
    """Whether they are numbers that are constants, some of them slots."""
    are_numbers = all(isinstance(o, Constant) and o.kind in NUMBERS for o in operands)
    return are_numbers and any(isinstance(o, Slot) for o in operands)


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
