"""Drawn formats of Postgres, with numbers and moments for TO_CHAR, TO_NUMBER and the like.

    DRAWN["numbers"](random, 100, server)     "to_char('-13'::integer, '9S0D9')", ...

Texts that are read are written by the server with the same format, and changed by a letter or two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Protocol


class Asked(Protocol):
    """A server that has the value of a query."""

    def value(self, text: str) -> object: ...


OF_DIGITS = ("9", "9", "9", "9", "0", "0", "0", "99", "99", ".", ".", "D", ",", ",", "G")
OF_SIGNS = ("S", "MI", "PL", "SG", "PR", "FM", "FM", "L", "th", "TH", "V", "B", "x", '"q"')
RARE = ("EEEE", "RN", "rn", "SP", "Mi")
NUMBERS = {
    "integer": ("0", "1", "-13", "7", "123", "2147483647", "-2147483648"),
    "bigint": ("-3", "9223372036854775807", "1234567"),
    "numeric": (
        *("0", "1.5", "-2.505", "0.005", "-0.004", "123456789012345678901234567890.5"),
        *("NaN", "Infinity", "-Infinity", "-99.995", "12.10"),
    ),
    "double precision": (
        *("0", "-0.0", "2.5", "-0.1", "1e15", "1e16", "1e300", "-1e-7", "Infinity", "-Infinity"),
        *("NaN", "123456789.125", "-99.5", "3.14159265358979"),
    ),
    "real": ("2.5", "-1e10", "3.1415927", "123456.7"),
}
READ = ("0", "1", "-12", "123", "12.5", "-3.75", "1234567.891", "0.5", "99.99")
OF_TIMES = (
    *("YYYY", "YYYY", "MM", "MM", "DD", "DD", "HH24", "HH24", "MI", "MI", "SS", "SS", "HH12"),
    *("HH", "AM", "pm", "Month", "MONTH", "Mon", "mon", "MON", "Day", "DAY", "Dy", "dy", "DDD"),
    *("D", "ID", "IYYY", "IW", "WW", "W", "Q", "J", "YY", "YYY", "Y", "IYY", "IY", "I", "MS"),
    *("US", "FF3", "FF6", "SSSS", "CC", "BC", "AD", "B.C.", "a.m.", "RM", "rm", "Y,YYY"),
)
BETWEEN = ("-", " ", "/", ":", "", "", ".", "  ", '"x"', ",", ", ", "T", "_")
MOMENTS = (
    *("2024-02-29 13:05:09.123456", "1999-12-31 23:59:59", "0001-01-01 00:00:00"),
    *("9999-12-31 23:59:59.999999", "2023-03-31 00:30:00", "1900-01-01 12:00:00"),
)
SPANS = (
    *("0", "1 day", "-1 day", "1 mon 2 days 03:04:05.6", "1 year", "-1 mon 1 day"),
    *("-00:00:01.5", "14 mons -3 days -00:30:00"),
)
"""Spans with less than a day beside their days: here 25 hours are a day and an hour."""


def quoted(text: str) -> str:
    """A text as it is written in a query."""
    return "'" + text.replace("'", "''") + "'"


def _of_numbers(random: Random) -> str:
    words = (*OF_DIGITS * 3, *OF_SIGNS, *(RARE if random.random() < 0.1 else ()))
    return "".join(random.choices(words, k=random.randint(1, 8)))


def _of_times(random: Random) -> str:
    made = ""
    for _ in range(random.randint(1, 5)):
        made += "FM" * (random.random() < 0.12) + random.choice(OF_TIMES)
        made += random.choice(("th", "TH")) * (random.random() < 0.06) + random.choice(BETWEEN)
    return made


def _changed(random: Random, text: object) -> str:
    """Return a text, perhaps with a letter inserted, deleted or changed."""
    made = text if isinstance(text, str) else "12"
    while made and random.random() < 0.4:
        place = random.randrange(len(made))
        letter = random.choice(("", *" -/:019ax.,+"))
        made = made[:place] + letter + made[place + random.randint(0, 1) :]
    return made


def _numbers(random: Random, count: int, server: Asked) -> Iterator[str]:
    for _ in range(count):
        kind = random.choice([*NUMBERS])
        value, form = random.choice(NUMBERS[kind]), _of_numbers(random)
        yield f"to_char({quoted(value)}::{kind}, {quoted(form)})"


def _texts_of_numbers(random: Random, count: int, server: Asked) -> Iterator[str]:
    for _ in range(count):
        form = quoted(_of_numbers(random))
        found = server.value(f"select to_char({quoted(random.choice(READ))}::numeric, {form})")
        yield f"to_number({quoted(_changed(random, found))}, {form})"


def _moments(random: Random, count: int, server: Asked) -> Iterator[str]:
    for _ in range(count):
        kind, values = random.choice((("timestamp", MOMENTS), ("interval", SPANS)))
        value, form = random.choice(values), _of_times(random)
        yield f"to_char({quoted(value)}::{kind}, {quoted(form)})"


def _texts_of_moments(random: Random, count: int, server: Asked) -> Iterator[str]:
    for _ in range(count):
        form, moment = quoted(_of_times(random)), quoted(random.choice(MOMENTS))
        found = server.value(f"select to_char({moment}::timestamp, {form})")
        text = _changed(random, found) if random.random() < 0.3 else str(found)
        yield f"to_timestamp({quoted(text)}, {form})::timestamp"


DRAWN: dict[str, Callable[[Random, int, Asked], Iterator[str]]] = {
    "numbers": _numbers,
    "texts of numbers": _texts_of_numbers,
    "moments": _moments,
    "texts of moments": _texts_of_moments,
}
"""Calls with drawn formats, by the kind of their argument."""
