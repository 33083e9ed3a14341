"""Expressions as Python source text: for people to read, and for the compiler.

>>> from optimizer.expr import Attribute, Operation, Parameter, constant
>>> text(Operation(">", (Attribute(Parameter(0), "age"), constant(30))), ("s",))
's.age > 30'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import ModuleType
from typing import Any

from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    FALSE,
    TRUE,
    Again,
    And,
    Apply,
    Attempt,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Formatted,
    Guard,
    Item,
    Lifted,
    Local,
    Operation,
    Or,
    Outer,
    Parameter,
    Quantified,
    Subquery,
    Text,
    transform,
)

LONGEST = 60
TEST, OR, AND, NOT, COMPARISON, UNARY, POWER, ATOM = 0, 1, 2, 3, 4, 11, 12, 14
BINARY = {
    **dict.fromkeys(["<", "<=", ">", ">=", "==", "!=", "in", "not in", "is", "is not"], COMPARISON),
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "//": 10,
    "%": 10,
    "@": 10,
    "**": POWER,
}
BRACKETS = {"tuple": ("(", ")"), "list": ("[", "]"), "set": ("{", "}")}
SIMPLE = (int, str, bytes, bool, float, type(None))
EVALUATED = Local("evaluated")
"""What is evaluated for nothing but whether it raises."""

Written = tuple[str, int]
"""Text, and how tightly its outermost operator binds."""


def text(expr: Expr, names: Sequence[str]) -> str:
    """For people: the parameters by their names, constants by their values."""
    return Writer(names, described).write(transform(expr, _shown))


def written(function: Opaque | Lifted) -> str:
    """A callable of a query as it was written, or by its name if it could not be read."""
    return str(function) if isinstance(function, Opaque) else text(function.body, function.names)


def _shown(expr: Expr) -> Expr:
    """Without what has no syntax of its own, parts that could not be read as they are written."""
    match expr:
        case First(needs, then):
            return Call(EVALUATED, needs) if then == TRUE else then
        case Attempt(Call(function, needs)) if function == EVALUATED:
            return Call(Local("succeeds"), needs)
        case Apply(function, _, reason) if reason:
            return Local(function.name if function.is_part else f"{function}")
        case _:
            return expr


def described(constant: Constant) -> str:
    """A constant in words."""
    value = constant.value
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and (callable(value) or isinstance(value, ModuleType)):
        return name.rpartition(".")[2]
    if type(value) in SIMPLE or constant.name is None:
        shown = repr(value)
        return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 3]}..."
    return constant.name


class Writer:
    """Writes expressions; `known` are texts for parts that have been evaluated already."""

    def __init__(
        self,
        names: Sequence[str],
        constant: Callable[[Constant], str],
        *,
        apply: Callable[[Apply], str | None] = lambda part: part.function.name,
        known: Mapping[Expr, str] | None = None,
    ) -> None:
        self._names = names
        self._constant = constant
        self._apply = apply
        self.known: Mapping[Expr, str] = {} if known is None else known

    def write(self, expr: Expr, least: int = TEST) -> str:
        """The text, in parentheses if it binds less tightly than that."""
        shown, binding = self._written(expr)
        return shown if binding >= least else f"({shown})"

    def _written(self, expr: Expr) -> Written:
        known = self.known.get(expr)
        if known is not None:
            return known, ATOM
        match expr:
            case Parameter(index):
                return self._names[index], ATOM
            case Local(name):
                return name, ATOM
            case Constant():
                shown = self._constant(expr)
                return shown, UNARY if shown[:1] == "-" else ATOM
            case Attribute(of, name):
                return f"{self._primary(of)}.{name}", ATOM
            case Item(of, Display("slice", items)):
                return f"{self._primary(of)}[{self._slice(items)}]", ATOM
            case Item(of, key):
                return f"{self._primary(of)}[{self.write(key)}]", ATOM
            case Operation(operator, operands):
                return self._operation(operator, operands)
            case And(parts):
                return " and ".join(self.write(p, NOT) for p in parts), AND
            case Or(parts):
                return " or ".join(self.write(p, AND) for p in parts), OR
            case Conditional(test, then, otherwise):
                shown = f"{self.write(then, OR)} if {self.write(test, OR)} else "
                return shown + self.write(otherwise, TEST), TEST
            case Display(kind, items):
                return self._display(kind, items), ATOM
            case Call(function, arguments, keywords):
                passed = [self.write(a) for a in arguments]
                passed += [f"{name}={self.write(value)}" for name, value in keywords]
                return f"{self._primary(function)}({', '.join(passed)})", ATOM
            case Apply(_, arguments):
                called = self._apply(expr)
                return f"{called}({', '.join(map(self.write, arguments))})", ATOM
            case Text(parts):
                return self._text(parts), ATOM
            case First(needs, then):
                return f"({', '.join(map(self.write, (*needs, then)))})[-1]", ATOM
            case Again(test):
                return self._written(test)
            case Guard(test):
                return f"unless_raises({self.write(test)})", ATOM
            case Outer(index):
                return f"outer[{index}]", ATOM
            case Subquery(kind, query):
                return f"{kind} ({query.facts.headline(query)})", ATOM
            case Quantified(translated=translated):
                return self._written(translated)
            case Attempt(of, otherwise):
                less = "" if otherwise == FALSE else f", {self.write(otherwise)}"
                return f"attempt({self.write(of)}{less})", ATOM
            case _:
                raise TypeError(f"no text for expression {type(expr).__name__}")

    def _primary(self, expr: Expr) -> str:
        shown = self.write(expr, ATOM)
        return f"({shown})" if shown[:1].isdigit() else shown

    def _operation(self, operator: str, operands: tuple[Expr, ...]) -> Written:
        if operator == "not":
            return f"not {self.write(operands[0], NOT)}", NOT
        if len(operands) == 1:
            return f"{operator}{self.write(operands[0], UNARY)}", UNARY
        binding = BINARY[operator]
        left, right = operands
        tight = binding + 1 if binding in (COMPARISON, POWER) else binding
        shown = self.write(left, tight)
        return f"{shown} {operator} {self.write(right, binding + (binding != POWER))}", binding

    def _display(self, kind: str, items: tuple[Expr, ...]) -> str:
        if kind == "slice":
            return f"slice({', '.join(map(self.write, items))})"
        if kind == "dict":
            pairs = zip(items[::2], items[1::2], strict=True)
            return "{" + ", ".join(f"{self.write(k)}: {self.write(v)}" for k, v in pairs) + "}"
        opening, closing = BRACKETS[kind]
        if kind == "set" and not items:
            return "set()"
        comma = "," if kind == "tuple" and len(items) == 1 else ""
        return opening + ", ".join(map(self.write, items)) + comma + closing

    def _slice(self, items: tuple[Expr, ...]) -> str:
        shown = ["" if _is_none(item) else self.write(item) for item in items]
        return ":".join(shown[:2] if not shown[2] else shown)

    def _text(self, parts: tuple[Expr, ...]) -> str:
        """An f-string as calls of `format`, which also old versions can nest."""
        shown = "".join(self._part(part) for part in parts)
        return f'f"{shown}"' if "\0" not in shown else self._joined(parts)

    def _part(self, part: Expr) -> str:
        if isinstance(part, Constant):
            shown = str(part.value)
            plain = shown.isprintable() and not any(c in shown for c in "\"'\\")
            return shown.replace("{", "{{").replace("}", "}}") if plain else "\0"
        if not isinstance(part, Formatted) or (
            part.spec is not None and not isinstance(part.spec, Text)
        ):
            return "\0"
        inner = self.write(part.value)
        spec = "" if part.spec is None else self._spec(part.spec)
        if any(c in inner for c in "\"'\\{}\n!:") or "\0" in spec:
            return "\0"
        return "{" + inner + part.conversion + spec + "}"

    def _spec(self, spec: Expr) -> str:
        parts = _parts(spec)
        constant = all(isinstance(part, Constant) for part in parts)
        return ":" + "".join(str(part.value) for part in parts) if constant else "\0"

    def _joined(self, parts: tuple[Expr, ...]) -> str:
        return "''.join((" + "".join(f"{self._piece(part)}, " for part in parts) + "))"

    def _piece(self, part: Expr) -> str:
        if not isinstance(part, Formatted):
            return self.write(part) if isinstance(part, Text) else repr(str(part.value))  # type: ignore[attr-defined]
        convert = {"!r": "repr", "!s": "str", "!a": "ascii"}.get(part.conversion)
        value = self.write(part.value)
        value = value if convert is None else f"{convert}({value})"
        return f"format({value}, {repr('') if part.spec is None else self.write(part.spec)})"


def _parts(expr: Expr) -> Any:
    return expr.parts if isinstance(expr, Text) else ()


def _is_none(expr: Expr) -> bool:
    return isinstance(expr, Constant) and expr.value is None
