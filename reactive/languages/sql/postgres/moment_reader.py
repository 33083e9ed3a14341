"""TO_TIMESTAMP and TO_DATE: moments that are read by the words of Postgres' formats.

    read("3 Feb 2024", "DD Mon YYYY")    the moment

Fields of months and fields of weeks do not go together, and a field has one value.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re

from reactive.languages.sql.postgres.formats import HALVES, NAMED, ROMAN, Token, tokens_of
from reactive.languages.sql.postgres.numbers import NotSupportedError

_LENGTHS = {"YYY": 3, "YY": 2, "Y": 1, "DDD": 3, "D": 1, "Q": 1, "W": 1, "J": 1, "YYYY": 4}
_LENGTHS |= {"IYYY": 4, "IYY": 3, "IY": 2, "I": 1, "IDDD": 3, "ID": 1, "SSSS": 4, "SSSSS": 5}
"""The digits of a word whose number has digits behind it, where they are not two."""
_FRACTIONS = {"MS": 3, "US": 6, **{f"FF{digits}": digits for digits in range(1, 7)}}
"""The digits of a fraction of a second."""


def read(text: str, form: str) -> dt.datetime:
    """Read a text as a timestamp without its zone (TO_TIMESTAMP).

    >>> read("05 Dec 2000", "DD Mon YYYY")
    datetime.datetime(2000, 12, 5, 0, 0)
    """
    return _moment_of(_read_fields(text, form))


def read_date(text: str, form: str) -> dt.date:
    """Read a text as a date (TO_DATE)."""
    return read(text, form).date()


def _read_fields(text: str, form: str) -> dict[str, int]:
    """Read the fields of a text, as the words of a format say.

    Blanks before and behind a field may be more than the format has, and stand for its separators.
    """
    fields: dict[str, int] = {}
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
        upper = word.upper()
        _check_calendar(upper, fields)
        is_fixed = not (is_bare or ordinal.upper() == "TH") and _is_digit(tokens[number + 1 :])
        place = _read_word(upper, text, place, fields, is_fixed=is_fixed)
        is_ordinal = ordinal.upper() == "TH" and _is_number_field(upper)
        place, skipped = _behind_blanks(text, place + 2 * is_ordinal)
    return fields


def _is_digit(following: tuple[Token, ...]) -> bool:
    """Say whether what follows in a format begins with a digit."""
    if not following:
        return False
    word, literal, *_ = following[0]
    return _is_number_field(word.upper()) if word else literal[:1].isdigit()


def _is_number_field(word: str) -> bool:
    """Say whether the field of a word is a number."""
    return word not in NAMED and word not in HALVES and word != "RM"


def _behind_blanks(text: str, place: int) -> tuple[int, int]:
    """Return the place behind blanks, and how many they are."""
    begin = place
    while place < len(text) and text[place].isspace():
        place += 1
    return place, place - begin


_OF_WEEKS = frozenset({"IYYY", "IYY", "IY", "I", "IW", "ID", "IDDD"})
_OF_MONTHS = frozenset(
    {"YYYY", "YYY", "YY", "Y", "Y,YYY", "MM", "DD", "DDD", "D", "WW", "W", "RM", "MONTH", "MON"}
)


def _check_calendar(word: str, fields: dict[str, int]) -> None:
    """Refuse a word of weeks after one of months, or the reverse; record its kind in `fields`."""
    if word in _OF_WEEKS | _OF_MONTHS:
        kind = word in _OF_WEEKS
        if fields.setdefault("is of weeks", kind) is not kind:
            raise ValueError("invalid combination of date conventions: weeks and months")


def _is_separator(letter: str) -> bool:
    return letter.isascii() and not letter.isalnum()


def _read_word(word: str, text: str, place: int, fields: dict[str, int], *, is_fixed: bool) -> int:
    """Read one field into `fields`; return the place behind it, or raise if the text has none.

    With `is_fixed`, a number has exactly the digits of its word.
    """
    if word in ("FX", "TM", "TZ", "TZH", "TZM", "OF"):
        raise NotSupportedError(f"the word {word!r} of a format")
    if word in HALVES:
        found = text[place : place + len(word)].upper()
        if found not in HALVES or ("." in found) != ("." in word):
            raise ValueError(f"invalid value {found!r} for {word!r}")
        is_clock = "M" in word
        fields["is of 12 hours"] = fields.get("is of 12 hours", False) or is_clock
        _set_field(fields, "is afternoon" if is_clock else "is before Christ", found[0] in "PB")
        return place + len(word)
    if word in ("MONTH", "MON", "DAY", "DY", "RM"):
        return _read_name(word, text, place, fields)
    if word == "Y,YYY":
        return _read_thousands(text, place, fields)
    width = _FRACTIONS.get(word) or _LENGTHS.get(word, 2)
    number, end = _read_number(word, text, place, width if is_fixed else None)
    _set_number(word, number, end - place, fields)
    return end


def _read_number(word: str, text: str, place: int, width: int | None) -> tuple[int, int]:
    """Return a number, and the place behind it; `width` is that of its text, if it is fixed."""
    room = text[place:] if width is None else text[place : place + width]
    if width and len(room) < width:
        raise ValueError(f"source string too short for {word!r}: {room!r}")
    found = re.match(r"\s*[+-]?[0-9]+", room)
    if found is None:
        raise ValueError(f"invalid value {text[place : place + 4]!r} for {word!r}")
    if width and found.end() < width:
        raise ValueError(f"invalid value {room!r} for {word!r}: it has {width} digits")
    number = int(found[0])
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"value for {word!r} is out of range")
    return number, place + found.end()


def _set_number(word: str, number: int, width: int, fields: dict[str, int]) -> None:
    """Set the field of a word to a number, that `width` letters have."""
    if word in _FRACTIONS:
        field = "MS" if word == "MS" else "US"
        _set_field(fields, field, number)
        fields[field] *= 10 ** max((3 if word == "MS" else 6) - width, 0)
        return
    field = _SAME.get(word, word)
    _set_field(fields, field, number)
    if field == "YYYY":
        fields["is short"] = word in ("YY", "Y", "IY", "I")
        if word not in ("YYYY", "IYYY") and width < 4:
            fields[field] = _nearest(number)
    elif word in ("HH", "HH12"):
        fields["is of 12 hours"] = True
    elif word == "ID":
        fields["D"] = number + 1 if number < 7 else 1


_SAME = {
    **dict.fromkeys(("YYY", "YY", "Y", "IYYY", "IYY", "IY", "I"), "YYYY"),
    **dict.fromkeys(("HH", "HH12"), "HH24"),
    "SSSSS": "SSSS",
    "ID": "D",
    "IW": "WW",
    "IDDD": "DDD",
}
"""The field of a word. That of days of a week counts from Sunday, which is 1."""


def _nearest(year: int) -> int:
    """Return the year near 2020 that has these last digits."""
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    if year < 520:
        return year + 2000
    return year + 1000 if year < 1000 else year


_MONTHS, _DAYS = [*calendar.month_name][1:], [calendar.day_name[day - 1] for day in range(7)]
_NAMES = {
    "MONTH": _MONTHS,
    "MON": [name[:3] for name in _MONTHS],
    "RM": ROMAN,
    "DAY": _DAYS,
    "DY": [name[:3] for name in _DAYS],
}


def _read_name(word: str, text: str, place: int, fields: dict[str, int]) -> int:
    """Read the name of a month or a day into `fields`; return the place behind it, or raise."""
    names = _NAMES[word]
    found = [n for n, name in enumerate(names) if text[place:].lower().startswith(name.lower())]
    if not found:
        raise ValueError(f"invalid value {text[place : place + 9]!r} for {word!r}")
    number = max(found, key=lambda n: len(names[n]))
    if word in ("DAY", "DY"):
        _set_field(fields, "D", number)
        fields["D"] = number + 1
    else:
        _set_field(fields, "MM", number + 1)
    return place + len(names[number])


def _read_thousands(text: str, place: int, fields: dict[str, int]) -> int:
    """Read a year like `2,024` into `fields`; return the place behind it, or raise."""
    found = re.compile(r"\s*([+-]?[0-9]+),\s*([+-][0-9]{1,2}|[0-9]{1,3})").match(text, place)
    if found is None:
        raise ValueError("invalid input string for 'Y,YYY'")
    _set_field(fields, "YYYY", int(found[1]) * 1000 + int(found[2]))
    fields["is short"] = False
    return found.end()


def _set_field(fields: dict[str, int], name: str, value: int) -> None:
    """Set a field; raise if it has another value already."""
    if fields.get(name) and fields[name] != value:
        raise ValueError(f"conflicting values for {name!r}")
    fields[name] = value


def _moment_of(fields: dict[str, int]) -> dt.datetime:
    """Return the moment of some fields; refuse an hour that is not on the 12-hour clock."""
    hour, minute, second = (fields.get(name, 0) for name in ("HH24", "MI", "SS"))
    minutes, of_minute = divmod(fields.get("SSSS", 0), 60)
    hours, of_hour = divmod(minutes, 60)
    hour, minute, second = hour or hours, minute or of_hour, second or of_minute
    if fields.get("is of 12 hours"):
        if not 1 <= hour <= 12:
            raise ValueError(f'hour "{hour}" is invalid for the 12-hour clock')
        hour = hour % 12 + 12 * fields.get("is afternoon", 0)
    micro = fields.get("MS", 0) * 1000 + fields.get("US", 0)
    return dt.datetime.combine(_day_of(fields), dt.time(hour, minute, second, micro))


def _day_of(fields: dict[str, int]) -> dt.date:
    """Return the date of some fields; refuse one before the year 1, and a day beyond the year."""
    year, month, day = _year_of(fields), 1, 1
    of_year = fields.get("DDD")
    if fields.get("J"):
        year, month, day = dt.date.fromordinal(fields["J"] - 1721425).timetuple()[:3]
    if weeks := fields.get("WW"):
        if fields.get("is of weeks"):
            found = _first_monday(year) + 7 * (weeks - 1) + (fields.get("D", 2) - 2) % 7
            year, month, day = dt.date.fromordinal(found).timetuple()[:3]
        else:
            of_year = (weeks - 1) * 7 + 1
    of_month = fields.get("W", 0)
    day = (of_month - 1) * 7 + 1 if of_month else fields.get("DD") or day
    month = fields.get("MM") or month
    if of_year and (month <= 1 or day <= 1):
        if fields.get("is of weeks"):
            return dt.date.fromordinal(_first_monday(year) + of_year - 1)
        found = dt.date(year, 1, 1).toordinal() + of_year - 1
        made = dt.date.fromordinal(found)
        if made.year != year:
            raise ValueError("date/time field value out of range")
        month, day = made.month if month <= 1 else month, made.day if day <= 1 else day
    if year < 1:
        raise ValueError("a date before the year 1 has no place in Python")
    return dt.date(year, month, day)


def _first_monday(year: int) -> int:
    """Return the ordinal of the Monday with which a year of weeks begins; year 0 has one, too."""
    day4 = 365 * (year - 1) + (year - 1) // 4 - (year - 1) // 100 + (year - 1) // 400 + 4
    return day4 - (day4 - 1) % 7


def _year_of(fields: dict[str, int]) -> int:
    """Return the year, of a century if it has two digits, or the first year of a century.

    Return 0, the year before 1, if neither is given.
    """
    year, century = fields.get("YYYY", 0), fields.get("CC", 0)
    if fields.get("is before Christ"):
        year, century = -year, -century
    if not year:
        return (century - 1) * 100 + 1 if century > 0 else century * 100 + bool(century)
    if century and fields.get("is short"):
        rest = abs(year) % 100
        if century < 0:
            return (century + 1) * 100 - rest if rest else century * 100 + 1
        return (century - (rest > 0)) * 100 + rest
    return year + (year < 0)
