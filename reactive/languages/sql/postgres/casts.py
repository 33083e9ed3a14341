"""The casts of Postgres: the function that makes a value of a type one of another.

maker(INT, FLOAT)                  float
maker(TEXT, decimal(5, 2))         decimal, with 5 and 2
maker(BOOL, DATE)                  None: there is no such cast
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from optimizer.record import record
from reactive.engine.collections.jsonb import Jsonb, check_json
from reactive.languages.sql.json import documents
from reactive.languages.sql.postgres import forms, moments, times
from reactive.languages.sql.postgres.numbers import RANGES
from reactive.languages.sql.runtime.times import as_date, as_timestamp
from reactive.languages.sql.terms.types import ANY, SqlType, innermost

Made: TypeAlias = "tuple[Callable[..., Any] | None, tuple[Any, ...]]"
FROM_TEXT: dict[str, Callable[..., Any]] = {
    "float": forms.float_,
    "bool": forms.boolean,
    "date": moments.day,
    "timestamp": moments.moment,
    "time": moments.time,
    "interval": moments.interval,
    "bytes": forms.bytes_,
    "uuid": forms.uuid,
    "json": check_json,
    "jsonb": documents.as_document,
}


def time_of_day(value: Any) -> Any:
    """Return the time of a timestamp."""
    return value.time()


BETWEEN: dict[tuple[str, str], Callable[..., Any] | None] = {
    ("int", "float"): float,
    ("decimal", "float"): float,
    ("int", "bool"): bool,
    ("date", "timestamp"): as_timestamp,
    ("timestamp", "date"): as_date,
    ("timestamp", "time"): time_of_day,
    ("time", "interval"): times.interval_of_time,
    ("interval", "time"): times.time_of_interval,
    ("json", "jsonb"): Jsonb.parse,
    ("jsonb", "json"): str,
    ("jsonb", "bool"): documents.as_boolean,
    ("jsonb", "float"): documents.as_float,
}
"""Casts of kinds that are neither texts nor need the digits of a type."""
TO_INTEGER: dict[str, Callable[..., Any]] = {
    "float": forms.integer_of_float,
    "decimal": forms.integer_of_numeric,
    "text": forms.integer,
    "bool": int,
    "jsonb": documents.as_integer,
}


@record
class Checked:
    """An integer of a value, which fits a size."""

    function: Callable[..., Any] | None
    size: int

    def __call__(self, value: Any) -> int:
        made = value if self.function is None else self.function(value)
        return RANGES[self.size](made)


@record
class Each:
    """The elements of an array, each made another."""

    item: Callable[..., Any]
    more: tuple[Any, ...]

    def __call__(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            None
            if each is None
            else self(each)
            if isinstance(each, tuple)
            else self._cast_item(each)
            for each in value
        )

    def _cast_item(self, each: Any) -> Any:
        return self.item(each, *self.more)


def maker(of: SqlType, to: SqlType) -> Made | None:
    """Return the function that casts, and its further arguments; None if there is no cast."""
    if to.kind in ("any", "null") or of.kind == "null":
        return None, ()
    if to.kind == "text":
        return _to_text(of), ()
    if of.kind == "any":
        return _cast_of_unknown(to)
    match to.kind:
        case "int":
            return _to_integer(of, to)
        case "decimal":
            return _to_decimal(of, to)
        case "array":
            return _to_array(of, to)
        case "struct":
            return (None, ()) if of.kind == "struct" else None
        case "float" if to.size == 4:
            return _to_real(of)
        case kind if of.kind == kind:
            return None, ()
        case kind if of.kind == "text":
            return FROM_TEXT[kind], ()
        case "bool" if of.kind == "int" and of.size not in (None, 4):
            return None
        case kind:
            found = BETWEEN.get((of.kind, kind))
            return None if found is None else (found, ())


def _cast_of_unknown(to: SqlType) -> Made | None:
    """Return the cast of a value of unknown type: a text's, or no function, and the value stays."""
    return maker(SqlType("text"), to) if to.kind in FROM_TEXT else (None, ())


def _to_text(of: SqlType) -> Callable[..., Any] | None:
    """Return the function from a value of a type to its text; None if it is a text."""
    if of.kind in ("text", "json"):
        return None
    if of.kind == "float":
        return forms.real_text if of.size == 4 else forms.float_text
    if of.kind in ("int", "jsonb"):
        return str
    return forms.row_text if of.kind == "struct" else forms.text_of


def _to_integer(of: SqlType, to: SqlType) -> Made | None:
    """Return the function and arguments of a cast to an integer; None if there is no such cast."""
    size = to.size or 8
    if of.kind == "int":
        wide = of.size is not None and of.size <= size
        return (None if wide or to.size is None else RANGES[size]), ()
    if of.kind == "bool" and size != 4:
        return None
    found = TO_INTEGER.get(of.kind)
    return None if found is None else (Checked(found, size), ())


def _to_decimal(of: SqlType, to: SqlType) -> Made | None:
    """Return the function and arguments of a cast to numeric; None if there is no such cast."""
    if of.kind == "decimal" and to.scale is None:
        return None, ()
    if of.kind == "jsonb":
        return documents.as_numeric, (to.precision, to.scale)
    if of.kind not in ("int", "float", "text", "decimal"):
        return None
    function = forms.decimal_of_real if (of.kind, of.size) == ("float", 4) else forms.decimal
    return function, (to.precision, to.scale)


def _to_real(of: SqlType) -> Made | None:
    """Return the function and arguments of a cast to real; None if there is no such cast."""
    if of.kind == "text":
        return forms.real_of_text, ()
    if (of.kind, of.size) == ("float", 4):
        return None, ()
    if of.kind == "jsonb":
        return documents.as_real, ()
    return (forms.real, ()) if of.kind in ("int", "decimal", "float") else None


def _to_array(of: SqlType, to: SqlType) -> Made | None:
    """Return the function and arguments of a cast to an array; None if there is no such cast."""
    item = to.items[0] if to.items else ANY
    if of.kind == "text":
        made = maker(SqlType("text"), item)
        if made is None:
            return None
        return forms.array, (made[0] or str, made[1])
    if of.kind != "array":
        return None
    made = maker(innermost(of), innermost(to))
    if made is None:
        return None
    return (None if made[0] is None else Each(*made)), ()  # type: ignore[arg-type]
