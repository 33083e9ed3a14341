"""Texts of values and names of columns: one rule for all borders.

Texts of single values in JSON and cells, and values of such texts:

    date, time, datetime    ISO 8601                    UUID, Decimal   as `str` writes them
    timedelta               "P1DT2H3.5S", "-PT1S"       bytes           base64
    a member of an Enum     its value, or its name where the value is no number and no text

A `timedelta` is also read from the text of `str(timedelta)`, of Postgres and from a number of
seconds; a member of an Enum from its name, if no member has such a value.

Names of columns as names of fields:

    "unit price" -> unit_price    "class" -> class_    "2024" -> column_2024    "a", "a" -> a, a_2

Other characters than letters, digits and `_` become `_`; letters are normalized as in Python
(NFKC). A keyword gets a `_`, a repeated name a number, and a name that begins with a digit or `__`
gets `column_`. Fields of named tuples do not begin with `_`.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from keyword import iskeyword
from typing import Any

from optimizer.kinds.kind import is_uuid

ISO_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)(?:[.,](?P<f>\d{1,6})\d*)?S)?)?"
)
CLOCK = re.compile(
    r"(?:(?P<d>[-+]?\d+) days?(?:, *| +|$))?"
    r"(?:(?P<sign>[-+]?)(?P<h>\d+):(?P<m>\d+):(?P<s>\d+)(?:\.(?P<f>\d{1,6}))?)?"
)


def text_of_duration(value: timedelta) -> str:
    """Write a duration as ISO 8601.

    >>> text_of_duration(timedelta(days=1, seconds=3.5)), text_of_duration(timedelta(seconds=-1))
    ('P1DT3.5S', '-PT1S')
    """
    length = abs(value)
    seconds = f"{length.seconds}.{length.microseconds:06}".rstrip("0").rstrip(".")
    days = f"{length.days}D" if length.days else ""
    rest = f"T{seconds}S" if seconds != "0" or not days else ""
    return f"{'-' if value < timedelta() else ''}P{days}{rest}"


def duration_of(value: Any) -> timedelta:
    """Read a duration: ISO 8601, the text of `str(timedelta)`, or a number of seconds.

    Raises
    ------
    ValueError: it is none of these, as one of months, which has no fixed length.

    >>> duration_of("P1DT2H") == duration_of("1 day, 2:00:00") == duration_of(93_600)
    True
    """
    if type(value) in (int, float):
        return timedelta(seconds=value)
    found = ISO_DURATION.fullmatch(value) if type(value) is str else None
    if found is not None and value[-1] not in "PT":
        parts = {name: int(found[name] or 0) for name in "wdhms"}
        length = timedelta(
            weeks=parts["w"],
            days=parts["d"],
            hours=parts["h"],
            minutes=parts["m"],
            seconds=parts["s"],
            microseconds=int((found["f"] or "").ljust(6, "0")),
        )
        return -length if found["sign"] == "-" else length
    found = CLOCK.fullmatch(value) if type(value) is str and value else None
    if found is None:
        raise ValueError(f"{value!r:.80} is no duration")
    hours, minutes, seconds = (int(found[name] or 0) for name in "hms")
    micro = int((found["f"] or "").ljust(6, "0"))
    length = timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=micro)
    return timedelta(days=int(found["d"] or 0)) + (-length if found["sign"] == "-" else length)


def member_of(kind: type[Enum], value: Any, *, by_name: bool = False) -> Any:
    """Find a member by its value, or else by its name; `by_name` looks for the name first.

    Raises
    ------
    ValueError: there is none.

    >>> Colour = Enum("Colour", {"RED": "red"})
    >>> member_of(Colour, "red").name, member_of(Colour, "RED").name
    ('RED', 'RED')
    """
    names = kind.__members__
    is_name = type(value) is str and value in names
    if is_name and by_name and not issubclass(kind, int | str):
        return names[value]
    try:
        return kind(value)
    except (ValueError, TypeError):
        if is_name:
            return names[value]
        raise ValueError(f"{value!r:.80} is no {kind.__name__}") from None


def json_of(value: Any) -> Any:
    """Return the JSON value for a single value; the value itself if it needs none.

    >>> json_of(date(2026, 1, 2)), json_of(b"ab"), json_of(Enum("Colour", "RED").RED)
    ('2026-01-02', 'YWI=', 1)
    """
    if isinstance(value, Enum):
        inner = value.value
        return inner if type(inner) in (str, int, float, bool) else value.name
    for kind in type(value).__mro__:
        if kind in TEXTS:
            return TEXTS[kind](value)
        if is_uuid(kind):
            return str(value)
    return value


TEXTS: Mapping[Any, Callable[[Any], str]] = {
    bytes: lambda value: b64encode(value).decode(),
    date: date.isoformat,
    datetime: datetime.isoformat,
    time: time.isoformat,
    timedelta: text_of_duration,
    Decimal: str,
}
"""The texts of values that JSON does not have."""


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)


VALUES: Mapping[type, Callable[[Any], Any]] = {
    bytes: _bytes,
    date: date.fromisoformat,
    datetime: datetime.fromisoformat,
    time: time.fromisoformat,
    timedelta: duration_of,
}
"""The values of such texts; each raises a ValueError or TypeError for other texts."""


def reader_of(kind: Any) -> Callable[[Any], Any] | None:
    """Return the function from a text to a value of a class; None for other classes."""
    return kind if is_uuid(kind) else VALUES.get(kind)


def field_names(names: Iterable[str], *, of_tuple: bool = False, second: int = 2) -> list[str]:
    """Return names as names of fields, each once.

    Parameters
    ----------
    of_tuple: the fields belong to a named tuple.
    second: the number that the second field of a name gets.

    >>> field_names(["id", "unit price", "class", "2024", "id", ""])
    ['id', 'unit_price', 'class_', 'column_2024', 'id_2', 'column']
    >>> field_names(["_id", "a", "a"], of_tuple=True, second=1)
    ['id', 'a', 'a_1']
    """
    found: dict[str, None] = {}
    for name in names:
        plain = _identifier(name, of_tuple=of_tuple)
        number, free = second, plain
        while free in found:
            free, number = f"{plain}_{number}", number + 1
        found[free] = None
    return list(found)


def columns_of(fields: Iterable[str], columns: Sequence[str]) -> dict[str, int]:
    """Return the places of the columns of fields.

    It is the column of the same name, or else the one whose name becomes the field's. Fields
    without a column are left out.

    Raises
    ------
    ValueError: several columns have the name of a field.

    >>> columns_of(["id", "unit_price", "from_"], ["unit price", "from", "other"])
    {'unit_price': 0, 'from_': 1}
    """
    wanted = list(fields)
    found = {name: columns.index(name) for name in wanted if name in columns}
    is_plain = len(found) == len(wanted) and len({*columns}) == len(columns)
    if is_plain:
        return found
    mended: dict[str, int] = {}
    for of_tuple in (True, False):
        mended |= {n: place for place, n in enumerate(field_names(columns, of_tuple=of_tuple))}
    for name in wanted:
        place = mended.get(name)
        if name not in found and place is not None and place not in found.values():
            found[name] = place
    taken = {*found.values()}
    for place, name in enumerate(columns):
        if name in found and place not in taken:
            raise ValueError(
                f"{len(columns)} columns of which several are called {name}\n"
                "  rename one of them, so that it is known which is the field"
            )
    return found


def _identifier(name: str, *, of_tuple: bool) -> str:
    """Return a column's name as a Python identifier; for tuples, without leading underscores."""
    letters = unicodedata.normalize("NFKC", name)
    plain = "".join(each if f"_{each}".isidentifier() else "_" for each in letters)
    if of_tuple:
        plain = plain.lstrip("_")
    if not plain.strip("_"):
        plain = "column"
    elif plain.startswith("__") or not plain.isidentifier():
        plain = f"column_{plain}"
    return plain + "_" * iskeyword(plain)
