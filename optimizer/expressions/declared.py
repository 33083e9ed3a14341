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
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from optimizer.expr import Attribute, Constant, Expr, Operation, Parameter
from optimizer.expressions.knowledge import Shapes, shape_of
from optimizer.kinds.fields import annotated, hints
from optimizer.kinds.kind import is_uuid

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
    >>> zone_of(Annotated[datetime, timezone.utc] | None), zone_of(datetime)
    (datetime.timezone.utc, None)
    """
    if get_origin(hint) in (Union, UnionType):
        zones = [zone_of(part) for part in get_args(hint) if part is not type(None)]
        return zones[0] if len(zones) == 1 else None
    if get_origin(hint) is not Annotated or get_args(hint)[0] is not datetime:
        return None
    return next((part for part in hint.__metadata__ if isinstance(part, tzinfo)), None)


def may_be_moment(expr: Operation) -> bool:
    """Return False of an operation whose value is no datetime: `a * b`, `a + 1`.

    >>> may_be_moment(Operation("+", (Parameter(0), Parameter(1))))
    True
    """
    numbers = (isinstance(o, Constant) and o.kind in (int, float, bool) for o in expr.operands)
    return expr.operator in ("+", "-") and len(expr.operands) == 2 and not any(numbers)


@lru_cache(maxsize=512)
def zoned_fields(kind: Any) -> frozenset[str]:
    """Return the fields of a class that are declared with a time zone; none of what is no class."""
    if not isinstance(kind, type):
        return frozenset()
    return frozenset(name for name, hint in annotated(kind).items() if zone_of(hint) is not None)


def tuple_width(annotation: Any) -> int | None:
    """How many items a row of this type has, which tables see to; None if that is not said.

    >>> tuple_width(tuple[int, str]), tuple_width(tuple[int, ...]), tuple_width(tuple)
    (2, None, None)
    """
    items = get_args(annotation)
    is_counted = get_origin(annotation) is tuple and items and ... not in items
    return len(items) if is_counted else None


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


@lru_cache(maxsize=512)
def _fields(kind: type, fits: Fits) -> frozenset[str]:
    return frozenset(name for name, hint in hints(kind).items() if _is_made_of(hint, fits))


def _is_made_of(hint: Any, fits: Fits) -> bool:
    """Whether a declaration names what fits; of a tuple, its parts, if tuples fit."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return all(_is_made_of(part, fits) for part in get_args(hint))
    if origin is tuple:
        return fits(tuple) and all(
            part is ... or _is_made_of(part, fits) for part in get_args(hint)
        )
    if origin is Annotated:
        return _is_made_of(get_args(hint)[0], fits)
    if origin is Literal:
        return True
    if hasattr(hint, "__supertype__"):
        return _is_made_of(hint.__supertype__, fits)
    return hint is not tuple and fits(hint)


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
