"""Types whose values can be compared: by Spark as by Python, or by Python alone."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from optimizer import plan
from spark_backend.codec.schema import Record, Typed, type_name
from spark_backend.codec.values import Inexact

_ORDERED = (int, float, bool, str, bytes, date, datetime, Decimal)


def is_in_order(of: Typed, *, inside: bool = False) -> bool:
    """Return True if the order of Spark is that of Python: structs are ordered by their fields, as
    tuples."""
    if inside and (of.optional or of.kind is float):
        return False
    if isinstance(of, Record) and issubclass(of.kind, tuple) and _is_plain_order(of.kind):
        return all(is_in_order(part, inside=True) for part in of.fields)
    return of.kind in _ORDERED


def check_compares(of: Typed, folded: plan.Folded, *, inside: bool = False) -> None:
    """Raise `Inexact` unless Python can compare any two values, with a total order."""
    if inside and (of.optional or of.kind is float):
        raise Inexact(f"{folded.name} of {type_name(of)} inside of a record: None or NaN")
    if isinstance(of, Record) and _has_order(of.kind):
        for part in of.fields:
            check_compares(part, folded, inside=True)
    elif of.kind not in _ORDERED:
        raise Inexact(f"{folded.name} of {type_name(of)}, which has no order")


def _has_order(kind: Any) -> bool:
    """Return True if records are compared by fields: tuples, and dataclasses with a generated
    order."""
    code = getattr(kind.__lt__, "__code__", None)
    return _is_plain_order(kind) or (code is not None and code.co_filename == "<string>")


def _is_plain_order(kind: Any) -> bool:
    """Return True if instances of a class are ordered as plain tuples."""
    plain: Any = tuple
    return kind.__lt__ is plain.__lt__ and kind.__gt__ is plain.__gt__
