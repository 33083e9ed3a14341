"""What the declarations of fields say of values; they are trusted, as a type checker looks at them.

@dataclass(frozen=True)
class Sale:
    id: int                     holds no NaN; is no tuple
    price: float | None         may be NaN;   is no tuple
    place: tuple[int, str]      holds no NaN; may be a tuple
    note: Any                   nothing is known
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from typing import Any

from optimizer.expr import Attribute, Constant, Expr, Operation, Parameter
from optimizer.expressions.knowledge import Shapes, shape_of
from optimizer.kinds.class_facts import by_class
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

Fits = Callable[[Any], bool]
"""Whether a class is one of those that are asked for; it may be given what is no class."""
ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%"})
_WITHOUT_NAN: frozenset[Any] = frozenset(
    {int, bool, str, bytes, type(None), None, date, datetime, time, timedelta}
)

_PLAIN = (int, float, bool, str, bytes, Decimal, date, datetime, time, timedelta)


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
    """Return False of an operation whose value is no datetime: `a * b`, `a + 1`.

    >>> may_be_moment(Operation("+", (Parameter(0), Parameter(1))))
    True
    """
    numbers = (isinstance(o, Constant) and o.kind in (int, float, bool) for o in expr.operands)
    return expr.operator in ("+", "-") and len(expr.operands) == 2 and not any(numbers)


@by_class
def zoned_fields(kind: Any) -> frozenset[str]:
    """Return the fields of a class that are declared with a time zone; none of what is no class."""
    if not isinstance(kind, type):
        return frozenset()
    return frozenset(name for name, hint in hints_of(kind).items() if zone_of(hint) is not None)


def tuple_width(annotation: Any) -> int | None:
    """How many items a row of this type has, which tables see to; None if that is not said.

    >>> tuple_width(tuple[int, str]), tuple_width(tuple[int, ...]), tuple_width(tuple)
    (2, None, None)
    """
    kind = kind_of(annotation)
    return len(kind.items) or None if isinstance(kind, Places) else None


def holds_no_nan(expr: Expr, shapes: Shapes) -> bool:
    """Whether the value equals itself, and so do the parts of a tuple."""
    match expr:
        case Constant():
            return expr.kind in _WITHOUT_NAN or is_uuid(expr.kind)
        case Operation(operator, operands) if operator in ARITHMETIC:
            return all(holds_no_nan(operand, shapes) for operand in operands)
        case _:
            return is_declared(expr, shapes, _is_without_nan)


def is_no_tuple(expr: Expr, shapes: Shapes) -> bool:
    """Whether the value is no tuple, or one in which there is no NaN."""
    return holds_no_nan(expr, shapes) or is_declared(expr, shapes, _is_no_tuple)


def is_not_none(expr: Expr, shapes: Shapes) -> bool:
    """Whether the value is no None, and equal to none: a field of a plain class.

    >>> from optimizer.expr import Attribute, Parameter
    >>> from typing import NamedTuple
    >>> Row = NamedTuple("Row", [("id", int), ("note", str | None)])
    >>> [is_not_none(Attribute(Parameter(0), name), (Row,)) for name in ("id", "note")]
    [True, False]
    """
    return is_declared(expr, shapes, _is_plain)


def is_declared(expr: Expr, shapes: Shapes, fits: Fits) -> bool:
    """Whether it is a field that is declared as classes that fit, and as no others."""
    match expr:
        case Attribute(Parameter() as of, name):
            kind = shape_of(of, shapes)
            return isinstance(kind, type) and name in _fields(kind, fits)
        case _:
            return False


@by_class
def _fields(kind: type, fits: Fits) -> frozenset[str]:
    found = {name: kind_of(hint) for name, hint in hints_of(kind).items()}
    return frozenset(name for name, declared in found.items() if _is_made_of(declared, fits))


def _is_made_of(kind: Kind, fits: Fits) -> bool:
    """Return True if a kind names what fits; of a tuple, its items, if tuples fit."""
    match kind:
        case Anything():
            return False
        case Either(kinds):
            return all(_is_made_of(each, fits) for each in kinds)
        case Choice(values):
            return all(isinstance(value, Enum) or fits(type(value)) for value in values)
        case Places(items):
            return fits(tuple) and all(_is_made_of(each, fits) for each in items)
        case Items(item=item) if class_of(kind) is tuple:
            return fits(tuple) and _is_made_of(item, fits)
        case _:
            return fits(class_of(kind))


def _is_without_nan(kind: Any) -> bool:
    try:
        return kind is tuple or kind in _WITHOUT_NAN or is_uuid(kind)
    except TypeError:  # no hash: no class
        return False


def _is_plain(kind: Any) -> bool:
    return any(kind is known for known in _PLAIN)


def _is_no_tuple(kind: Any) -> bool:
    try:
        return kind is not Any and isinstance(kind, type) and not issubclass(tuple, kind)
    except TypeError:  # a protocol that cannot be asked
        return False
