"""Values that expressions over the rows of a node may have, and what follows for its inputs.

    select (i.name, i.file)         wanted    row in {("os", "a.py")}
      imports i                     so that   (i.name, i.file) in {("os", "a.py")}

    join on o.customer == c.id      customers found:  c.id in {1, 7}
      orders o                      so that           o.customer in {1, 7}

What is wanted of an input is necessary for a wanted row, and need not suffice: whoever asks tests
the rows that are made. A value is compared as by `==`, and every NaN is one value.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from optimizer.expr import (
    Again,
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    First,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    conjuncts,
    parts,
    reads,
    rebuilt,
    row_names,
    transform,
)
from optimizer.expressions.knowledge import constructor
from optimizer.kinds.fields import compared_names
from optimizer.record import record
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.runtime.interrupts import reraise_asynchronous

UNKNOWN: Any = object()
"""A value that could not be computed."""


@record
class Wanted:
    """Expressions over the bindings of a node, and the tuples of values that they may have."""

    exprs: tuple[Expr, ...]
    values: frozenset[tuple[Any, ...]]


def wanted(exprs: Sequence[Expr], values: Iterable[tuple[Any, ...]]) -> Wanted | None:
    """Return what is wanted; None if values have no hash, so that nothing can be looked up."""
    try:
        made = frozenset(tuple(map(canonical, value)) for value in values)
    except TypeError:
        return None
    return _plain(Wanted(tuple(exprs), made))


def wanted_row(row: Row, count: int) -> Wanted | None:
    """Return what is wanted for one row of a node with `count` bindings."""
    return wanted(all_parameters(count), [(row,) if count == 1 else row])


def through(asked: Wanted, outputs: Sequence[Expr | None]) -> Wanted | None:
    """Return what is wanted of an input, of which the bindings of a node are the `outputs`.

    An output that is None is not known; return None if nothing is known.
    """
    places = [place for place, expr in enumerate(asked.exprs) if _is_known(expr, outputs)]
    if not places:
        return None

    def change(expr: Expr) -> Expr:
        found = outputs[expr.index] if isinstance(expr, Parameter) else None
        return expr if found is None else found

    exprs = tuple(transform(asked.exprs[place], change) for place in places)
    values = asked.values
    if len(places) < len(asked.exprs):
        values = frozenset(tuple(value[place] for place in places) for value in values)
    return _plain(Wanted(exprs, values))


def _is_known(expr: Expr, outputs: Sequence[Expr | None]) -> bool:
    read = reads(expr)
    return bool(read) and all(outputs[place] is not None for place in read)


def _plain(asked: Wanted) -> Wanted:
    """Return the same wanted values, of the parts of what is written out: tuples and records."""
    exprs, values = list(asked.exprs), [list(value) for value in asked.values]
    place = 0
    while place < len(exprs):
        expr = exprs[place] = _simple(exprs[place])
        made = _parts(expr)
        if made is not None:
            kept, exprs[place : place + 1] = made
            values = [v for v in values if _split(v, place, kept)]
        elif isinstance(expr, Constant):
            values = [v for v in values if canonical(expr.value) == v[place]]
            del exprs[place]
            for value in values:
                del value[place]
        else:
            place += 1
    return Wanted(tuple(exprs), frozenset(map(tuple, values)))


def _split(value: list[Any], place: int, kept: int | tuple[type, tuple[str, ...]]) -> bool:
    """Replace a value by its parts; return False if it is no such tuple or record."""
    whole = value[place]
    if isinstance(kept, int):
        if not isinstance(whole, tuple) or len(whole) != kept:
            return False
        value[place : place + 1] = whole
        return True
    kind, names = kept
    if type(whole) is not kind:
        return False
    value[place : place + 1] = [canonical(getattr(whole, name)) for name in names]
    return True


def _parts(expr: Expr) -> tuple[Any, tuple[Expr, ...]] | None:
    """Return the parts of a tuple or record that is written out, and how its value is split."""
    match expr:
        case Display("tuple", items):
            return len(items), items
        case Call(Constant(type() as kind)):
            arguments = _arguments(expr)
            if arguments is None or not _is_compared_by_fields(kind):
                return None
            names = tuple(name for name in compared_names(kind) if name in arguments)
            return (kind, names), tuple(arguments[name] for name in names)
    return None


def _is_compared_by_fields(kind: type) -> bool:
    """Return True if records of a class are equal exactly if their compared fields are."""
    if issubclass(kind, tuple):
        return kind.__eq__ is tuple.__eq__
    code = getattr(vars(kind).get("__eq__"), "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _arguments(call: Call) -> dict[str, Expr] | None:
    """Return the arguments of a constructor by field; None for other calls."""
    kind = call.function.value if isinstance(call.function, Constant) else None
    names = constructor(kind) if inspect.isclass(kind) else None
    if names is None or len(call.arguments) > len(names):
        return None
    return dict(zip(names, call.arguments, strict=False)) | dict(call.keywords)


def _simple(expr: Expr) -> Expr:
    """Return an expression without the parts of written records that it does not read."""
    while True:
        match expr:
            case First(_, then) | Again(then):
                expr = then
            case Item(Display("tuple", items), Constant(int() as place)) if (
                -len(items) <= place < len(items)
            ):
                expr = items[place]
            case Attribute(Call() as call, name):
                found = _arguments(call)
                if found is None or name not in found:
                    return expr
                expr = found[name]
            case Attribute(of, name):
                inner = _simple(of)
                if inner is of:
                    return expr
                expr = Attribute(inner, name)
            case Item(of, key):
                inner = _simple(of)
                if inner is of:
                    return expr
                expr = Item(inner, key)
            case _:
                return expr


# Equations in conditions.


@record
class EqualParts:
    """Two expressions that are equal for all rows that a condition keeps.

    `one` and `other` read different bindings; one of them may read none.
    """

    one: Expr
    other: Expr


def equations_in(tests: Iterable[Any]) -> list[EqualParts]:
    """Return the equations that hold if all of the tests do, callables of the same bindings."""
    found = []
    for test in tests:
        if not isinstance(test, Lifted):
            continue
        for part in conjuncts(_simple(test.body)):
            match _simple(part):
                case Operation("==", (one, other)) if reads(one).isdisjoint(reads(other)):
                    found.append(EqualParts(one, other))
    return found


def constants_in(tests: Iterable[Any]) -> Iterator[tuple[Expr, Constant]]:
    """Yield the expressions that equal a constant if all of the tests hold, with the constant."""
    for equation in equations_in(tests):
        for one, other in ((equation.one, equation.other), (equation.other, equation.one)):
            if isinstance(other, Constant) and reads(one):
                yield one, other


def moved(expr: Expr, places: dict[int, int]) -> Expr:
    """Return an expression over other bindings: `places` has the new places of those it reads."""

    def change(part: Expr) -> Expr:
        return Parameter(places[part.index]) if isinstance(part, Parameter) else part

    return transform(expr, change)


def as_bindings(expr: Expr, place: int, count: int) -> Expr:
    """Return an expression over the bindings of an input, which is one binding at `place`.

    A row of `count` bindings is a tuple as one binding: its items are the bindings.
    """

    def change(part: Expr) -> Expr:
        match part:
            case Item(Parameter(index), Constant(int() as item)) if index == place and count > 1:
                return Parameter(item) if 0 <= item < count else part
            case Parameter(index) if index == place:
                whole = all_parameters(count)
                return whole[0] if count == 1 else Display("tuple", whole)
        return part

    return _rewritten(expr, change)


def _rewritten(expr: Expr, change: Any) -> Expr:
    """Return an expression with its parts changed, the outermost that is changed first."""
    new = change(expr)
    if new is not expr:
        return new  # type: ignore[no-any-return]
    below = tuple(_rewritten(part, change) for part in parts(expr))
    return rebuilt(expr, below) if below else expr


class Evaluator:
    """Evaluates expressions over the bindings of rows; each is compiled once."""

    def __init__(self) -> None:
        self._called: dict[tuple[tuple[Expr, ...], int], Any] = {}

    def of(self, exprs: tuple[Expr, ...], count: int) -> Any:
        """Return a function of a row with `count` bindings; its result has a value of each.

        The result is `UNKNOWN` where an expression raises, or its value has no hash.
        """
        found = self._called.get((exprs, count))
        if found is None:
            made = Lifted(Display("tuple", exprs), row_names(count), (), count)
            found = self._called[exprs, count] = _guarded(callable_of(made), count)
        return found


def _guarded(call: Any, count: int) -> Any:
    def values(row: Row) -> Any:
        try:
            found = canonical(call(row) if count == 1 else call(*row))
            hash(found)
        except Exception as error:  # the query itself says what is wrong with the row
            reraise_asynchronous(error)
            return UNKNOWN
        return found

    return values
