"""Functions of dates and times in SQLite: a time value, and modifiers that are applied in turn.

    date("2024-01-31", "+1 month")     '2024-03-02'       julianday("2000-01-01")    2451544.5
    time(0.25)                         '18:00:00'         unixepoch("1970-01-02")    86400

Source: https://sqlite.org/lang_datefunc.html
"""

from __future__ import annotations

from copy import copy
from typing import Any

from reactive.languages.sql.sqlite.instants import (
    DAY,
    EPOCH,
    GREATEST,
    OF_THE_CLOCK,
    Instant,
    NoInstant,
)
from reactive.languages.sql.sqlite.values import characters


def _instant(value: Any, modifiers: tuple[Any, ...]) -> Instant | None:
    """The instant of a time value and modifiers; None if it is none."""
    made = Instant()
    try:
        if isinstance(value, int | float):
            made.set_number(float(value))
        else:
            text = characters(value).partition("\0")[0]
            if text.lower() in OF_THE_CLOCK:
                raise ValueError(f"{text!r} is of the machine that runs this")
            made.set_text(text)
        for place, each in enumerate(modifiers):
            made.modify(characters(each).partition("\0")[0], is_first=not place)
        made.find_at()
    except (NoInstant, OverflowError):
        return None
    if not 0 <= made.at <= GREATEST:
        return None
    return made


def _date_of(made: Instant) -> str:
    return f"{'-' * (made.year < 0)}{abs(made.year):04d}-{made.month:02d}-{made.day:02d}"


def _time_of(made: Instant) -> str:
    start = f"{made.hour:02d}:{made.minute:02d}:{int(made.second):02d}"
    if not made.parts_of_seconds:
        return start
    return f"{start}.{int(made.second * 1000 + 0.5) % 1000:03d}"


def date(value: Any, *modifiers: Any) -> str | None:
    """DATE: year, month and day.

    >>> date("2024-01-31", "+1 month"), date("2024-05-05", "start of year"), date("soon")
    ('2024-03-02', '2024-01-01', None)
    """
    made = _instant(value, modifiers)
    if made is None:
        return None
    made.find_date()
    return _date_of(made)


def time(value: Any, *modifiers: Any) -> str | None:
    """TIME: hours, minutes and seconds."""
    made = _instant(value, modifiers)
    if made is None:
        return None
    made.find_parts()
    return _time_of(made)


def datetime(value: Any, *modifiers: Any) -> str | None:
    """DATETIME: date and time, with a space between them."""
    made = _instant(value, modifiers)
    if made is None:
        return None
    made.find_parts()
    return f"{_date_of(made)} {_time_of(made)}"


def julianday(value: Any, *modifiers: Any) -> float | None:
    """JULIANDAY: days, with their fraction."""
    made = _instant(value, modifiers)
    return None if made is None else made.at / 86400000.0


def unixepoch(value: Any, *modifiers: Any) -> float | None:
    """UNIXEPOCH: seconds since the beginning of 1970."""
    made = _instant(value, modifiers)
    if made is None:
        return None
    if made.parts_of_seconds:
        return (made.at - EPOCH) / 1000.0
    return made.at // 1000 - EPOCH // 1000


def strftime(pattern: Any, value: Any, *modifiers: Any) -> str | None:
    """STRFTIME: an instant by a pattern; None if the pattern has what there is not.

    >>> strftime("%d.%m.%Y %W %j", "2024-03-05"), strftime("%q", 0)
    ('05.03.2024 10 065', None)
    """
    made = _instant(value, modifiers)
    if made is None:
        return None
    made.find_parts()
    parts, letters = list[str](), iter(characters(pattern).partition("\0")[0])
    for letter in letters:
        if letter != "%":
            parts.append(letter)
            continue
        part = _part(next(letters, ""), made)
        if part is None:
            return None
        parts.append(part)
    return "".join(parts)


def _part(letter: str, made: Instant) -> str | None:
    match letter:
        case "d":
            return f"{made.day:02d}"
        case "f":
            return f"{min(made.second, 59.999):06.3f}"
        case "H":
            return f"{made.hour:02d}"
        case "m":
            return f"{made.month:02d}"
        case "M":
            return f"{made.minute:02d}"
        case "j" | "W":
            first = copy(made)
            first.has_at, first.month, first.day = False, 1, 1
            first.find_at()
            days = (made.at - first.at + 43200000) // DAY
            if letter == "j":
                return f"{days + 1:03d}"
            return f"{(days + 7 - (made.at + 43200000) // DAY % 7) // 7:02d}"
        case "J":
            return f"{made.at / 86400000.0:.16g}"
        case "s":
            return str(made.at // 1000 - EPOCH // 1000)
        case "S":
            return f"{int(made.second):02d}"
        case "w":
            return str((made.at + 129600000) // DAY % 7)
        case "Y":
            return f"{made.year:04d}"
        case "%":
            return "%"
        case _:
            return None
