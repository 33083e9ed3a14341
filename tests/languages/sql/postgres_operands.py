"""Sweep the operators of Postgres over pairs of operands, beside a server.

operator x operand x operand   -->   the server computes: so is the view, value and type
                                     it has no such operator: a PlanError when the query is made

Operands are columns of each type, written constants, texts without a type, and NULL.
`python -m tests.languages.sql.postgres_operands "+" "like"` lists the differences.
"""

from __future__ import annotations

import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import psycopg2

from reactive import Database, PlanError
from tests.languages.sql.postgres_player import ERROR, UNREADABLE, Server, new_database, same
from tests.postgres_server import PostgresServer

COLUMNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "i": ("integer", ("3", "-7", "2147483647")),
    "k": ("bigint", ("5", "-1", "9223372036854775807")),
    "h": ("smallint", ("2", "-3", "32767")),
    "f": ("float8", ("2.5", "-0.1", "1e308")),
    "r": ("real", ("1.5", "-0.1", "3e38")),
    "m": ("numeric", ("1.50", "-2", "12345678901234567890.123")),
    "x": ("text", ("'x'", "'1'", "''")),
    "b": ("boolean", ("true", "false", "true")),
    "d": ("date", ("'2024-01-31'", "'1999-12-31'", "'9999-12-31'")),
    "t": ("timestamp", ("'2024-01-31 10:00:00'", "'1999-12-31'", "'9999-12-31 23:59:59'")),
    "z": ("timestamptz", ("'2024-01-31 10:00:00+00'", "'1999-12-31'", "'9999-12-31'")),
    "c": ("time", ("'10:00:00'", "'00:00:00'", "'23:59:59.5'")),
    "v": ("interval", ("'1 day'", "'-1 mon 2:00'", "'178000 days'")),
    "u": (
        "uuid",
        tuple(f"'{uuid.UUID(int=n)}'" for n in (1, 0, 2**128 - 1)),
    ),
    "y": ("bytea", ("'ab'", "''", "'\\xff00'")),
    "a": ("integer[]", ("'{1,2}'", "'{}'", "'{3,NULL,-7}'")),
    "w": ("text[]", ("'{x,y}'", "'{}'", "'{NULL,x}'")),
}
"""Columns by name: a type, and its value in the first rows; the last row is all NULL."""
CONSTANTS = (
    *("1", "-2", "3000000000", "2.5", "'1'", "'x'", "'2024-01-31'", "'1 day'", "'{1,2}'", "null"),
    *("true", "date '2024-02-29'", "interval '1 day'"),
)
UNARY = ("-{}", "+{}", "not {}", "~{}", "@{}", "|/{}", "{} is null", "{} is true", "{} is unknown")
SYMBOLS = (
    *("+", "-", "*", "/", "%", "^", "||", "&", "|", "#", "<<", ">>"),
    *("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"),
    *("and", "or", "like", "not like", "ilike", "similar to", "~", "~*", "!~", "!~*"),
    *("@>", "<@", "&&", "->", "->>", "at time zone"),
)
BINARY = (
    *(f"{{}} {symbol} {{}}" for symbol in SYMBOLS),
    *("{} in ({})", "{} not in ({}, null)", "{} = any ({})", "{} < all ({})"),
    *("{} between {} and 3", "{} like any ({})", "nullif({}, {})"),
)
CASTS = tuple(f"({{}})::{kind}" for kind, _ in COLUMNS.values())
PATTERNS = (*UNARY, *BINARY, *CASTS)
ROWS = range(4)
KNOWN = (
    "without a time zone is compared with instants",  # by design: it has to say which instant
    "there is no - for ",
    "there is no time zone",  # '1 day' is a zone of the POSIX kind, an hour west
    "is not supported",
    "AT TIME ZONE takes a time and the name of a zone, not",  # no TIMETZ, and no text of NULL's
)
"""Refusals, by a part of their text, of expressions that Postgres computes."""
BINDING = ("42", "0A")
"""Classes of the errors of Postgres that a query has before it reads a row."""


def texts(pattern: str) -> Iterator[str]:
    """Yield a pattern with all operands; the first or only one is a column or constant."""
    of = [*COLUMNS, *(f"({each})" for each in CONSTANTS)]
    if pattern.count("{}") == 1:
        yield from (pattern.format(each) for each in of)
    else:
        pairs = product(of, repeat=2)
        yield from (pattern.format(*pair) for pair in pairs)


class Sweep:
    """A table of all types, in the server and here."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._db = Database(dialect="postgres")
        declared = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
        server.run("drop table if exists operands")
        for run in (server.run, self._db.execute):
            run(f"create table operands (id integer, {declared})")
            for n in ROWS:
                row = (v[n] if n < len(v) else "null" for _, v in COLUMNS.values())
                run(f"insert into operands values ({n}, {', '.join(row)})")

    def play(self, text: str) -> str | None:
        """Return how an expression differs from that of the server; None if it does not."""
        theirs = self._theirs(text)
        try:
            view = self._db.sql(f"select id, ({text}) as value from operands").materialize()
        except PlanError as error:
            is_refused = isinstance(theirs, str) or ERROR in theirs.values()
            if is_refused or any(each in str(error) for each in KNOWN):
                return None
            return f"{text}: refused, {str(error).splitlines()[0]}; Postgres has {theirs}"
        except Exception as error:
            return f"{text}: cannot be made: {type(error).__name__}: {error}"
        with view:
            mine = {row.id: row.value for row in view}
        if isinstance(theirs, str):
            return f"{text}: {mine}; Postgres refuses: {theirs}"
        if all(_same(theirs[n], mine.get(n, ERROR)) for n in ROWS):
            return None
        return f"{text}: {mine}; Postgres has {theirs}"

    def _theirs(self, text: str) -> dict[int, Any] | str:
        """Return the value of each row, or why the server refuses the expression."""
        try:
            return dict(self._server.rows(f"select id, ({text}) from operands"))
        except psycopg2.Error as error:
            if (error.pgcode or "")[:2] in BINDING:
                return str(error).splitlines()[0]
        return self._server.column(text, ROWS, "operands")


def _same(one: Any, other: Any) -> bool:
    if isinstance(other, uuid.UUID):
        other = str(other)
    return other is ERROR if one is UNREADABLE else same(one, other)


def differing(server: Server, patterns: Sequence[str], share: float, random: Random) -> list[str]:
    """Return how the texts of a part of all operands differ."""
    played = Sweep(server)
    found: list[str] = []
    for pattern in patterns:
        drawn = [text for text in texts(pattern) if random.random() < share]
        found += filter(None, map(played.play, drawn))
    return found


def main() -> None:
    """Play the operators that the command line names, or all, against a server of its own."""
    postgres = PostgresServer()
    postgres.start()
    server = Server(new_database(postgres))
    named = sys.argv[1:]
    patterns = [p for p in PATTERNS if not named or p in named or p[3:-3] in named]
    counts = Counter[str]()
    for pattern in patterns:
        for each in differing(server, [pattern], 1, Random(1)):
            counts[pattern] += 1
            print(each[:300], flush=True)
    print(counts.total(), "differ", counts)
    server.close()
    postgres.close()


if __name__ == "__main__":
    main()
