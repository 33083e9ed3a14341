"""TO_TIMESTAMP and TO_DATE: moments that are read by the words of Postgres' formats.

    read("3 Feb 2024", "DD Mon YYYY")    the moment

Fields of months and fields of weeks do not go together, and a field has one value.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from typing import Any

from reactive.languages.sql.postgres.formats import HALVES, NAMED, tokens_of
from reactive.languages.sql.postgres.numbers import NotSupportedError

_LENGTHS = {"YYY": 3, "YY": 2, "Y": 1, "MS": 3, "US": 6, "DDD": 3, "D": 1, "Q": 1, "W": 1}
_LENGTHS |= {"IYYY": 4, "IDDD": 3, "ID": 1, "YYYY": 4, "J": 7, "SSSS": 5, "SSSSS": 5, "CC": 2}
_LENGTHS |= {"IYY": 3, "IY": 2, "I": 1, "FF1": 1, "FF2": 2, "FF3": 3, "FF4": 4, "FF5": 5, "FF6": 6}


def read(text: str, form: str) -> dt.datetime:
    """TO_TIMESTAMP of a text, without its zone.

    >>> read("05 Dec 2000", "DD Mon YYYY")
    datetime.datetime(2000, 12, 5, 0, 0)
    """
    return _moment_of(_read_fields(text, form))


def read_date(text: str, form: str) -> dt.date:
    """TO_DATE."""
    return read(text, form).date()


def _read_fields(text: str, form: str) -> dict[str, Any]:
    """Read the fields of a text, as the words of a format say.

    Blanks before and behind a field may be more than the format has, and stand for its separators.
    """
    fields: dict[str, Any] = {}
    tokens = tokens_of(form)
    place, skipped = _behind_blanks(text, 0)
    for number, (word, literal, is_bare, ordinal) in enumerate(tokens):
        if place >= len(text):
            break
        if not word:
            for letter in literal:
                if not is_bare and _is_separator(letter):  # of a literal: it is not quoted
                    is_there = place < len(text) and _is_separator(text[place])
                    place, skipped = place + is_there, skipped - (not is_there)
                elif skipped > 0:
                    skipped -= 1
                else:
                    place += 1
            continue
        place, _ = _behind_blanks(text, place)
        _check_calendar(word.upper(), fields)
        following = tokens[number + 1] if number + 1 < len(tokens) else ("", " ", False, "")
        is_digit = following[1][:1].isdigit() or bool(ordinal)
        runs_on = bool(following[0]) and following[0] not in NAMED and not (is_digit or is_bare)
        place = _read_word(word.upper(), text, place, fields, runs_on=runs_on)
        is_ordinal = ordinal.upper() == "TH" and word not in NAMED and word.upper() not in HALVES
        place, skipped = _behind_blanks(text, place + 2 * is_ordinal)
    return fields


def _behind_blanks(text: str, place: int) -> tuple[int, int]:
    """The place behind blanks, and how many they are."""
    begin = place
    while place < len(text) and text[place].isspace():
        place += 1
    return place, place - begin


_OF_WEEKS = frozenset({"IYYY", "IYY", "IY", "I", "IW", "ID", "IDDD"})
_OF_MONTHS = frozenset(
    {"YYYY", "YYY", "YY", "Y", "Y,YYY", "MM", "DD", "DDD", "D", "WW", "W", "RM", "MONTH", "MON"}
)


def _check_calendar(word: str, fields: dict[str, Any]) -> None:
    if word in _OF_WEEKS | _OF_MONTHS:
        kind = word in _OF_WEEKS
        if fields.setdefault("is of weeks", kind) is not kind:
            raise ValueError("invalid combination of date conventions: weeks and months")


def _is_separator(letter: str) -> bool:
    return letter.isascii() and not letter.isalnum()


def _read_word(word: str, text: str, place: int, fields: dict[str, Any], *, runs_on: bool) -> int:
    """Read one field; return the place behind it."""
    if word in ("FX", "TM", "TZ", "TZH", "TZM", "OF", "Y,YYY", "RM"):
        raise NotSupportedError(f"the word {word!r} of a format")
    if word in HALVES:
        wanted = text[place : place + len(word)].upper()
        if wanted not in HALVES or ("." in wanted) != ("." in word):
            raise ValueError(f"invalid value {wanted!r} for {word!r}")
        _set(fields, "half" if "M" in word else "era", wanted[0])
        return place + len(word)
    if word in ("MONTH", "MON", "DAY", "DY"):
        return _read_name(word, text, place, fields)
    width = _LENGTHS.get(word, 2) if runs_on else 20
    if word in ("MS", "US") or word.startswith("FF"):
        width = _LENGTHS[word]
    found = re.compile(rf"[+-]?\d{{1,{width}}}" if not runs_on else rf"\d{{1,{width}}}").match(
        text, place
    )
    if found is None:
        raise ValueError(f"invalid value {text[place : place + 4]!r} for {word!r}")
    if runs_on and len(found[0]) < width:
        raise ValueError(f"source string too short for {word!r}: {found[0]!r}")
    number: Any = int(found[0])
    if word == "MS" or word == "US" or word.startswith("FF"):
        digits = found[0].ljust(_LENGTHS[word], "0")
        number, word = round(int(digits) * 10 ** (6 - _LENGTHS[word])), "US"
    if word in ("HH", "HH12"):
        fields["is half"] = True
    field = _SAME.get(word, word)
    _set(fields, field, number)
    if word in ("YYY", "YY", "Y", "IYY", "IY", "I"):
        fields["is short"] = word.lstrip("I") not in ("YYY", "YYYY") and word != "IYY"
        fields[field] = _nearest(number) if len(found[0]) < 4 else number
    return found.end()


_SAME = {
    **dict.fromkeys(("YYY", "YY", "Y"), "YYYY"),
    **dict.fromkeys(("IYY", "IY", "I"), "IYYY"),
    **dict.fromkeys(("HH", "HH12"), "HH24"),
    "SSSSS": "SSSS",
}


def _nearest(year: int) -> int:
    """The year near 2020 that has these last digits."""
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    if year < 520:
        return year + 2000
    return year + 1000 if year < 1000 else year


def _read_name(word: str, text: str, place: int, fields: dict[str, Any]) -> int:
    names = list(calendar.month_name)[1:] if word.startswith("MON") else list(calendar.day_name)
    shown = [name[:3] if word in ("MON", "DY") else name for name in names]
    for number, name in enumerate(shown, 1):
        if text[place : place + len(name)].lower() == name.lower():
            if word.startswith("MON"):
                _set(fields, "MM", number)
            elif fields.setdefault("name of a day", place) != place:
                raise ValueError("a second name of a day")
            return place + len(name)
    raise ValueError(f"invalid value {text[place : place + 9]!r} for {word!r}")


def _set(fields: dict[str, Any], name: str, value: Any) -> None:
    if fields.get(name) and fields[name] != value:
        raise ValueError(f"conflicting values for {name!r}")
    fields[name] = value


def _moment_of(fields: dict[str, Any]) -> dt.datetime:
    day = _day_of(fields)
    hour, minute, second, micro = (fields.get(name, 0) for name in ("HH24", "MI", "SS", "US"))
    if "SSSS" in fields:
        minutes, of_minute = divmod(fields["SSSS"], 60)
        hours, of_hour = divmod(minutes, 60)
        hour, minute, second = hour or hours, minute or of_hour, second or of_minute
    if "half" in fields or "is half" in fields:
        if not 1 <= hour <= 12:
            raise ValueError(f'hour "{hour}" is invalid for the 12-hour clock')
        hour = hour % 12 + (12 if fields.get("half") == "P" else 0)
    return dt.datetime(day.year, day.month, day.day, hour, minute, second, micro)


def _day_of(fields: dict[str, Any]) -> dt.date:
    year = _year_of(fields)
    month, day, of_year = fields.get("MM", 0), fields.get("DD", 0), fields.get("DDD", 0)
    if "J" in fields:
        found = dt.date.fromordinal(fields["J"] - 1721425)
        year, month, day = found.year, month or found.month, day or found.day
    if year is None or year < 1 or fields.get("era") == "B":
        raise ValueError("a date before the year 1 has no place in Python")
    if fields.get("IW"):
        return dt.date.fromisocalendar(year, fields["IW"], fields.get("ID") or 1)
    if fields.get("IDDD"):
        first = dt.date.fromisocalendar(year, 1, 1)
        return first + dt.timedelta(fields["IDDD"] - 1)
    if fields.get("WW"):
        of_year = (fields["WW"] - 1) * 7 + 1
    if fields.get("W"):
        day = (fields["W"] - 1) * 7 + 1
    if of_year and not (month and day):
        made = dt.date(year, 1, 1) + dt.timedelta(of_year - 1)
        if made.year != year:
            raise ValueError("date/time field value out of range")
        return dt.date(year, month or made.month, day or made.day)
    return dt.date(year, month or 1, day or 1)


def _year_of(fields: dict[str, Any]) -> int | None:
    """The year, of a century if it has two digits, or the first of a century."""
    year: int | None = fields.get("IYYY", fields.get("YYYY"))
    century = fields.get("CC")
    if not century:
        return year
    if year is None:
        return int((century - 1) * 100 + 1)
    if not fields.get("is short"):
        return year
    return int((century - (year % 100 > 0)) * 100 + year % 100)
