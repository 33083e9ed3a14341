"""TO_CHAR of times, by the words of Postgres' formats.

    written(moment, "FMDD Mon YYYY")     "3 Feb 2024"

A word is read as the longest that fits, in upper or in lower case. What is
not supported, such as `TM` and zones, raises `NotSupportedError`.

TO_TIMESTAMP and TO_DATE: moments that are read by the words of Postgres' formats.

    read("3 Feb 2024", "DD Mon YYYY")    the moment

Fields of months and fields of weeks do not go together, and a field has one value.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from functools import lru_cache
from typing import Any

from reactive.languages.sql.postgres.numbers import NotSupportedError
from reactive.languages.sql.runtime.intervals import parts_of
from reactive.languages.sql.runtime.times import as_timestamp

ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
NAMED = ("MONTH", "Month", "month", "MON", "Mon", "mon", "DAY", "Day", "day", "DY", "Dy", "dy")
PLAIN = (
    *("A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DDD", "DD", "D", "FF1", "FF2", "FF3"),
    *("FF4", "FF5", "FF6", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I"),
    *("J", "MI", "MM", "MS", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "US", "WW", "W"),
    *("Y,YYY", "YYYY", "YYY", "YY", "Y", "TZH", "TZM", "TZ", "OF", "FX", "TM"),
)
WORDS = sorted({*NAMED, *PLAIN, *(word.lower() for word in PLAIN)}, key=len, reverse=True)
_TOKEN = re.compile(
    rf"(FM|fm)?(?P<word>{'|'.join(map(re.escape, WORDS))})(TH|th|SP|sp)?"
    r'|"(?P<quoted>(?:[^"\\]|\\.)*)"?|\\(?P<escaped>")|(?:FM|fm)|(?P<other>.)',
    re.DOTALL,
)
Token = tuple[str, str, bool, str]
"""Its word (or empty), its text, whether zeros and blanks are left out, its ordinal."""


@lru_cache(512)
def tokens_of(form: str) -> tuple[Token, ...]:
    """Return the tokens of a format, in order: its words, and the texts between them."""
    made: list[Token] = []
    for found in _TOKEN.finditer(form):
        if found["word"]:
            made.append((found["word"], found["word"], bool(found[1]), found[3] or ""))
        else:
            quoted = found["quoted"]
            text = quoted if quoted is not None else found["escaped"] or found["other"] or ""
            text = re.sub(r"\\(.)", r"\1", text) if quoted is not None else text
            made.append(("", text, quoted is not None, ""))
    return tuple(made)


def written(of: Any, form: str) -> str | None:
    """Write a date, a timestamp or an interval in a format (TO_CHAR); NULL of no format.

    >>> written(dt.date(2024, 2, 3), "FMDD Mon YYYY, Q")
    '3 Feb 2024, 1'
    """
    if not form:
        return None
    fields = _Fields(of)
    return "".join(
        fields.shown(word, fill=not bare, ordinal=ordinal) if word else text
        for word, text, bare, ordinal in tokens_of(form)
    )


class _Fields:
    """The parts of a moment or an interval."""

    def __init__(self, of: Any) -> None:
        self._is_interval = isinstance(of, dt.timedelta)
        if self._is_interval:
            months, self.day, micros = parts_of(of)
            sign = -1 if micros < 0 else 1
            seconds, self.micro = divmod(abs(micros), 1_000_000)
            self.hour, self.minute, self.second = seconds // 3600, seconds // 60 % 60, seconds % 60
            self.hour, self.minute, self.second, self.micro = (
                sign * n for n in (self.hour, self.minute, self.second, self.micro)
            )
            sign = -1 if months < 0 else 1
            self.year, self.month = (sign * n for n in divmod(abs(months), 12))
            return
        moment = as_timestamp(of)
        self.moment = moment
        self.year, self.month, self.day = moment.year, moment.month, moment.day
        self.hour, self.minute, self.second = moment.hour, moment.minute, moment.second
        self.micro = moment.microsecond

    def shown(self, word: str, *, fill: bool, ordinal: str) -> str:
        """Return the text of a word; `ordinal` is TH, th or empty. Words of zones are refused."""
        upper = word.upper()
        if upper in ("TM", "TZ", "TZH", "TZM", "OF"):
            raise NotSupportedError(f"the word {word!r} of a format")
        if upper == "FX":
            return ""
        if word in NAMED or upper in HALVES or upper in ("RM",):
            return self._named(word, fill=fill)
        if upper == "Q" and self._is_interval:
            return self._quarter(ordinal)
        number, width = self._number(upper)
        wide = number < 0 and upper not in ("DD", "MS", "US")
        width += wide
        text = f"{number:0{width if fill else 0}}"
        if upper == "Y,YYY":
            text = f"{number // 1000},{number % 1000:03}"
        elif upper in ("MS", "US") or upper.startswith("FF"):
            text = f"{number:0{width}}"
        return text + (ordinal_ending(number, ordinal) if ordinal.upper() == "TH" else "")

    def _quarter(self, ordinal: str) -> str:
        """Return the quarter of the months of an interval, cut towards 0; of no months nothing."""
        if not self.month:
            return ""
        number = int((self.month - 1) / 3) + 1
        return str(number) + (ordinal_ending(number, ordinal) if ordinal.upper() == "TH" else "")

    def _named(self, word: str, *, fill: bool) -> str:
        """Return the name of a month or day, half or Roman month; an interval has no names."""
        upper = word.upper()
        if upper in HALVES:
            return self._half(word)
        if upper == "RM":
            if not (self.month or self.year):
                return ""
            made = ROMAN[self.month - (self.month >= 0)]
            if not self.month and self.year < 0:
                made = ROMAN[0]
            made = made if word == "RM" else made.lower()
            return f"{made:<4}" if fill else made
        if self._is_interval:
            raise ValueError(f"invalid format specification for an interval value: {word!r}")
        names = calendar.month_name if upper.startswith("MON") else calendar.day_name
        place = self.month if upper.startswith("MON") else self.moment.weekday()
        made = names[place]
        made = made[: {"MON": 3, "DY": 3}.get(upper)]
        made = made.upper() if word.isupper() else made.lower() if word.islower() else made
        return f"{made:<9}" if fill and upper in ("MONTH", "DAY") else made

    def _half(self, word: str) -> str:
        """Return AM, PM or AD in the letters of the word; an interval has no AD."""
        if word.upper().replace(".", "") in ("AM", "PM"):
            made = "pm" if self.hour % 24 >= 12 else "am"
        elif self._is_interval:
            raise ValueError(f"invalid format specification for an interval value: {word!r}")
        else:
            made = "ad"
        made = f"{made[0]}.{made[1]}." if "." in word else made
        return made.upper() if word.isupper() else made

    def _number(self, word: str) -> tuple[int, int]:
        """Return the number that a word asks for, and its width; refuse an unknown word."""
        match word:
            case "HH" | "HH12":
                hour = self.hour % 12 if self.hour >= 0 else -(-self.hour % 12)
                return hour or 12, 2
            case "HH24":
                return self.hour, 2
            case "MI":
                return self.minute, 2
            case "SS":
                return self.second, 2
            case "MS":
                return int(self.micro / 1000), 3
            case "US" | "FF6":
                return self.micro, 6
            case "FF1" | "FF2" | "FF3" | "FF4" | "FF5":
                digits = int(word[2])
                return int(self.micro / 10 ** (6 - digits)), digits
            case "SSSS" | "SSSSS":
                return self.hour * 3600 + self.minute * 60 + self.second, 0
            case "MM":
                return self.month, 2
            case "DD":
                return self.day, 2
            case "Y,YYY" | "YYYY":
                return self.year, 4
            case "YYY" | "YY" | "Y":
                return self.year % 10 ** len(word), len(word)
            case "CC":
                if self._is_interval:
                    return int(self.year / 100), 2
                return (self.year + 99) // 100, 2
            case "Q" if self.month:
                return (self.month - 1) // 3 + 1, 0
            case "D" | "ID" if self._is_interval:
                raise ValueError(f"invalid format specification for an interval value: {word!r}")
            case _ if self._is_interval:
                raise NotSupportedError(f"the word {word!r} in a format of an interval")
            case _:
                return self._of_week(word)

    def _of_week(self, word: str) -> tuple[int, int]:
        """Return the number and the width of a word of weeks and days; refuse another word."""
        year, week, day = self.moment.isocalendar()
        of_year = self.moment.timetuple().tm_yday
        match word:
            case "IYYY" | "IYY" | "IY" | "I":
                width = len(word)
                return (year if width == 4 else year % 10**width), width
            case "IW":
                return week, 2
            case "ID":
                return day, 0
            case "IDDD":
                return (week - 1) * 7 + day, 3
            case "WW":
                return (of_year - 1) // 7 + 1, 2
            case "W":
                return (self.day - 1) // 7 + 1, 0
            case "D":
                return day % 7 + 1, 0
            case "DDD":
                return of_year, 3
            case "J":
                return self.moment.toordinal() + 1721425, 0
            case _:
                raise NotSupportedError(f"the word {word!r} of a format")


HALVES = ("AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C.")


def ordinal_ending(number: int, form: str) -> str:
    """Return `st`, `nd`, `rd` or `th` for a number, in upper case if the word `form` is."""
    last = abs(number) % 100
    made = "th" if 10 < last < 20 else {1: "st", 2: "nd", 3: "rd"}.get(last % 10, "th")
    return made.upper() if form.isupper() else made


_LENGTHS = {"YYY": 3, "YY": 2, "Y": 1, "MS": 3, "US": 6, "DDD": 3, "D": 1, "Q": 1, "W": 1}
_LENGTHS |= {"IYYY": 4, "IDDD": 3, "ID": 1, "YYYY": 4, "J": 7, "SSSS": 5, "SSSSS": 5, "CC": 2}
_LENGTHS |= {"IYY": 3, "IY": 2, "I": 1, "FF1": 1, "FF2": 2, "FF3": 3, "FF4": 4, "FF5": 5, "FF6": 6}


def read(text: str, form: str) -> dt.datetime:
    """Read a text as a timestamp without its zone (TO_TIMESTAMP).

    >>> read("05 Dec 2000", "DD Mon YYYY")
    datetime.datetime(2000, 12, 5, 0, 0)
    """
    return _moment_of(_read_fields(text, form))


def read_date(text: str, form: str) -> dt.date:
    """Read a text as a date (TO_DATE)."""
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
    """Return the place behind blanks, and how many they are."""
    begin = place
    while place < len(text) and text[place].isspace():
        place += 1
    return place, place - begin


_OF_WEEKS = frozenset({"IYYY", "IYY", "IY", "I", "IW", "ID", "IDDD"})
_OF_MONTHS = frozenset(
    {"YYYY", "YYY", "YY", "Y", "Y,YYY", "MM", "DD", "DDD", "D", "WW", "W", "RM", "MONTH", "MON"}
)


def _check_calendar(word: str, fields: dict[str, Any]) -> None:
    """Refuse a word of weeks after one of months, or the reverse; record its kind in `fields`."""
    if word in _OF_WEEKS | _OF_MONTHS:
        kind = word in _OF_WEEKS
        if fields.setdefault("is of weeks", kind) is not kind:
            raise ValueError("invalid combination of date conventions: weeks and months")


def _is_separator(letter: str) -> bool:
    return letter.isascii() and not letter.isalnum()


def _read_word(word: str, text: str, place: int, fields: dict[str, Any], *, runs_on: bool) -> int:
    """Read one field into `fields`; return the place behind it, or raise if the text has none."""
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
    """Return the year near 2020 that has these last digits."""
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    if year < 520:
        return year + 2000
    return year + 1000 if year < 1000 else year


def _read_name(word: str, text: str, place: int, fields: dict[str, Any]) -> int:
    """Return the place behind a name of a month (set in `fields`) or a day; raise without one."""
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
    """Set a field; raise if it has another value already."""
    if fields.get(name) and fields[name] != value:
        raise ValueError(f"conflicting values for {name!r}")
    fields[name] = value


def _moment_of(fields: dict[str, Any]) -> dt.datetime:
    """Return the moment of some fields; refuse an hour that is not on the 12-hour clock."""
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
    """Return the date of some fields; refuse one before the year 1, and a day beyond the year."""
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
    """Return the year, of a century if it has two digits, or the first of a century.

    Return None if neither is given.
    """
    year: int | None = fields.get("IYYY", fields.get("YYYY"))
    century = fields.get("CC")
    if not century:
        return year
    if year is None:
        return int((century - 1) * 100 + 1)
    if not fields.get("is short"):
        return year
    return int((century - (year % 100 > 0)) * 100 + year % 100)
