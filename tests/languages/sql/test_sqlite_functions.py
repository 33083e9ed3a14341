"""Functions of times and formats of the dialect "sqlite" against SQLite itself."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from reactive import Database, PlanError
from reactive.languages.sql.sqlite import formats, times
from tests.budget import TIMES, drawing
from tests.languages.sql.sqlite_player import Both

TIME_VALUES: list[Any] = [
    *("2024-02-29", "2024-01-31", "0000-01-01", "-0001-03-01", "9999-12-31", "-4713-11-24"),
    *("-4713-11-24 12:00", "2024-13-01", "2024-1-1", "2024-06-15 23:59:59.999", "24:00"),
    *("2024-06-15T12:34", "12:34:56.789", "23:59:60", "2024-06-15 12:00+02:00", "2024-06-15 "),
    *("2024-06-15 12:00:00Z", "2024-06-15 12:00 -14:59", "12:00 +15:00", "", "x", "é", None),
    *("2451544.5", " 12 ", "1e3", "2024-06-15  T 12:00", "12:34:56.", "00:00:00.0005", 0, 1, -1),
    *(2451544.5, 1e10, 1700000000, -1e12, 5373484.5, 5373484.49999, 0.25, 1e300, b"2024-01-01"),
    *(-210866760000, 253402300799, 253402300800, 1700000000.5, "1700000000", 2451544.123456),
]
MODIFIERS: list[Any] = [
    *("+1 day", "-1 day", "+1 month", "-1 months", "+13 months", "-25 month", "+1 year"),
    *("-5000 years", "10000 years", "+1.5 days", "-1.5 months", "+1.5 years", "start of month"),
    *("start of year", "start of day", "weekday 0", "weekday 3", "weekday 6", "weekday 7"),
    *("weekday 1.0", "weekday x", "unixepoch", "auto", "julianday", "+12:30", "-00:00:30.5"),
    *("12:00", "+1 DAYS", "+1day", "+ 1 day", "1 days", "+1e3 seconds", "+1.0001 second", "x"),
    *("-99999999999 seconds", "+1 fortnight", "", "START OF MONTH", "+1 hours", "-61 minutes"),
    *("+0.0005 seconds", "start of week", None, 5, "+1 month  ", "+24:00", "+25:00", "+ day"),
]
PATTERNS = (
    *("%d", "%f", "%H", "%j", "%J", "%m", "%M", "%s", "%S", "%w", "%W", "%Y", "%%", "%", "a%q"),
    *("", "é %d", "%Y-%m-%dT%H:%M:%f"),
)
FORMATTED: list[Any] = [
    *(None, 0, 1, -1, 42, -7, 1234567, 9223372036854775807, -9223372036854775808, 3.7, -2.5, 0.5),
    *(1.005, -1e-7, 123456.789, 0.1, 2.5, 99.995, 0.00012345, "", "a", "it's", 'q"q', "é", "Äpfel"),
    *("12", "12abc", " -3.5x", "1e3", b"ab", b"", 999999.5, 1e-5, math.inf, -math.inf),
]


def _same(function: str, made: Callable[..., Any], drawn: Callable[[Any], list[Any]]) -> None:
    other, random, wrong = sqlite3.connect(":memory:"), drawing(), []
    for _ in range(60_000 * TIMES or 2_000):
        given = drawn(random)
        try:
            text = f"select {function}({', '.join('?' * len(given))})"
            (theirs,) = other.execute(text, given).fetchone()
        except sqlite3.Error:
            continue  # a text that is cut inside a letter
        mine = made(*given)
        if (type(mine), mine) != (type(theirs), theirs):
            wrong.append(f"{function}{given!r}: {mine!r:.200} for {theirs!r:.200}")
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.parametrize("name", ["date", "time", "datetime", "julianday", "unixepoch", "strftime"])
def test_times_are_those_of_sqlite(name: str) -> None:
    function = getattr(times, name)

    def made(*given: Any) -> Any:
        return None if None in given else function(*given)

    def drawn(random: Any) -> list[Any]:
        given = [random.choice(TIME_VALUES)]
        given += [random.choice(MODIFIERS) for _ in range(random.choice((0, 1, 1, 2, 3)))]
        return [random.choice(PATTERNS), *given] if name == "strftime" else given

    _same(name, made, drawn)


def _spec(random: Any) -> str:
    flags = "".join(random.choice("-+ #!0,") for _ in range(random.choice((0, 0, 1, 1, 2))))
    width = random.choice(("", "", "", "5", "12", "3"))
    precision = random.choice(("", "", "", ".2", ".0", ".", ".5", ".1", ".8"))
    letters = "ddiuxXopfeEgGfgsszqQwcn%" + ("y" if random.random() < 0.1 else "d")
    return f"%{flags}{width}{precision}{random.choice(('', '', 'l', 'll'))}{random.choice(letters)}"


@pytest.mark.parametrize("name", ["printf", "format"])
def test_formats_are_those_of_sqlite(name: str) -> None:
    def drawn(random: Any) -> list[Any]:
        pattern = random.choice(("", "a", "é")) + _spec(random) + random.choice(("", "|", "%"))
        if random.random() < 0.3:
            pattern += _spec(random)
        exact = [v for v in FORMATTED if not isinstance(v, int) or abs(v) < 1 << 53]
        values = exact if "!" in pattern else FORMATTED  # digits behind the 16th are its own
        return [pattern, *random.choices(values, k=random.choice((0, 1, 1, 2)))]

    _same(name, formats.formatted, drawn)


def test_widths_are_arguments() -> None:
    both = Both()
    for text in ("'%*d|', 5, 3", "'%*d|', -5, 3", "'%.*f', 2, 1.005", "'%-*.*s|', 6, 2, 'abc'"):
        both.ask(f"select printf({text}) as x")
    assert not both.wrong, both.wrong


def test_columns_are_formatted_and_moved() -> None:
    both = Both("create table t (id integer primary key, d date, n)")
    both.execute(
        "insert into t values (1, '2024-01-31', 3), (2, null, 1), (3, 'x', 2), (4, 0, null)"
    )
    both.ask("select id, date(d, '+' || n || ' days') as x, typeof(unixepoch(d)) as y from t")
    both.ask("select id, printf('%03d|%s', n, d) as x, format(d, n) as y, printf(n) as z from t")
    both.ask("select strftime('%Y', d) as y, count(*) as n from t group by strftime('%Y', d)")
    both.ask("select id from t where date(d) >= '2024-01-01'")
    assert not both.wrong, both.wrong


@pytest.mark.parametrize(
    "text",
    [
        "date()",
        "time('now')",
        "strftime('%Y')",
        "date('2024-01-01', 'localtime')",
        "date(1, 'UTC')",
    ],
)
def test_what_is_of_the_clock_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="of sqlite is not supported: a live query does not notice"):
        Database(dialect="sqlite").sql(f"select {text}")


def test_what_is_of_the_clock_in_a_row_is_an_error_of_it() -> None:
    db = Database(dialect="sqlite")
    db.execute("create table t (d)")
    db.execute("insert into t values ('now'), ('2024-01-01')")
    with db.sql("select date(d) as x from t").materialize() as view:
        assert [tuple(row) for row in view] == [("2024-01-01",)]
        assert len(view.errors) == 1


def test_parts_of_seconds_are_shown_if_asked_for() -> None:
    given = ("2024-01-01 12:00:00.25", "subsec")
    assert times.time(*given) == "12:00:00.250"
    assert times.datetime(*given) == "2024-01-01 12:00:00.250"
    assert times.unixepoch(*given) == 1704110400.25
