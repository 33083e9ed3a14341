"""Expressions as Python source text, their composition, and names of their columns.

`text` writes an expression for people, and `Writer` for the compiler.

>>> from optimizer.expr import Attribute, Operation, Parameter, constant
>>> text(Operation(">", (Attribute(Parameter(0), "age"), constant(30))), ("s",))
's.age > 30'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from types import GenericAlias, ModuleType
from typing import Any

from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    FALSE,
    LEAVES,
    TRUE,
    Again,
    And,
    Apply,
    Attempt,
    Attribute,
    Call,
    Composition,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Formatted,
    Function,
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
    is_longer,
    origins,
    parts,
    substitute,
    transform,
    tuple_of,
)
from optimizer.expressions.knowledge import (
    Shapes,
    is_value,
    makes_record,
    record_field,
    record_item,
    shape_of,
    total,
)
from optimizer.expressions.simplification import fold_node
from optimizer.record import record

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
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""The part of a repr that differs from process to process."""
EVALUATED = Local("evaluated")
"""Stands for expressions that are evaluated only because they may raise."""

Written = tuple[str, int]
"""Text, and the precedence of its outermost operator."""


def text(expr: Expr, names: Sequence[str]) -> str:
    """Write an expression for people: parameters by their names, constants by their values."""
    return Writer(names, constant_text).write(transform(expr, _make_readable))


def written(function: Opaque | Lifted) -> str:
    """Write a callable of a query as in its source; by its name if it was not lifted."""
    return str(function) if isinstance(function, Opaque) else text(function.body, function.names)


def _make_readable(expr: Expr) -> Expr:
    """Replace expressions that have no syntax, and parts that were not lifted, by readable text."""
    match expr:
        case First(needs, then):
            return Call(EVALUATED, needs) if then == TRUE else then
        case Attempt(Call(function, needs)) if function == EVALUATED:
            return Call(Local("succeeds"), needs)
        case Apply(function, _, reason) if reason:
            return Local(function.name if function.is_part else f"{function}")
        case _:
            return expr


def separate_needs(test: Expr) -> tuple[Expr, ...]:
    """Return a test that several expressions do not raise as a test of each; others alone."""
    match test:
        case Attempt(First(needed, then), otherwise) if then == TRUE and otherwise == FALSE:
            return tuple(Attempt(First((need,), TRUE), FALSE) for need in needed)
    return (test,)


def constant_text(constant: Constant) -> str:
    """Return a constant in words."""
    value = constant.value
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and (callable(value) or isinstance(value, ModuleType)):
        return name.rpartition(".")[2]
    if type(value) in SIMPLE or constant.name is None:
        shown = ADDRESS.sub("", repr(value))
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
        """Return the text, in parentheses if its precedence is less than `least`."""
        shown, binding = self._written(expr)
        return shown if binding >= least else f"({shown})"

    def _written(self, expr: Expr) -> Written:
        """Return the text of an expression, and how tightly it binds.

        Raise `TypeError` for an unknown expression.
        """
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
        """Return the text of an expression before `.`, `[` or `(`; numbers are in parentheses."""
        shown = self.write(expr, ATOM)
        return f"({shown})" if shown[:1].isdigit() else shown

    def _operation(self, operator: str, operands: tuple[Expr, ...]) -> Written:
        """Return the text of an operation, with parentheses where they are needed, and how it
        binds."""
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
        """Return the text of a tuple, list, set, dict or slice."""
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
        shown = ["" if _is_none_constant(item) else self.write(item) for item in items]
        return ":".join(shown[:2] if not shown[2] else shown)

    def _text(self, parts: tuple[Expr, ...]) -> str:
        """Return an f-string, or calls of `format` if Python before 3.12 cannot nest it."""
        shown = "".join(self._part(part) for part in parts)
        return f'f"{shown}"' if "\0" not in shown else self._join_parts(parts)

    def _part(self, part: Expr) -> str:
        """Return a part of an f-string as written between its quotes; with a `\0` if that is
        impossible."""
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
        """Return the format after the colon of an f-string's value; a `\0` if it is not
        constant."""
        parts = _parts_of_text(spec)
        constant = all(isinstance(part, Constant) for part in parts)
        return ":" + "".join(str(part.value) for part in parts) if constant else "\0"

    def _join_parts(self, parts: tuple[Expr, ...]) -> str:
        return "''.join((" + "".join(f"{self._piece(part)}, " for part in parts) + "))"

    def _piece(self, part: Expr) -> str:
        """Return a part of a text as an expression that gives a string, without an f-string."""
        if not isinstance(part, Formatted):
            return self.write(part) if isinstance(part, Text) else repr(str(part.value))  # type: ignore[attr-defined]
        convert = {"!r": "repr", "!s": "str", "!a": "ascii"}.get(part.conversion)
        value = self.write(part.value)
        value = value if convert is None else f"{convert}({value})"
        return f"format({value}, {repr('') if part.spec is None else self.write(part.spec)})"


def _parts_of_text(expr: Expr) -> Any:
    return expr.parts if isinstance(expr, Text) else ()


def _is_none_constant(expr: Expr) -> bool:
    return isinstance(expr, Constant) and expr.value is None


# Substitute an expression for a parameter, and evaluate the same parts as the plain plan.

LARGEST = 200
"""Nodes that an expression may have; each step of a chain can double it."""


def same(key: Expr) -> Expr:
    """Wrap a key so that it equals itself if it is NaN: NaN is looked for among items of keys
    only."""
    return tuple_of(tuple_of(key))


def compose(outer: Lifted, inner: Lifted, shapes: Shapes) -> Lifted | None:
    """Return `outer(inner(row))` as one expression that evaluates all of `inner`.

    Return None if `inner` has a cost, or the result is too long. `shapes` are the shapes of the
    row. Fields of a record or tuple that `inner` makes are replaced by the expressions that it is
    made of.
    """
    if not is_value(inner.body, shapes):
        return None
    body = transform(substitute(outer.body, (inner.body,)), project_node)
    asked = set(surely(body))  # parts that are evaluated anyway
    body = first(tuple(n for n in needs(inner.body, shapes) if n not in asked), body)
    if is_too_long(body):
        return None
    return Lifted(
        body,
        inner.names,
        origins(inner, outer),
        inner.parameters,
        Composition(outer, inner),
    )


def is_too_long(expr: Expr) -> bool:
    """Return True if an expression has more nodes than rules may make."""
    return is_longer(expr, LARGEST - 1)


def first(needed: tuple[Expr, ...], then: Expr) -> Expr:
    """Return `then` after the needs, if there are any."""
    return First(needed, then) if needed else then


def needs(expr: Expr, shapes: Shapes) -> tuple[Expr, ...]:
    """Return the parts of an expression that may raise; () if none does.

    They must still be evaluated if the expression is dropped.
    """
    if total(expr, shapes):
        return ()
    if isinstance(expr, Display) and expr.kind == "tuple":
        return tuple(need for item in expr.items for need in needs(item, shapes))
    if isinstance(expr, Call) and makes_record(expr):
        given = (*expr.arguments, *(value for _, value in expr.keywords))
        return tuple(need for item in given for need in needs(item, shapes))
    return (expr,)


def over(body: Expr, row: tuple[Expr, ...]) -> Expr:
    """Substitute `row` for the bindings of an expression; items of tuple displays are read from
    it."""
    return transform(substitute(body, row), project_node)


def one_row(expr: Expr, start: int, count: int) -> Expr:
    """Rewrite an expression over the last binding of a join to the right input's bindings.

    The binding is parameter `start`; the right input has `count` bindings, which are a tuple there.
    """
    whole = Parameter(0) if count == 1 else tuple_of(*(Parameter(i) for i in range(count)))
    arguments = (*(Parameter(i) for i in range(start)), whole)
    return transform(substitute(expr, arguments), project_node)


def without_none_tests(expr: Expr, shapes: Shapes) -> Expr:
    """Replace tests for None of records and tuples, by their shapes, with their result."""

    def decide_test(part: Expr) -> Expr:
        match part:
            case Operation("is" | "is not" as operator, (of, Constant(None))) if shape_of(
                of, shapes
            ) not in (None, type(None)) and total(of, shapes):
                return FALSE if operator == "is" else TRUE
            case _:
                return fold_node(part)

    return transform(expr, decide_test)


def project_node(expr: Expr) -> Expr:
    """Return the expression for a field or item of a record or tuple that is constructed here."""
    match expr:
        case Item(Display("tuple", items), Constant(int() as position)) if (
            -len(items) <= position < len(items)
        ):
            return items[position]
        case Attribute(of, name):
            return record_field(of, name) or expr
        case Item(Call() as of, Constant(int() as position)):
            return record_item(of, position) or expr
        case _:
            return fold_node(expr)


def surely(expr: Expr) -> list[Expr]:
    """Return the expression and the parts of it that are evaluated whenever it is."""
    found: list[Expr] = []
    waiting = [expr]
    while waiting:
        expr = waiting.pop()
        found.append(expr)
        match expr:
            case And(inner) | Or(inner):
                waiting.append(inner[0])
            case Conditional(test):
                waiting.append(test)
            case Guard() | Attempt():
                pass
            case _ if expr.__class__ not in LEAVES:
                waiting += parts(expr)[::-1]
    return found


# Classes of records, and names of their columns.


@record
class Naming:
    """Makes a record of a class, with the columns as arguments of their names.

    `generated` is True for classes whose fields are just the columns, in order.
    """

    kind: Any
    columns: tuple[str, ...]
    generated: bool

    def __call__(self, *values: Any) -> Any:
        if self.generated:
            return self.kind(*values)
        return self.kind(**dict(zip(self.columns, values, strict=True)))


@record
class Level:
    """Rows that a nest has inside of others.

    `name` is their binding, `kind` the class of the level's rows, None if these have nothing
    inside. `key` identifies a row, `levels` are the levels inside, `types` are the declared types
    of the first bindings.
    """

    name: str
    kind: Any
    key: Callable[[Any], Any]
    is_sequence: bool
    levels: tuple[Level, ...] = ()
    types: tuple[Any, ...] = field(default=(), compare=False)


@record
class RowsOf:
    """Stands for the annotation of rows of a generated class.

    It has the declared type of each column, and the levels inside, which are the last columns.
    """

    types: tuple[Any, ...]
    names: tuple[str, ...]
    levels: tuple[Any, ...] = ()


def row_inside(level: Level) -> Any:
    """Return the annotation of a row of a level, or a stand-in for it."""
    if level.kind is None:
        return level.types[0] if len(level.types) == 1 else GenericAlias(tuple, level.types)
    return RowsOf(level.types, level.kind._fields, level.levels)


@record
class Nesting(Naming):
    """The naming of rows with others inside.

    `levels` are the last columns, `key` identifies a row, `types` are the declared types of the
    other columns.
    """

    key: Any = field(compare=False)
    levels: tuple[Level, ...] = field(compare=False)
    types: tuple[Any, ...] = field(default=(), compare=False)


@record
class KeyOfFirst:
    """The key of rows with others inside: the key of the table of their first part.

    >>> from operator import attrgetter
    >>> KeyOfFirst(Opaque(attrgetter("real"), 1, "real", None, (), None))((3, "x"))
    3
    """

    key: Opaque

    def __call__(self, row: Any) -> Any:
        return self.key.function(row[0])


def naming_of(function: Function) -> Naming | None:
    """Return the naming that a function is, or None."""
    made = function.made if isinstance(function, Lifted) else None
    found = made.function if isinstance(made, Opaque) else None
    return found if isinstance(found, Naming) else None
