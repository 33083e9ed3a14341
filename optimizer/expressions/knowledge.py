"""Facts about an expression's value that need no evaluation.

A shape describes one binding of a row: a class of records with readable fields, a tuple of shapes
for a tuple display, or None. Tables refuse rows of other classes, so rows have the fields that
their dataclass, named tuple, `msgspec.Struct` or attrs class declares.

Sound:  `==`, `hash` and the truth of values do not raise, by the contract for rows.
"""

from __future__ import annotations

import builtins
import dataclasses
import inspect
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import FunctionType, WrapperDescriptorType
from typing import Any, TypeAlias, TypeVar

from optimizer.expr import (
    LEAVES,
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
    Local,
    Operation,
    Or,
    Outer,
    Parameter,
    Slot,
    Text,
    Within,
    parts,
)
from optimizer.kinds.fields import by_class
from optimizer.record import record

Shape: TypeAlias = "type | tuple[Shape, ...] | None"
Shapes = tuple[Shape, ...]

CANNOT_RAISE = frozenset({"is", "is not", "==", "!=", "not"})
TESTS = frozenset({*CANNOT_RAISE, "<", "<=", ">", ">=", "in", "not in"})
_PURE = (
    "abs bool bytes chr complex divmod float format frozenset hash hex int isinstance issubclass "
    "len max min ord pow range repr round str sum tuple type"
)
_MARK = "__pure_of_the_library__"
PURE = frozenset(
    {*(getattr(builtins, name) for name in _PURE.split()), date, datetime, timedelta, Decimal}
)


F = TypeVar("F", bound=Callable[..., Any])
MONOTONE = "monotone_in"
IS_NUMBER = "is_number"


OF_UNITS = "monotone_of_units"
NEAR = "monotone_below"
IS_BARE = "is_bare"


def monotone(
    *directions: int,
    is_number: bool = False,
    units: Sequence[str] = (),
    of_spans: Sequence[str] = (),
) -> Callable[[F], F]:
    """Mark a function of moments without a zone: its result, a span of time or a number, grows (1)
    or falls (-1) with an argument, or the argument is a constant (0).

    With `units`, it is so if the constants are among these; of a difference of moments, also if
    they are among `of_spans`.
    """

    def mark(function: F) -> F:
        found = (directions, units, of_spans) if units else directions
        function.__dict__[OF_UNITS if units else MONOTONE] = found
        function.__dict__[IS_NUMBER] = is_number
        return function

    return mark


def numeric(*directions: int) -> Callable[[F], F]:
    """Mark a function of numbers whose result grows (1) or falls (-1) with each."""

    def mark(function: F) -> F:
        function.__dict__[OF_UNITS] = directions, None, ()
        return function

    return mark


def monotone_below(limit: timedelta) -> Callable[[F], F]:
    """Mark the time from a second moment to a first one, which is exact for spans up to a limit,
    and not nearer to zero than the limit for longer ones."""

    def mark(function: F) -> F:
        function.__dict__[NEAR] = limit
        return function

    return mark


def bare(function: F) -> F:
    """Mark a function of moments whose result is the same without a zone as in UTC."""
    function.__dict__[IS_BARE] = True
    return function


def directions_in(
    function: Any, arguments: tuple[Expr, ...]
) -> tuple[Any, tuple[Expr, ...], tuple[int, ...]] | None:
    """Return a marked function, its arguments, and 1, -1 or 0 for each: its result grows or falls
    with the argument, or is not known to. Return None for a function that is not marked.

    A function that skips None is its first argument, called with the others.
    """
    if getattr(function, SKIPS_NONE, False) and arguments:
        called, *rest = arguments
        function, arguments = getattr(called, "value", None), tuple(rest)
    found = getattr(function, MONOTONE, None)
    if found is None and hasattr(function, OF_UNITS):
        directions, units, of_spans = getattr(function, OF_UNITS)
        constants = [each.value for each in arguments if isinstance(each, Constant)]
        known = units if units is None or not _is_span(arguments[-1]) else (*units, *of_spans)
        found = directions if known is None or all(each in known for each in constants) else None
    if found is None and getattr(function, RISES, False):
        found = (1, *[0] * (len(arguments) - 1))
    if found is None or len(found) != len(arguments):
        return None
    return function, arguments, found


def _is_span(expr: Expr) -> bool:
    """Return True for a call of a function that returns the time between two moments."""
    if not isinstance(expr, Call):
        return False
    function = getattr(expr.function, "value", None)
    if getattr(function, SKIPS_NONE, False) and expr.arguments:
        function = getattr(expr.arguments[0], "value", None)
    return hasattr(function, MONOTONE) and not getattr(function, IS_NUMBER, False)


IS_MONOTONE = "__is_monotone__"
"""The attribute of a function of the user's own that is declared to be monotone."""
RISES = "rises"
SKIPS_NONE = "skips_none"


def rises(function: F) -> F:
    """Mark a function whose result is a number that does not fall as its first argument grows."""
    function.__dict__[RISES] = True
    return function


def skips_none(function: F) -> F:
    """Mark a function that calls its first argument with the others, or returns None if one of
    these is None."""
    function.__dict__[SKIPS_NONE] = True
    return function


class ComparedLike:
    """Base of values that have a place in the order of other values, with which they compare.

    `value` is of the same family as the others.
    """

    __slots__ = ("value",)
    value: Any


class Pure:
    """Base of this library's callables that return the same value at each call, and no
    container."""

    __slots__ = ()


def pure(function: F) -> F:
    """Mark a function of this library that returns the same value at each call, and no container.

    Its calls cost little, so that an expression with them may be evaluated again.
    """
    function.__dict__[_MARK] = True
    return function


@record
class Bounded(Pure):
    """A callable of expressions: an integer, which must be in a range.

    Generated code compares integers inline, and calls this for other values only.

    >>> Bounded(-128, 127, "TINYINT")(5)
    5
    """

    low: int
    high: int
    name: str

    def __call__(self, value: Any) -> int:
        if self.low <= value <= self.high:
            return value  # type: ignore[no-any-return]
        raise ValueError(f"{value} is out of the range of {self.name}")

    def __repr__(self) -> str:
        return self.name


class Arranges(Pure):
    """Base of callables that sort collected pairs, and return the second part of each."""

    __slots__ = ()

    @property
    def descending(self) -> bool:
        """True if rows are sorted from the greatest down."""
        raise NotImplementedError

    def standing(self) -> Callable[[Any], Any]:
        """Return a function from the first part of a pair to the sort key of its row."""
        raise NotImplementedError

    def tie(self, row: Any) -> Any:
        """Return the sort key of a row among rows with equal keys."""
        raise NotImplementedError


class Foldable:
    """Base of collections that compute a `lifting.folds.Fold`, and their difference to an older
    version as values with weights."""

    __slots__ = ()
    _collects: bool = False
    """True if a call of the class with a comprehension is a fold itself."""

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        """Return the difference to an older version of the collection."""
        raise NotImplementedError

    def _folded(self, fold: Any, each: Any, beside: Any, options: Any) -> Any:
        """Return the result of the fold; without a stored fold, that of the written expression."""
        return fold.plain(each(self), options)


SAFE = frozenset({Parameter, Local, Outer, Constant, Slot, Guard, Attempt, Within})
"""Expressions that raise nothing, whatever they are made of."""


def total(expr: Expr, shapes: Shapes) -> bool:
    """Return True if evaluating an expression raises nothing, for rows of the given shapes."""
    match expr:
        case _ if expr.__class__ in SAFE:
            return True
        case Attribute(of, name):
            shape = shape_of(of, shapes)
            return isinstance(shape, type) and name in readable_fields(shape) and total(of, shapes)
        case Item(of, Constant(int() as position)):
            length = _length(shape_of(of, shapes))
            return length is not None and -length <= position < length and total(of, shapes)
        case Operation(operator, operands):
            return operator in CANNOT_RAISE and _are_total(operands, shapes)
        case And() | Or() | Conditional() | Display("tuple" | "list") | First() | Again():
            return _are_total(parts(expr), shapes)
        case Call(Constant(value), arguments):
            known = _always_answers(value, arguments) or makes_record(expr)
            return known and _are_total(parts(expr)[1:], shapes)
        case _:
            return False


def _are_total(exprs: Sequence[Expr], shapes: Shapes) -> bool:
    return all(total(expr, shapes) for expr in exprs if expr.__class__ not in SAFE)


def shape_of(expr: Expr, shapes: Shapes) -> Shape:
    """Return the shape of the value of an expression; None if it is not known."""
    match expr:
        case Parameter(index):
            return shapes[index] if index < len(shapes) else None
        case Outer(_, shape):
            return shape  # type: ignore[no-any-return]
        case Display("tuple", items):
            return tuple(shape_of(item, shapes) for item in items)
        case Call(Constant(type() as kind)) if makes_record(expr):
            return kind
        case First(_, then):
            return shape_of(then, shapes)
        case Item(of, Constant(int() as position)):
            outer = shape_of(of, shapes)
            inside = isinstance(outer, tuple) and -len(outer) <= position < len(outer)
            return outer[position] if inside else None  # type: ignore[index]
        case _:
            return None


def is_value(expr: Expr, shapes: Shapes) -> bool:
    """Return True if evaluating an expression twice is as good as once: it makes no iterator and no
    container."""
    match expr:
        case Parameter() | Local() | Constant():
            return True
        case Attribute():
            return total(expr, shapes)
        case Call(Constant(value)):
            given = parts(expr)[1:]
            known = makes_record(expr) or (_is_pure(value) and not any(map(_may_call, given)))
            return known and _are_values(given, shapes)
        case Apply() | Call() | Display("list" | "set" | "dict"):
            return False
        case _:
            return _are_values(parts(expr), shapes)


def _may_call(expr: Expr) -> bool:
    """Return True for a constant function that is not known to be pure: a call may call it."""
    return (
        isinstance(expr, Constant)
        and isinstance(expr.value, FunctionType)
        and not (_is_marked(expr.value))
    )


def _are_values(exprs: Sequence[Expr], shapes: Shapes) -> bool:
    return all(is_value(expr, shapes) for expr in exprs if expr.__class__ not in LEAVES)


def is_container(expr: Expr) -> bool:
    """Return True for a list, set or dict display, or a value that contains one: it has no hash."""
    match expr:
        case Display("tuple", inner) | And(inner) | Or(inner):
            return any(map(is_container, inner))
        case Display(kind):
            return kind != "slice"
        case Conditional(_, then, otherwise):
            return is_container(then) or is_container(otherwise)
        case First(_, then) | Item(then, _):
            return is_container(then)
        case _:
            return False


def is_of_values(expr: Expr, shapes: Shapes) -> bool:
    """Return True for a collection display of parts that can be evaluated twice.

    A query inside makes its own collection.
    """
    return is_container(expr) and all(
        is_value(part, shapes) or is_of_values(part, shapes) for part in parts(expr)
    )


def is_canonical(expr: Expr, shapes: Shapes) -> bool:
    """Return True if the value is one that rows hold, so that no NaN in it is a new object."""
    match expr:
        case Parameter() | Local():
            return True
        case Constant():
            return issubclass(expr.kind, int | str | bytes | None)
        case Attribute(of, _):
            return isinstance(of, Parameter) and total(expr, shapes)
        case Item(Parameter() as of, Constant()):
            return _length(shape_of(of, shapes), default=0) is not None
        case Operation(operator):
            return operator in TESTS
        case Display("tuple", items):
            return all(is_canonical(item, shapes) for item in items)
        case First(_, then):
            return is_canonical(then, shapes)
        case Attempt(of, otherwise):
            return is_canonical(of, shapes) and is_canonical(otherwise, shapes)
        case Conditional(_, then, otherwise):
            return is_canonical(then, shapes) and is_canonical(otherwise, shapes)
        case And(inner) | Or(inner):
            return all(is_canonical(part, shapes) for part in inner)
        case Call(Constant(value)):
            exact = isinstance(value, Bounded) or (
                _is_pure(value) and value in (len, isinstance, str, repr, ord, chr, hash)
            )
            inside = (is_canonical(part, shapes) for part in parts(expr)[1:])
            return exact or (makes_record(expr) and all(inside))
        case Text() | Formatted():
            return True
        case _:
            return False


def hashable(expr: Expr, shapes: Shapes) -> bool:
    """Return True if the value has a hash, because the hash of its row uses it."""
    match expr:
        case Parameter() | Constant():
            return True
        case Attribute(of, name):
            kind = shape_of(of, shapes)
            return isinstance(kind, type) and name in _hashed_fields(kind) and hashable(of, shapes)
        case Item(of, Constant()):
            return total(expr, shapes) and hashable(of, shapes)
        case _:
            return False


@by_class
def _hashed_fields(kind: type) -> frozenset[str]:
    """Return the fields that the hash of every row of a class uses."""
    if _is_named_tuple(kind):
        return readable_fields(kind)
    own: Any = kind
    config = getattr(own, "__struct_config__", None)
    if config is not None:
        generated = type(own.__hash__) is WrapperDescriptorType
        return frozenset(own.__struct_fields__ if generated and config.eq else ())
    file = getattr(getattr(own.__hash__, "__code__", None), "co_filename", "")
    if dataclasses.is_dataclass(kind) and file == "<string>":
        return frozenset(f.name for f in dataclasses.fields(kind) if f.compare and f.hash is None)
    if file.startswith("<attrs generated"):
        declared = getattr(own, "__attrs_attrs__", ())
        plain = (a for a in declared if a.eq is True and a.eq_key is None and a.hash is None)
        return frozenset(a.name for a in plain)
    return frozenset()


def row_is_hashed_by(kind: type, names: tuple[str, ...]) -> bool:
    """Return True if rows of a class are equal if and only if these fields are."""
    own: Any = kind
    if _is_named_tuple(kind):
        plain = own.__eq__ is tuple.__eq__ and own.__hash__ is tuple.__hash__
        return plain and names == own._fields
    code = getattr(own.__eq__, "__code__", None)
    return (
        code is not None
        and code.co_filename == "<string>"
        and _hashed_fields(kind) == {f.name for f in dataclasses.fields(own)} == set(names)
    )


def makes_record(expr: Expr) -> bool:
    """Return True for a call of the class of a plain record with an argument for each field."""
    if not isinstance(expr, Call) or not isinstance(expr.function, Constant):
        return False
    kind = expr.function.value
    names = constructor(kind) if isinstance(kind, type) else None
    if names is None:
        return False
    given = [*names[: len(expr.arguments)], *(name for name, _ in expr.keywords)]
    return len(given) == len(names) and set(given) == set(names)


def record_field(expr: Expr, name: str) -> Expr | None:
    """Return the expression for a field of the record or tuple that an expression makes, or
    None."""
    if not makes_record(expr):
        return None
    assert isinstance(expr, Call) and isinstance(expr.function, Constant)
    names = constructor(expr.function.value) or ()
    given = dict(zip(names, expr.arguments, strict=False)) | dict(expr.keywords)
    if name not in given and _begins_with_row(expr.function.value):
        return Attribute(expr.arguments[0], name)
    return given.get(name)


def record_item(expr: Call, position: int) -> Expr | None:
    """Return the expression for an item of a row that has others inside (`nested_rows`), or
    None."""
    if not makes_record(expr) or expr.keywords or not isinstance(expr.function, Constant):
        return None
    count = len(expr.arguments)
    is_there = "roots" in vars(expr.function.value) and -count <= position < count
    return expr.arguments[position] if is_there else None


def _begins_with_row(kind: Any) -> bool:
    """Return True if missing names of a named tuple are read of its first item (`nested_rows`)."""
    return _is_named_tuple(kind) and vars(kind).get("roots") == 1 and "__getattr__" in vars(kind)


@by_class
def readable_fields(kind: type) -> frozenset[str]:
    """Return the names of data that can be read of every instance."""
    reads: Any = kind.__getattribute__
    if "__getattr__" in dir(kind) or reads not in _PLAIN_READS:
        return frozenset()
    return frozenset(name for name in _constructor_fields(kind) if _is_plain_attribute(kind, name))


@by_class
def constructor(kind: type) -> tuple[str, ...] | None:
    """Return the parameters of a class that only stores its arguments; None for other classes."""
    if _is_named_tuple(kind):
        plain = kind.__new__ in _generated_new(kind)
        return tuple(kind._fields) if plain else None  # type: ignore[attr-defined]
    options: Any = getattr(kind, "__dataclass_params__", None)
    if not dataclasses.is_dataclass(kind) or "__dataclass_params__" not in vars(kind):
        return None
    own = vars(kind).get("__init__")
    generated = options.init and getattr(own, "__qualname__", "").endswith("__init__")
    if not generated or hasattr(kind, "__post_init__") or kind.__new__ is not object.__new__:
        return None
    if type(kind) is not type or _custom_init(kind):
        return None
    declared = dataclasses.fields(kind)
    simple = all(f.init and not f.kw_only for f in declared)
    return tuple(f.name for f in declared) if simple and readable_fields(kind) else None


def _custom_init(kind: type) -> bool:
    """Return True if the `__init__` of a dataclass was written; a generated one has no file."""
    code = getattr(vars(kind).get("__init__"), "__code__", None)
    return code is None or code.co_filename != "<string>"


def _generated_new(kind: Any) -> tuple[Any, ...]:
    """Return the `__new__` of a class in a tuple, if it was generated; else an empty tuple."""
    code = getattr(kind.__new__, "__code__", None)
    generated = code is not None and code.co_filename.startswith("<string>")
    return (kind.__new__,) if generated or "namedtuple" in str(code) else ()


def _constructor_fields(kind: Any) -> list[str]:
    """Return the names of the fields that a record's constructor takes, in their order."""
    if dataclasses.is_dataclass(kind):
        return [f.name for f in dataclasses.fields(kind) if f.init]
    if _is_named_tuple(kind):
        return list(kind._fields)
    if hasattr(kind, "__struct_fields__"):
        return list(kind.__struct_fields__)
    return [a.name for a in getattr(kind, "__attrs_attrs__", ()) if a.init]


def _is_plain_attribute(kind: type, name: str) -> bool:
    """Return True if reading the attribute runs no code of the user."""
    found = inspect.getattr_static(kind, name, None)
    reads = getattr(type(found), "__get__", None)
    return reads is None or (
        type(found).__module__ in ("builtins", "_collections", "collections", "msgspec")
        and (
            not isinstance(found, property | classmethod | staticmethod)
            and not inspect.isfunction(found)
        )
    )


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _length(shape: Shape, default: int | None = None) -> int | None:
    """Return the length of a tuple shape; `default` for tuple classes without fields, None for
    others."""
    if isinstance(shape, tuple):
        return len(shape)
    if isinstance(shape, type) and issubclass(shape, tuple):
        return len(shape._fields) if hasattr(shape, "_fields") else default
    return None


def _is_pure(value: Any) -> bool:
    """Return True for a callable known to be pure; False if it cannot be hashed."""
    try:
        return isinstance(value, Pure) or value in PURE or _is_marked(value)
    except TypeError:
        return False


def _is_marked(value: Any) -> bool:
    return isinstance(value, FunctionType) and _MARK in value.__dict__


def _always_answers(value: Any, arguments: tuple[Expr, ...]) -> bool:
    """Return True for a call of a built-in that raises for no value, such as `type(x)`."""
    if value is isinstance:
        return len(arguments) == 2 and _is_class(arguments[1])
    return value in (type, callable, id) and len(arguments) == 1 if _hashable(value) else False


def _is_class(expr: Expr) -> bool:
    return isinstance(expr, Constant) and isinstance(expr.value, type) and type(expr.value) is type


def _hashable(value: Any) -> bool:
    return isinstance(value, type) or callable(value)


_PLAIN_READS: tuple[Any, ...] = (object.__getattribute__, tuple.__getattribute__)
