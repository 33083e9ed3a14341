"""Parameters of PEP 249 as the parameters of `db.sql`: `:name`.

all dialects     :name     a mapping
                 ?         a sequence
duckdb           $1, $2    a sequence
postgres         %(name)s  a mapping; %s a sequence; %% is a percent sign if there are parameters
sqlite           ?1, ?2    a sequence
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reactive.languages.sql.dbapi.errors import ProgrammingError
from reactive.languages.sql.text.read import LEFT_ALONE

BY_PLACE = re.compile(LEFT_ALONE + r"|\$(\w*)\$.*?\$\1\$|\?(\d*)|\$(\d+)", re.DOTALL)
"""`?`, `?2` and `$2`; and texts, names and remarks, in which nothing stands for a parameter."""
BY_PERCENT = re.compile(r"%(?:%|s|\((\w+)\)s)|%(?=(.?))")
"""`%s`, `%(name)s` and `%%`: psycopg looks at them inside of texts as well."""
NAMED = re.compile(r"(?<![\w:]):\w")
"""`:name`, outside of texts."""
UNORDERED = (str, bytes, set, frozenset)
"""Classes that can be iterated, and are no sequences of parameters."""
PREFIX = "parameter_"
"""Begins the names of parameters that have none."""


def with_names(
    text: str, parameters: Sequence[Any] | Mapping[str, Any] | None, dialect: str
) -> tuple[str, dict[str, Any]]:
    """Return a text whose parameters have names, and their values.

    Raises
    ------
    ProgrammingError: there are more, or fewer, values than places for them.

    >>> with_names("select ? + ?", (1, 2), "duckdb")
    ('select :parameter_1 + :parameter_2', {'parameter_1': 1, 'parameter_2': 2})
    >>> with_names("select %(a)s, '100%%'", {"a": 1}, "postgres")
    ("select :a, '100%'", {'a': 1})
    """
    named = dict(parameters) if isinstance(parameters, Mapping) else {}
    values = [] if parameters is None or isinstance(parameters, Mapping) else _values(parameters)
    if not named and not values:
        places = _count_places(text, dialect)
        if places:
            raise ProgrammingError(
                f"the number of parameters of the text is {places}, and no values are given"
            )
        return text, {}
    if named:
        is_percent = dialect == "postgres" and not NAMED.search(BY_PLACE.sub("", text))
        return (_percent(text, named)[0] if is_percent else text), named
    if dialect == "postgres" and (
        "%" in text and not any(each[0].startswith("?") for each in BY_PLACE.finditer(text))
    ):
        found, count = _percent(text, None)
    else:
        found, count = _question_marks(text)
    if count != len(values):
        raise ProgrammingError(
            f"the number of parameters of the text is {count}, that of the values {len(values)}"
            + ("\n  ? stands for a value; %s in the dialect of Postgres only" * ("%s" in text))
        )
    return found, {f"{PREFIX}{place}": value for place, value in enumerate(values, 1)}


def _values(parameters: Any) -> list[Any]:
    """Return the values of a sequence; refuse a text and what has no order."""
    if isinstance(parameters, UNORDERED) or not isinstance(parameters, Iterable):
        raise ProgrammingError(
            f"parameters are a sequence or a mapping, not {type(parameters).__name__}\n"
            "  a single one is a tuple: (value,)"
        )
    return list(parameters)


def _count_places(text: str, dialect: str) -> int:
    """Return the number of question marks of a text that has no values."""
    if dialect == "postgres":  # an operator
        return 0
    return sum(each[0].startswith("?") for each in BY_PLACE.finditer(text))


def _question_marks(text: str) -> tuple[str, int]:
    """Return a text with names for `?`, `?2` and `$2`, and the number of values that it takes."""
    count = 0

    def name(found: re.Match[str]) -> str:
        nonlocal count
        if not found[0].startswith("?") and not found[3]:
            return found[0]
        digits = found[2] or found[3]
        place = int(digits) if digits else count + 1
        count = max(count, place)
        return f":{PREFIX}{place}"

    return BY_PLACE.sub(name, text), count


def _percent(text: str, named: Mapping[str, Any] | None) -> tuple[str, int]:
    """Return a text with names for `%s` or `%(name)s`, and the number of `%s`."""
    count = 0

    def name(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] == "%%":
            return "%"
        if found[1]:
            return f":{found[1]}"
        if found[0] == "%s" and named is None:
            count += 1
            return f":{PREFIX}{count}"
        raise ProgrammingError(
            f"{found[0]}{found[2] or ''} is no parameter\n"
            "  %s, %(name)s, and %% for a percent sign in a text with parameters"
        )

    return BY_PERCENT.sub(name, text), count
