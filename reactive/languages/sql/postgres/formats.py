"""TO_CHAR of times, by the words of Postgres' formats.

    written(moment, "FMDD Mon YYYY")     "3 Feb 2024"

A word is read as the longest that fits, in upper or in lower case. What is
not supported, such as `TM` and zones, raises `NotSupportedError`.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from functools import lru_cache
from typing import Any

from reactive.languages.sql.postgres.numbers import NotSupportedError
from reactive.languages.sql.runtime.intervals import interval_parts
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
        fields.write_word(word, fill=not bare, ordinal=ordinal) if word else text
        for word, text, bare, ordinal in tokens_of(form)
    )


class _Fields:
    """The parts of a moment or an interval."""

    def __init__(self, of: Any) -> None:
        self._is_interval = isinstance(of, dt.timedelta)
        if self._is_interval:
            months, self.day, micros = interval_parts(of)
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

    def write_word(self, word: str, *, fill: bool, ordinal: str) -> str:
        """Return the text of a word; `ordinal` is TH, th or empty. Words of zones are refused."""
        upper = word.upper()
        if upper in ("TM", "TZ", "TZH", "TZM", "OF"):
            raise NotSupportedError(f"the word {word!r} of a format")
        if upper == "FX":
            return ""
        if word in NAMED or upper in HALVES or upper in ("RM",):
            return self._write_name(word, fill=fill)
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

    def _write_name(self, word: str, *, fill: bool) -> str:
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
