"""Rewrites of expressions: constant folding, `&` and `|` of conditions, facts of declared fields.

`fold_node` folds constants: plain arithmetic, attributes of modules, enums.

Only immutable values of built-in types are folded, so that no code of the user runs. An expression
that raises is not folded: it raises where it is written.

`asked_in_turn` rewrites conditions to `and` and `or`: those joined by `&` and `|`, and others whose
result is only tested.

    s.age > 30 if s.name == m.name else False   s.name == m.name and s.age > 30
    not (s.name != m.name or s.age <= 30)       not s.name != m.name and not s.age <= 30
    bool(s.name == m.name)                      s.name == m.name

    (s.name == m.name) & (s.age > 30)           s.age > 30 and s.name == m.name

For two bools, `p & q` is `p and q`, except that both are evaluated: q raises also if p is false. A
part that cannot raise may be skipped if another part decides, so parts that may raise come first.
Several parts that may raise stay joined as written, and are all evaluated.

For other values `&` is not `and`: `2 & 1` is 0, and columns of numbers are joined item by item. So
each part must be True or False: `not`, `is` and `in` always are; `==`, `<` and others are for
constants and fields that are declared as built-in values. Declarations are trusted, because type
checkers check them.

`is_declared` and its callers read facts about values from the declarations of fields.

    @dataclass(frozen=True)
    class Sale:
        id: int                     holds no NaN; is no tuple
        price: float | None         may be NaN;   is no tuple
        place: tuple[int, str]      holds no NaN; may be a tuple
        note: Any                   no facts
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import reduce
from operator import is_
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from optimizer.callables.captures import meaning
from optimizer.expr import (
    NONE,
    Again,
    And,
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
    Operation,
    Or,
    Parameter,
    Slot,
    SlotValue,
    Text,
    conjunction,
    constant,
    parts,
    rebuilt,
)
from optimizer.expressions import constant_moments
from optimizer.expressions.knowledge import Bounded, Shapes, shape_of, total
from optimizer.kinds.fields import by_class
from optimizer.kinds.kind import (
    Anything,
    Choice,
    Either,
    Items,
    Kind,
    Places,
    Scalar,
    class_of,
    hints_of,
    is_uuid,
    kind_of,
    without_none,
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
TEXT = "f-string"
"""The operation that joins the values of an f-string."""
CONVERSIONS: dict[str, Callable[[Any], Any]] = {"!s": str, "!r": repr, "!a": ascii}
COMPUTED = frozenset({"+", "-", "*"})
"""Operators of numbers whose operands' classes decide the class of the result."""
NUMBERS = (int, float)
GIVE_BOOL = frozenset({"in", "not in", "is", "is not", "not"})
"""Operators whose results are True or False and nothing else."""
UNARY: dict[str, Any] = {
    "not": operator.not_,
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
}


SYMBOLS: dict[Any, tuple[str, int]] = {
    function: (symbol, count)
    for count, functions in ((2, BINARY), (1, UNARY))
    for symbol, function in functions.items()
    if type(function) is BuiltinFunctionType
}
"""The operators of functions, such as `operator.eq`, with the number of their operands."""


def evaluated_attribute(of: Expr, name: str) -> Expr:
    """Return an attribute; for a module or an enumeration its value, if that is code or plain
    data."""
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


def fold_node(expr: Expr) -> Expr:
    """Simplify a node that constants decide; return any other node unchanged.

    The parts of the node must be evaluated already.
    """
    match expr:
        case Operation(symbol, operands) if symbol in COMPUTED and _are_slots(operands):
            return _of_slots(expr, symbol, operands)
        case Operation(symbol, operands) if all(map(_is_plain_constant, operands)):
            return _operation(expr, symbol, [o.value for o in operands])  # type: ignore[attr-defined]
        case Operation("+" | "-" | "*" | "/" | "//", operands) if any(
            isinstance(o, Constant) and o.kind in (date, datetime, timedelta) for o in operands
        ):
            return constant_moments.fold_arithmetic(expr, expr.operator, operands)
        case Operation("is" | "is not" as symbol, (Display("tuple") as made, other)) if (
            other == NONE and _is_of_leaves(made)
        ):
            return constant(symbol == "is not")
        case Operation("not", (Operation("not", (Operation(asked) as inner,)),)) if (
            asked in GIVE_BOOL
        ):
            return inner
        case And(parts):
            return _junction(expr, parts, stop=False)
        case Or(parts):
            return _junction(expr, parts, stop=True)
        case Call(Constant(function), arguments, ()) if type(function) is BuiltinFunctionType and (
            known := _symbol_of(function, arguments)
        ):
            return fold_node(Operation(known, arguments))
        case Call(Constant(kind), arguments, options) if any(
            kind is each for each in (date, datetime, timedelta)
        ):
            return constant_moments.fold_moment(expr, kind, arguments, options)
        case Conditional(Constant() as test, then, otherwise) if _is_plain_constant(test):
            return then if test.value else otherwise
        case First(needs, then):
            rest = tuple(n for n in needs if not isinstance(n, Constant))
            return then if not rest else expr if len(rest) == len(needs) else First(rest, then)
        case Attempt(Constant() as of):
            return of
        case Text(pieces) if any(isinstance(piece, Formatted) for piece in pieces):
            return _folded_text(expr, pieces)
        case _:
            return expr


def _symbol_of(function: Any, arguments: tuple[Expr, ...]) -> str | None:
    """Return the operator of a function of the module `operator`; None for other functions."""
    found = SYMBOLS.get(function)
    return found[0] if found is not None and found[1] == len(arguments) else None


def _is_of_leaves(expr: Expr) -> bool:
    """Return True for a parameter, a constant, or a tuple of these: it raises nothing."""
    if isinstance(expr, Display) and expr.kind == "tuple":
        return all(map(_is_of_leaves, expr.items))
    return isinstance(expr, LEAVES)


def fold_arithmetic(symbol: str, values: Sequence[Any]) -> Any:
    """Return the result of arithmetic on numbers; None if it is not evaluated beforehand.

    `TEXT` joins values, each followed by its conversion and its format.

    >>> fold_arithmetic("+", (1, 500)), fold_arithmetic("*", (2**40, 2**40))
    (501, None)
    >>> fold_arithmetic(TEXT, ("R", "", "", 7, "", "03d"))
    'R007'
    """
    if symbol == TEXT:
        return _join_text(values)
    try:
        found = (UNARY if len(values) == 1 else BINARY)[symbol](*values)
    except ArithmeticError:
        return None
    return found if _is_small(found) and found == found else None


def _join_text(values: Sequence[Any]) -> str | None:
    """Return the text of an f-string; None if a format raises, or the text is long."""
    try:
        text = "".join(
            format(CONVERSIONS[conversion](value) if conversion else value, form)
            for value, conversion, form in zip(values[::3], values[1::3], values[2::3], strict=True)
        )
    except (ValueError, TypeError, OverflowError):  # it will raise where it is written
        return None
    return text if _is_small(text) else None


def _folded_text(expr: Expr, pieces: tuple[Expr, ...]) -> Expr:
    """Return an f-string of constants as one constant; any other f-string unchanged."""
    operands: list[Any] = []
    for piece in pieces:
        of, conversion, form = (
            (piece.value, piece.conversion, _constant_form(piece.spec))
            if isinstance(piece, Formatted)
            else (piece, "", "")
        )
        if (
            form is None
            or not isinstance(of, Constant)
            or of.kind not in (*NUMBERS, bool, str, type(None))
        ):
            return expr
        operands += (of.held if isinstance(of, Slot) else of.value, conversion, form)
    if any(isinstance(each, SlotValue) for each in operands):
        return _computed_slot(expr, TEXT, operands)
    text = _join_text(operands)
    return expr if text is None else constant(text)


def _constant_form(spec: Expr | None) -> str | None:
    """Return the format after a colon, if it is written out and does not depend on the locale."""
    pieces = spec.parts if isinstance(spec, Text) else () if spec is None else (spec,)
    written = [each.value for each in pieces if type(each) is Constant and each.kind is str]
    form = "".join(written)
    return form if len(written) == len(pieces) and not form.endswith("n") else None


def _of_slots(expr: Expr, symbol: str, operands: tuple[Expr, ...]) -> Expr:
    """Return the slot of arithmetic on slots, whose value is computed of theirs."""
    parts = [each.held if isinstance(each, Slot) else each.value for each in operands]  # type: ignore[attr-defined]
    return _computed_slot(expr, symbol, parts)


def _computed_slot(expr: Expr, symbol: str, parts: Sequence[Any]) -> Expr:
    """Return the slot of an operation on values, some in slots.

    Return the expression itself if it has no value; the operands' slots note that they were read.
    """
    first = next(each for each in parts if isinstance(each, SlotValue))
    key = (symbol, *[id(each) if isinstance(each, SlotValue) else meaning(each) for each in parts])
    found = first.computed.get(key)
    if found is None:
        value = fold_arithmetic(symbol, [p.value if isinstance(p, SlotValue) else p for p in parts])
        found = first.computed[key] = SlotValue(value, by=symbol, operands=tuple(parts))
    return expr if found.value is None else Slot(found)


def _are_slots(operands: tuple[Expr, ...]) -> bool:
    """Return True if the operands are constant numbers, some of them slots."""
    are_numbers = all(isinstance(o, Constant) and o.kind in NUMBERS for o in operands)
    return are_numbers and any(isinstance(o, Slot) for o in operands)


def _operation(expr: Expr, symbol: str, values: list[Any]) -> Expr:
    """Return the result of an operation on constants; `expr` if it raises or is large."""
    if symbol in ("is", "is not") and not any(v is None or isinstance(v, bool) for v in values):
        return expr
    compute = UNARY.get(symbol) if len(values) == 1 else BINARY.get(symbol)
    if compute is None or (
        symbol == "*" and any(isinstance(v, str | bytes | tuple) for v in values)
    ):
        return expr
    try:
        result = compute(*values)
    except Exception:  # it will raise where it is written
        return expr
    return constant(result) if _is_small(result) else expr


def _junction(expr: Expr, parts: tuple[Expr, ...], *, stop: bool) -> Expr:
    """Drop the constants that do not decide; stop at the first that does.

    `expr` is an And or Or of `parts`, and `stop` the value that decides. Return `expr` itself
    if nothing is dropped.
    """
    kept: list[Expr] = []
    for place, part in enumerate(parts):
        inner = part.parts if type(part) is type(expr) else (part,)  # type: ignore[attr-defined]
        last = place == len(parts) - 1
        if _is_plain_constant(part):
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


def _is_plain_constant(expr: Expr) -> bool:
    """Return True for a constant of a plain class, or a short tuple or set of plain values."""
    if not isinstance(expr, Constant) or (expr.kind is not tuple and expr.kind is not frozenset):
        return isinstance(expr, Constant) and expr.kind in PLAIN
    value = expr.value
    return len(value) <= LONGEST and all(type(v) in PLAIN for v in value)


def _is_small(value: Any) -> bool:
    """Return True for a value that may become part of a plan: neither a large integer nor a long
    text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return -LARGEST < value < LARGEST
    return not isinstance(value, str | bytes) or len(value) <= LONGEST


BITWISE = frozenset({"&", "|"})
ALWAYS = frozenset({"not", "is", "is not", "in", "not in"})
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
ORDERS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
BOOLEAN_CALLS = (isinstance, issubclass, callable, bool)
PLAIN_CALLS = (*BOOLEAN_CALLS, len, str, repr, ord, chr, hash, id)
_PLAIN: frozenset[Any] = frozenset(
    {
        *(int, float, complex, bool, str, bytes, type(None), None, Decimal, Fraction),
        *(date, time, timedelta, tzinfo),
    }
)


def asked_in_turn(expr: Expr, shapes: Shapes) -> Expr:
    """Return a test of rows of the given shapes with `and` and `or` for equivalent `&` and `|`.

    Return the test itself if it has none.
    """
    match expr:
        case Operation("&" | "|" as operator):
            operands = _operands_of_chain(expr, operator)
            if not all(is_boolean(operand, shapes) for operand in operands):
                return expr
            return _join_in_turn(expr, operator, operands, shapes)
        case Operation("not", (Operation("not", (inner,)),)):
            return asked_in_turn(inner, shapes)
        case Operation("not", (Or(tests),)):
            return asked_in_turn(And(tuple([_negation(test) for test in tests])), shapes)
        case And() | Or() | Operation("not"):
            return _with_tests(expr, parts(expr), shapes)
        case Conditional():
            found = _without_decided_branch(expr)
            if found is not expr:
                return asked_in_turn(found, shapes)
            return _with_tests(expr, parts(expr), shapes)
        case Call(Constant(function), (inner,), ()) if function is bool:
            return asked_in_turn(inner, shapes)
        case First(needs, then):
            new = asked_in_turn(then, shapes)
            return expr if new is then else First(needs, new)
        case _:
            return expr


def _negation(test: Expr) -> Expr:
    return Operation("not", (test,))


def _without_decided_branch(expr: Conditional) -> Expr:
    """Return a condition with `and` or `or` in the place of a branch that is True or False.

    x if t else False   ->   t and x            False if t else x   ->   not t and x
    x if t else True    ->   not t or x         True if t else x    ->   t or x
    """
    test, then, otherwise = expr.test, expr.then, expr.otherwise
    if _is_literal(otherwise, False):
        return And((test, then))
    if _is_literal(then, False):
        return And((_negation(test), otherwise))
    if _is_literal(then, True):
        return Or((test, otherwise))
    return Or((_negation(test), then)) if _is_literal(otherwise, True) else expr


def _is_literal(expr: Expr, value: bool) -> bool:
    is_written = isinstance(expr, Constant) and not isinstance(expr, Slot)
    return is_written and expr.kind is bool and expr.value is value  # type: ignore[attr-defined]


def _with_tests(expr: Expr, tests: tuple[Expr, ...], shapes: Shapes) -> Expr:
    """Return an expression with other tests, each with `and` and `or` for `&` and `|`; itself if
    none differ."""
    new = tuple([asked_in_turn(test, shapes) for test in tests])
    return expr if all(map(is_, new, tests)) else rebuilt(expr, new)


def _join_in_turn(expr: Expr, operator: str, operands: tuple[Expr, ...], shapes: Shapes) -> Expr:
    """Join first all tests that may raise, then the others.

    `operator` is that of `expr`. Return `expr` itself if every operand is a test that may
    raise, and nothing changes.
    """
    tests = tuple([asked_in_turn(operand, shapes) for operand in operands])
    raising = [test for test in tests if not total(test, shapes)]
    quiet = [test for test in tests if total(test, shapes)]
    if not quiet and all(map(is_, tests, operands)):
        return expr
    if len(raising) > 1:
        raising = [reduce(lambda a, b: Operation(operator, (a, b)), raising)]
    joined = (*raising, *quiet)
    if len(joined) == 1:
        return joined[0]
    return And(joined) if operator == "&" else Or(joined)


def _operands_of_chain(expr: Expr, operator: str) -> tuple[Expr, ...]:
    """Return the operands of a chain of one operator, in the order of evaluation."""
    if not isinstance(expr, Operation) or expr.operator != operator:
        return (expr,)
    return tuple(
        inner for operand in expr.operands for inner in _operands_of_chain(operand, operator)
    )


def unproven(expr: Expr, shapes: Shapes) -> Expr | None:
    """Return the first condition joined to others by `&` or `|` that may not be a bool.

    Return None if no condition is joined, as in `s.tags & m.tags`.
    """
    match expr:
        case Operation("&" | "|" as operator):
            operands = _operands_of_chain(expr, operator)
            if not any(map(_is_condition, operands)):
                return None
            return next((part for part in operands if not is_boolean(part, shapes)), None)
        case And() | Or() | Operation("not") | Conditional() | First():
            found = (unproven(part, shapes) for part in parts(expr))
            return next((part for part in found if part is not None), None)
        case _:
            return None


def _is_condition(expr: Expr) -> bool:
    return isinstance(expr, Operation) and expr.operator in COMPARISONS | ALWAYS


def is_boolean(expr: Expr, shapes: Shapes) -> bool:
    """Return True if the value is True or False, for rows of the given shapes."""
    match expr:
        case Constant():
            return expr.kind is bool
        case Guard() | Operation("not" | "is" | "is not" | "in" | "not in"):
            return True
        case Operation(operator, operands) if operator in COMPARISONS:
            return all(is_plain(operand, shapes) for operand in operands)
        case Operation(operator, operands) if operator in BITWISE:
            return all(is_boolean(operand, shapes) for operand in operands)
        case And(inner) | Or(inner):
            return all(is_boolean(part, shapes) for part in inner)
        case Conditional(_, then, otherwise):
            return is_boolean(then, shapes) and is_boolean(otherwise, shapes)
        case First(_, then) | Again(then):
            return is_boolean(then, shapes)
        case Attempt(of, otherwise):
            return is_boolean(of, shapes) and is_boolean(otherwise, shapes)
        case Call(Constant(value)):
            return any(value is known for known in BOOLEAN_CALLS)
        case _:
            return False


def is_plain(expr: Expr, shapes: Shapes) -> bool:
    """Return True if the value is of a built-in class: comparisons of such values are True or
    False."""
    match expr:
        case Constant():
            return expr.kind is not tuple and _is_plain_class(expr.kind)
        case Attribute():
            return is_declared(expr, shapes, _is_plain_class)
        case Operation(operator, operands) if operator in ARITHMETIC:
            return all(is_plain(operand, shapes) for operand in operands)
        case Display("tuple", items):
            return all(is_plain(item, shapes) for item in items)
        case Call(Constant(value)):
            return isinstance(value, Bounded) or any(value is known for known in PLAIN_CALLS)
        case Text():
            return True
        case First(_, then):
            return is_plain(then, shapes)
        case Conditional(_, then, otherwise):
            return is_plain(then, shapes) and is_plain(otherwise, shapes)
        case _:
            return is_boolean(expr, shapes)


def _is_plain_class(kind: Any) -> bool:
    """Return True for a class with the usual `==`; an enum with an order or `==` of its own has
    not."""
    if isinstance(kind, enum.EnumMeta):  # compare by value or by identity
        own = kind.__mro__[: kind.__mro__.index(enum.Enum)]
        return not {name for base in own if base not in _PLAIN for name in vars(base)} & ORDERS
    try:
        known = kind is tuple or kind in _PLAIN or is_uuid(kind)
        return known or (isinstance(kind, type) and kind.__module__ == "datetime")
    except TypeError:  # no hash: no class
        return False


Fits = Callable[[Any], bool]
"""Returns True for a class that fits; it may be called with other objects."""
ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%"})
_WITHOUT_NAN: frozenset[Any] = frozenset(
    {int, bool, str, bytes, type(None), None, date, datetime, time, timedelta}
)

_SCALARS = (int, float, bool, str, bytes, Decimal, date, datetime, time, timedelta)


def zone_of(hint: Any) -> tzinfo | None:
    """Return the time zone of a field of zoned datetimes: `Annotated[datetime, zone]`, or None.

    >>> from datetime import timezone
    >>> from typing import Annotated
    >>> zone_of(Annotated[datetime, timezone.utc] | None), zone_of(datetime)
    (datetime.timezone.utc, None)
    """
    kind = without_none(kind_of(hint))
    return kind.zone if isinstance(kind, Scalar) else None


def may_be_moment(expr: Operation) -> bool:
    """Return False for an operation whose value is no datetime: `a * b`, `a + 1`.

    >>> may_be_moment(Operation("+", (Parameter(0), Parameter(1))))
    True
    """
    numbers = (isinstance(o, Constant) and o.kind in (int, float, bool) for o in expr.operands)
    return expr.operator in ("+", "-") and len(expr.operands) == 2 and not any(numbers)


@by_class
def zoned_fields(kind: Any) -> frozenset[str]:
    """Return the fields of a class that are declared with a time zone; none for other objects."""
    if not isinstance(kind, type):
        return frozenset()
    return frozenset(name for name, hint in hints_of(kind).items() if zone_of(hint) is not None)


def tuple_width(annotation: Any) -> int | None:
    """Return the number of items that tables require for a row of this type, or None.

    >>> tuple_width(tuple[int, str]), tuple_width(tuple[int, ...]), tuple_width(tuple)
    (2, None, None)
    """
    kind = kind_of(annotation)
    return len(kind.items) or None if isinstance(kind, Places) else None


def holds_no_nan(expr: Expr, shapes: Shapes) -> bool:
    """Return True if the value equals itself, and so do the parts of a tuple."""
    match expr:
        case Constant():
            return expr.kind in _WITHOUT_NAN or is_uuid(expr.kind)
        case Operation(operator, operands) if operator in ARITHMETIC:
            return all(holds_no_nan(operand, shapes) for operand in operands)
        case _:
            return is_declared(expr, shapes, _is_without_nan)


def is_no_tuple(expr: Expr, shapes: Shapes) -> bool:
    """Return True if the value is no tuple, or a tuple without NaN."""
    return holds_no_nan(expr, shapes) or is_declared(expr, shapes, _is_no_tuple)


def is_not_none(expr: Expr, shapes: Shapes) -> bool:
    """Return True if the value is not None, and not equal to None: a field of a plain class.

    >>> from optimizer.expr import Attribute, Parameter
    >>> from typing import NamedTuple
    >>> Row = NamedTuple("Row", [("id", int), ("note", str | None)])
    >>> [is_not_none(Attribute(Parameter(0), name), (Row,)) for name in ("id", "note")]
    [True, False]
    """
    return is_declared(expr, shapes, _is_scalar_class)


def is_declared(expr: Expr, shapes: Shapes, fits: Fits) -> bool:
    """Return True for a field that is declared with classes that fit, and no others."""
    match expr:
        case Attribute(Parameter() as of, name):
            kind = shape_of(of, shapes)
            return isinstance(kind, type) and name in _fields_that_fit(kind, fits)
        case _:
            return False


@by_class
def _fields_that_fit(kind: type, fits: Fits) -> frozenset[str]:
    """Return the names of the fields of a class whose declared kinds all fit."""
    found = {name: kind_of(hint) for name, hint in hints_of(kind).items()}
    return frozenset(
        name for name, declared in found.items() if _names_only_fitting(declared, fits)
    )


def _names_only_fitting(kind: Kind, fits: Fits) -> bool:
    """Return True if a kind names classes that fit; for a tuple, its items, if tuples fit."""
    match kind:
        case Anything():
            return False
        case Either(kinds):
            return all(_names_only_fitting(each, fits) for each in kinds)
        case Choice(values):
            return all(isinstance(value, Enum) or fits(type(value)) for value in values)
        case Places(items):
            return fits(tuple) and all(_names_only_fitting(each, fits) for each in items)
        case Items(item=item) if class_of(kind) is tuple:
            return fits(tuple) and _names_only_fitting(item, fits)
        case _:
            return fits(class_of(kind))


def _is_without_nan(kind: Any) -> bool:
    """Return True for a class whose values are never NaN; False for unhashable kinds."""
    try:
        return kind is tuple or kind in _WITHOUT_NAN or is_uuid(kind)
    except TypeError:  # no hash: no class
        return False


def _is_scalar_class(kind: Any) -> bool:
    return any(kind is known for known in _SCALARS)


def _is_no_tuple(kind: Any) -> bool:
    """Return True for a class that no tuple is an instance of; False if that cannot be tested."""
    try:
        return kind is not Any and isinstance(kind, type) and not issubclass(tuple, kind)
    except TypeError:  # a protocol without support for `issubclass`
        return False
