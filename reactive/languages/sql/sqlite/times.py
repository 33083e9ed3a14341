"""Dates and times in SQLite: instants, their parts, and the modifiers that move them.

Instants of SQLite by their parts or their milliseconds, and the modifiers that move them.

An instant is a number of milliseconds since noon of 24 November of the year -4713. A month that is
too long runs over, as the 31 of February does.

Functions of dates and times in SQLite: a time value, and modifiers that are applied in turn.

    date("2024-01-31", "+1 month")     '2024-03-02'       julianday("2000-01-01")    2451544.5
    time(0.25)                         '18:00:00'         unixepoch("1970-01-02")    86400

Source: https://sqlite.org/lang_datefunc.html
"""

from __future__ import annotations

import re
from copy import copy
from typing import Any

from reactive.languages.sql.sqlite.values import NUMBER, SPACES, characters

DAY = 86_400_000
EPOCH = 210_866_760_000_000
GREATEST = 464_269_060_799_999
_DATE = re.compile(r"(-?)([0-9]{4})-([0-9]{2})-([0-9]{2})[ \t\n\v\f\rT]*", re.ASCII)
_TIME = re.compile(
    r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?[ \t\n\v\f\r]*"
    r"(?:([zZ])|([+-])([0-9]{2}):([0-9]{2}))?[ \t\n\v\f\r]*",
    re.ASCII,
)
_UNITS = {
    "second": (4.6427e14, 1.0),
    "minute": (7.7379e12, 60.0),
    "hour": (1.2897e11, 3600.0),
    "day": (5373485.0, 86400.0),
    "month": (176546.0, 2592000.0),
    "year": (14713.0, 31536000.0),
}
"""The greatest number of each unit, and its seconds."""
OF_THE_CLOCK = frozenset({"now", "localtime", "utc"})
"""Time values and modifiers that no live query may have."""


class NoInstant(Exception):
    """There is no such instant."""


class Instant:
    """An instant by its parts or by its milliseconds, as far as either is known."""

    def __init__(self) -> None:
        self.at = 0
        self.has_at = self.has_date = self.has_time = self.is_raw = self.parts_of_seconds = False
        self.year, self.month, self.day, self.hour, self.minute, self.zone = 0, 0, 0, 0, 0, 0
        self.second = 0.0

    def set_number(self, value: float) -> None:
        """Set a raw number; it is also a Julian day if it is in the range of these."""
        self.second, self.is_raw = value, True
        if 0.0 <= value < 5373484.5:
            self.at, self.has_at = int(value * 86400000.0 + 0.5), True

    def set_text(self, text: str) -> None:
        """Set the date, the time, or the number that a text has; refuse other texts."""
        found = _DATE.match(text)
        if found is not None:
            month, day = int(found[3]), int(found[4])
            if 1 <= month <= 12 and 1 <= day <= 31:
                rest = text[found.end() :]
                if rest:
                    self.set_time(rest)
                self.year = int(found[2]) * (-1 if found[1] else 1)
                self.month, self.day, self.has_date = month, day, True
                if self.zone:
                    self.find_at()
                return
        try:
            self.set_time(text)
        except NoInstant:
            if NUMBER.fullmatch(text.strip(SPACES)) is None:
                raise
            self.set_number(float(text))

    def set_time(self, text: str) -> None:
        """Set the time of day and the zone that a text has; refuse other texts."""
        found = _TIME.fullmatch(text)
        if found is None:
            raise NoInstant
        hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
        hours, minutes = int(found[7] or 0), int(found[8] or 0)
        if hour > 24 or minute > 59 or second > 59 or hours > 14 or minutes > 59:
            raise NoInstant
        self.hour, self.minute = hour, minute
        self.second = second + (float(found[4]) / 10.0 ** len(found[4]) if found[4] else 0.0)
        self.has_time, self.is_raw = True, False
        self.zone = (hours * 60 + minutes) * (-1 if found[6] == "-" else 1)

    def find_at(self) -> None:
        """Compute the milliseconds, unless they are known; refuse years beyond -4713 and 9999."""
        if self.has_at:
            return
        year, month, day = (self.year, self.month, self.day) if self.has_date else (2000, 1, 1)
        if not -4713 <= year <= 9999 or self.is_raw:
            raise NoInstant
        if month <= 2:
            year, month = year - 1, month + 12
        century = int(year / 100)
        leap = 2 - century + int(century / 4)
        days = 36525 * (year + 4716) // 100 + 306001 * (month + 1) // 10000 + day + leap
        self.at, self.has_at = int((days - 1524.5) * 86400000), True
        if self.has_time:
            self.at += self.hour * 3600000 + self.minute * 60000 + int(self.second * 1000 + 0.5)
            if self.zone:
                self.at -= self.zone * 60000
                self.forget_parts()

    def find_parts(self) -> None:
        """Compute the date and the time of day, unless they are known."""
        self.find_date()
        if self.has_time:
            return
        self.find_at()
        seconds, milliseconds = divmod((self.at + 43200000) % DAY, 1000)
        self.hour, rest = divmod(seconds, 3600)
        self.minute, second = divmod(rest, 60)
        self.second = second + milliseconds / 1000.0
        self.is_raw, self.has_time = False, True

    def find_date(self) -> None:
        """Compute the date, unless it is known; 2000-01-01 of a time only. Refuse other years."""
        if self.has_date:
            return
        if not self.has_at:
            self.year, self.month, self.day = 2000, 1, 1
        elif not 0 <= self.at <= GREATEST:
            raise NoInstant
        else:
            whole = (self.at + 43200000) // DAY
            a = int((whole - 1867216.25) / 36524.25)
            a = whole + 1 + a - int(a / 4)
            b = a + 1524
            c = int((b - 122.1) / 365.25)
            d = (36525 * (c & 32767)) // 100
            e = int((b - d) / 30.6001)
            self.day = b - d - int(30.6001 * e)
            self.month = e - 1 if e < 14 else e - 13
            self.year = c - 4716 if self.month > 2 else c - 4715
        self.has_date = True

    def forget_parts(self) -> None:
        """Discard date, time and zone, so that they are computed from `at` again."""
        self.has_date = self.has_time = False
        self.zone = 0

    # Modifiers.

    def modify(self, text: str, *, is_first: bool) -> None:
        """Apply a modifier.

        Raises
        ------
        ValueError: it asks for the zone of the machine, or the rules of a time zone.
        """
        word = text.lower()
        if word in OF_THE_CLOCK:
            raise ValueError(f"{text!r} is of the machine that runs this")
        if word in ("auto", "julianday", "unixepoch"):
            self._read_number(word, is_first=is_first)
        elif word in ("subsec", "subsecond"):
            self.parts_of_seconds = True
        elif word.startswith("weekday "):
            self._go_to_weekday(word[8:])
        elif word.startswith("start of "):
            self._go_back(word[9:])
        elif text[:1] in "+-0123456789" and text:
            self._move(text)
        else:
            raise NoInstant

    def _read_number(self, word: str, *, is_first: bool) -> None:
        """Read the number as Julian days or seconds since 1970; refuse a later modifier."""
        if not is_first:
            raise NoInstant
        if word == "julianday":
            if not (self.has_at and self.is_raw):
                raise NoInstant
            self.is_raw = False
        elif word == "unixepoch":
            at = self.second * 1000.0 + EPOCH
            if not self.is_raw or not 0 <= at < 464269060800000.0:
                raise NoInstant
            self._set_at(int(at + 0.5))
        elif not self.is_raw or self.has_at:
            self.is_raw = False
        elif -210866760000 <= self.second <= 253402300799:
            self._set_at(int(self.second * 1000.0 + EPOCH + 0.5))

    def _set_at(self, at: int) -> None:
        """Set the milliseconds as a raw number, and discard the parts."""
        self.forget_parts()
        self.at, self.has_at, self.is_raw = at, True, False

    def _go_to_weekday(self, text: str) -> None:
        """Go to the next day, or stay, that is weekday 0 (Sunday) to 6; refuse other texts."""
        if NUMBER.fullmatch(text.strip(SPACES)) is None:
            raise NoInstant
        wanted = float(text)
        if not 0.0 <= wanted < 7.0 or wanted != int(wanted):
            raise NoInstant
        self.find_parts()
        self.zone, self.has_at = 0, False
        self.find_at()
        today = (self.at + 129600000) // DAY % 7
        self.at += (int(wanted) - (today - 7 if today > wanted else today)) * DAY
        self.forget_parts()

    def _go_back(self, unit: str) -> None:
        """Go to the start of the month, year or day; refuse other units."""
        if not (self.has_at or self.has_date or self.has_time) or unit not in (
            *("month", "year", "day"),
        ):
            raise NoInstant
        self.find_date()
        self.has_time, self.hour, self.minute, self.second = True, 0, 0, 0.0
        self.is_raw, self.zone, self.has_at = False, 0, False
        if unit != "day":
            self.day = 1
        if unit == "year":
            self.month = 1

    def _move(self, text: str) -> None:
        """Move by a number of units, such as `+1 month`, or by a time; refuse other texts."""
        found = re.match(r".[^: \t\n\v\f\r]*", text, re.DOTALL)
        start = found[0] if found else ""
        if NUMBER.fullmatch(start) is None:
            raise NoInstant
        number, rest = float(start), text[len(start) :]
        if rest.startswith(":"):
            self._move_by_time(text)
            return
        unit = rest.lstrip(SPACES)
        if not 3 <= len(unit.encode()) <= 10:
            raise NoInstant
        name = unit.lower().removesuffix("s")
        self.find_at()
        limit, seconds = _UNITS.get(name, (0.0, 0.0))
        if not -limit < number < limit:
            raise NoInstant
        rounding = -0.5 if number < 0 else 0.5
        if name in ("month", "year"):
            self.find_parts()
            if name == "month":
                self.month += int(number)
                years = (
                    int((self.month - 1) / 12) if self.month > 0 else int((self.month - 12) / 12)
                )
                self.year, self.month = self.year + years, self.month - years * 12
            else:
                self.year += int(number)
            self.has_at = False
            number -= int(number)
        self.find_at()
        self.at += int(number * 1000.0 * seconds + rounding)
        self.forget_parts()

    def _move_by_time(self, text: str) -> None:
        """Move by the hours, minutes and seconds of a text; back after a `-`."""
        other = Instant()
        other.set_time(text if text[0].isdigit() else text[1:])
        other.find_at()
        by = (other.at - 43200000) % DAY
        self.find_at()
        self.forget_parts()
        self.at += -by if text[0] == "-" else by


def _instant(value: Any, modifiers: tuple[Any, ...]) -> Instant | None:
    """Return the instant of a time value and modifiers; None if it is none."""
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
    """Return the time of day as text, with milliseconds if `subsec` asked for them."""
    start = f"{made.hour:02d}:{made.minute:02d}:{int(made.second):02d}"
    if not made.parts_of_seconds:
        return start
    return f"{start}.{int(made.second * 1000 + 0.5) % 1000:03d}"


def date(value: Any, *modifiers: Any) -> str | None:
    """Return year, month and day (DATE).

    >>> date("2024-01-31", "+1 month"), date("2024-05-05", "start of year"), date("soon")
    ('2024-03-02', '2024-01-01', None)
    """
    made = _instant(value, modifiers)
    if made is None:
        return None
    made.find_date()
    return _date_of(made)


def time(value: Any, *modifiers: Any) -> str | None:
    """Return hours, minutes and seconds (TIME); None if there is no such instant."""
    made = _instant(value, modifiers)
    if made is None:
        return None
    made.find_parts()
    return _time_of(made)


def datetime(value: Any, *modifiers: Any) -> str | None:
    """Return date and time, with a space between them (DATETIME); None for no instant."""
    made = _instant(value, modifiers)
    if made is None:
        return None
    made.find_parts()
    return f"{_date_of(made)} {_time_of(made)}"


def julianday(value: Any, *modifiers: Any) -> float | None:
    """Return the Julian day, with its fraction (JULIANDAY); None for no instant."""
    made = _instant(value, modifiers)
    return None if made is None else made.at / 86400000.0


def unixepoch(value: Any, *modifiers: Any) -> float | None:
    """Return the seconds since the beginning of 1970 (UNIXEPOCH); None for no instant."""
    made = _instant(value, modifiers)
    if made is None:
        return None
    if made.parts_of_seconds:
        return (made.at - EPOCH) / 1000.0
    return made.at // 1000 - EPOCH // 1000


def strftime(pattern: Any, value: Any, *modifiers: Any) -> str | None:
    """Return STRFTIME: an instant by a pattern; None if the pattern has an unknown part.

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
        part = _write_time_part(next(letters, ""), made)
        if part is None:
            return None
        parts.append(part)
    return "".join(parts)


def _write_time_part(letter: str, made: Instant) -> str | None:
    """Return what a letter of STRFTIME stands for; None for an unknown letter."""
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
