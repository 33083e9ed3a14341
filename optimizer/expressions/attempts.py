"""Expressions that do not raise: the parts that may raise, and the value used if one does.

    int(s.age) > 30                attempt(int(s.age) > 30)
    int(s.age) == m.age            attempt(int(s.age), nan) == m.age
    (s.name, int(s.age))           needs int(s.age)
    s.tags                         needs hash(s.tags), as part of a row or a key

An equation stays an equation, so that its sides are still keys.

`Unpacks` tests that a row has an item for each name.

    for key, value in pairs             where unpacks(row)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.expr import (
    FALSE,
    NAN,
    NONE,
    TRUE,
    Apply,
    Attempt,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    conjunction,
    conjuncts,
    constant,
    parts,
    row_names,
    tuple_of,
)
from optimizer.expressions.knowledge import (
    Pure,
    Shapes,
    constructor,
    hashable,
    makes_record,
    row_is_hashed_by,
    total,
)
from optimizer.expressions.simplification import is_plain
from optimizer.expressions.text import needs
from optimizer.record import record


@record
class Fault:
    """An exception as a value: the result of an aggregate whose functions raise."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: Exception) -> Fault:
        return cls(type(error).__name__, str(error))


@record
class Outcome:
    """A result or a `Fault` in columns, which hold values of one type: the other one is None."""

    value: Any
    fault: Fault | None

    @classmethod
    def of(cls, result: Any) -> Outcome:
        """Return the outcome that stands for a result or a `Fault`."""
        return cls(None, result) if result.__class__ is Fault else cls(result, None)


@record
class FirstFault(Pure):
    """A callable of expressions: the first of some values that is a `Fault`; None without a
    fault."""

    def __call__(self, *values: Any) -> Fault | None:
        found = (value.fault if value.__class__ is Outcome else value for value in values)
        return next((value for value in found if value.__class__ is Fault), None)

    def __repr__(self) -> str:
        return "fault"


@record
class OrNone(Pure):
    """A callable of expressions: a value, or None in place of a `Fault`."""

    def __call__(self, value: Any) -> Any:
        if value.__class__ is Outcome:
            return value.value
        return None if value.__class__ is Fault else value

    def __repr__(self) -> str:
        return "or_none"


@record
class NoFault(Pure):
    """A callable of expressions: a value that is no `Fault`, as the row has passed the test."""

    def __call__(self, value: Any) -> Any:
        return value.value if value.__class__ is Outcome else value

    def __repr__(self) -> str:
        return "value"


def shows_outcomes(columns: Sequence[Function]) -> bool:
    """Return True if the columns are the bindings, some of them through `OrNone` or `NoFault`."""
    bodies = [column.body for column in columns if isinstance(column, Lifted)]
    inner = [*map(_outcome_shown, bodies)]
    return inner == [*map(Parameter, range(len(columns)))] and inner != bodies


def _outcome_shown(body: Expr) -> Expr:
    """Return the outcome inside a call that turns it into a row or None; other expressions
    unchanged."""
    match body:
        case Call(Constant(OrNone() | NoFault()), (outcome,)):
            return outcome
    return body


NUMBERS = (int, float, complex, len, ord)


def as_lifted(function: Function) -> Lifted:
    """Return a callable as an expression; a callable that was not lifted as a call."""
    if isinstance(function, Lifted):
        return function
    count = function.parameters
    body = Apply(function, all_parameters(count))
    return Lifted(body, row_names(count), (function,), count, function)


def hash_needs(expr: Expr, of: Shapes) -> tuple[Expr, ...]:
    """Return the parts of an expression that may raise, or that may have no hash."""
    match expr:
        case Display("tuple", items):
            inside: tuple[Expr, ...] = items
        case Call(Constant(kind)) if makes_record(expr) and _is_hashed_by_fields(kind):
            inside = parts(expr)[1:]
        case _:
            is_known = hashable(expr, of) or is_plain(expr, of) or _gives_hashable(expr, of)
            return needs(expr, of) if is_known else (Call(constant(hash), (expr,)),)
    every = [need for part in inside for need in hash_needs(part, of)]
    before = [need for part in inside for need in needs(part, of)]
    return tuple(dict.fromkeys([*before, *every] if any(map(_is_hash, every[:-1])) else every))


def _is_hash(need: Expr) -> bool:
    """Return True for a hash, which is computed after all of the row."""
    return isinstance(need, Call) and need.function == constant(hash)


def _gives_hashable(expr: Expr, of: Shapes) -> bool:
    """Return True if the value, if there is one, is hashable: a number, or an item of a hashable
    row."""
    match expr:
        case Call(Constant(value)):
            return any(value is known for known in NUMBERS)
        case Item(Parameter(index), Constant(int())):
            return of[index] is tuple
        case _:
            return False


def _is_hashed_by_fields(kind: type) -> bool:
    return row_is_hashed_by(kind, constructor(kind) or ())


def taken_by(check: Callable[[Any], object] | None, expr: Expr, of: Shapes) -> tuple[Expr, ...]:
    """Return the expressions that may raise when an aggregate takes a value and checks it."""
    if check is None or _is_written_number(expr):
        return needs(expr, of)
    return hash_needs(expr, of) if check is hash else (Call(constant(check), (expr,)),)


def _is_written_number(expr: Expr) -> bool:
    """Return True for a written number, or a choice between two, which every aggregate takes."""
    match expr:
        case Constant(int() | float()):
            return True
        case Conditional(_, then, otherwise):
            return _is_written_number(then) and _is_written_number(otherwise)
        case _:
            return False


def raising_parts(test: Expr, of: Shapes) -> list[Expr]:
    """Return the parts of a condition that may raise: each side of an equation."""
    sides = test.operands if isinstance(test, Operation) and test.operator == "==" else (test,)
    return [side for side in sides if not total(side, of)]


def attempt_condition(test: Expr, of: Shapes) -> Expr:
    """Return a condition that is false where it raises.

    An equation stays an equation, of sides that do not raise.
    """
    if total(test, of):
        return test
    if not isinstance(test, Operation) or test.operator != "==":
        return Attempt(test, FALSE)
    sides = [side if total(side, of) else Attempt(side, NAN) for side in test.operands]
    return Operation("==", tuple(sides))


def succeeds(needed: tuple[Expr, ...]) -> Expr:
    return Attempt(First(needed, TRUE), FALSE)


def fails(needed: tuple[Expr, ...]) -> Expr:
    return Operation("not", (succeeds(needed),))


def or_none(f: Lifted, needed: tuple[Expr, ...], of: Shapes) -> Lifted:
    """Return a callable that returns None if one of `needed` raises."""
    return f.with_body(_attempt_after(f.body, needed, NONE))


def items_or_none(f: Lifted, needed: tuple[Expr, ...], of: Shapes) -> Lifted:
    """Return a callable that returns None if it raises; a generated tuple has None for single
    items.

    A generated tuple is, for example, the key of a group before another key.
    """
    if f.made is not None or not isinstance(f.body, Display) or f.body.kind != "tuple":
        return or_none(f, needed, of)
    items = [(item, hash_needs(item, of)) for item in f.body.items]
    return f.with_body(
        tuple_of(*(_attempt_after(i, some, NONE) if some else i for i, some in items))
    )


def _attempt_after(body: Expr, needed: tuple[Expr, ...], otherwise: Constant) -> Expr:
    return Attempt(body if needed == (body,) else First(needed, body), otherwise)


def flatten_needs(several: Iterable[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    """Return the parts of all tuples, each once."""
    return tuple(dict.fromkeys(expr for some in several for expr in some))


def all_of(body: Expr, tests: Sequence[Expr]) -> Expr:
    """Return the conjunction of the tests; the body itself if they are its conjuncts."""
    return body if tuple(tests) == conjuncts(body) else conjunction(tuple(tests))


@record
class Unpacks:
    """Callable that returns True if a row has `count` items; otherwise it raises as Python does."""

    count: int

    def __call__(self, row: Any) -> bool:
        if isinstance(row, tuple | str | bytes) and len(row) == self.count:
            return True
        if not isinstance(row, tuple | str | bytes):
            raise TypeError(f"cannot unpack {type(row).__name__} object {row!r:.60}")
        raise ValueError(f"cannot unpack {row!r:.60}: {self.count} values are needed")
