"""Play expressions against an engine, as a Postgres server, and compare its values with a view's.

    pattern "left({text}, {count})"   ->   a table of all arguments, on both sides
    select id, left(a, b) from cases       compared row by row: value, type, NULL, error
    select left(a, b)::text ...            how the value is written
    select left(cast('abc' as text), 2)    the same of constants

A value that Python cannot represent (an infinite date, a year before 1) must be an error here.
A `PlanError` is a refusal: right if the engine refuses, and listed if it does not.
`python -m tests.languages.sql.postgres_player` lists the differences.
"""

from __future__ import annotations

import argparse
import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Literal, Protocol

import psycopg2
import psycopg2.extensions as types

from reactive import Database, PlanError
from reactive.languages.sql.runtime.intervals import interval_of, interval_parts
from tests.languages.sql.postgres_cases import GROUPS, POSTGRES, Arguments, filled, kinds_of
from tests.postgres_server import PostgresServer

ERROR, UNREADABLE = "an error", "a value that Python has no place for"
COLUMNS = "abcd"
SPAN = re.compile(
    r"(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mon(?:th)?s? ?)?(?:([+-]?\d+) days? ?)?"
    r"(?:([+-]?)(\d+):(\d+):(\d+)(\.\d+)?)?"
)


@dataclass
class Played:
    """Count of the cases played, with the differences and the cases only the engine accepts."""

    cases: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Played) -> None:
        self.cases += other.cases
        self.refused |= other.refused
        self.wrong += other.wrong


class Engine(Protocol):
    """A database of another maker, whose values are as views have them."""

    name: str
    dialect: Literal["duckdb", "postgres"]
    arguments: Arguments

    def run(self, text: str) -> None:
        """Run a statement."""
        ...

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        ...

    def value(self, text: str) -> Any:
        """Return the only value of a query, or `ERROR`."""
        ...

    def column(self, expr: str, ids: Sequence[int]) -> dict[int, Any]:
        """Return an expression of each row of `cases`, or `ERROR`."""
        ...


class Server:
    """A connection to Postgres that returns values in the form of views."""

    name: str = "Postgres"
    dialect: Literal["duckdb", "postgres"] = "postgres"
    arguments = POSTGRES

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg2.connect(dsn)
        self._connection.autocommit = True
        self.cursor = self._connection.cursor()
        self.cursor.execute("set timezone to 'UTC'; set intervalstyle to 'postgres'")
        for oids, array, read in (
            ((1186,), 1187, span_of),
            ((1082,), 1182, lambda text: date.fromisoformat(text)),
            ((1114, 1184), 1115, lambda text: datetime.fromisoformat(text)),
            ((1083,), 1183, lambda text: time.fromisoformat(text)),
            ((700,), 1021, lambda text: struct.unpack("f", struct.pack("f", float(text)))[0]),
        ):
            made = types.new_type(oids, "read", _reader(read))
            types.register_type(made, self._connection)
            types.register_type(types.new_array_type((array,), "reads", made), self._connection)

    def close(self) -> None:
        self._connection.close()

    def run(self, text: str) -> None:
        self.cursor.execute(text)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        self.cursor.execute(text)
        return [tuple(map(_plain, row)) for row in self.cursor.fetchall()]

    def value(self, text: str) -> Any:
        """The only value of a query, or `ERROR`."""
        try:
            ((found,),) = self.rows(text)
        except psycopg2.Error:
            return ERROR
        return found

    def column(self, expr: str, ids: Sequence[int], table: str = "cases") -> dict[int, Any]:
        """An expression of each row of a table, or `ERROR`."""
        try:
            return dict(self.rows(f"select id, ({expr}) from {table}"))
        except psycopg2.Error:
            return {n: self.value(f"select ({expr}) from {table} where id = {n}") for n in ids}


def play(engine: Engine, pattern: str, limit: int, random: Random, constants: int) -> Played:
    """Play a pattern with `limit` combinations of arguments, and of `constants` as constants."""
    played = Played()
    kinds = kinds_of(pattern)
    if not kinds:
        expr = filled(pattern, ())
        is_readable = play_constant(engine, expr, played)
        play_constant(engine, f"({expr})::text", played, is_readable=is_readable)
        return played
    found = engine.arguments.combinations(pattern, limit, random)
    _columns(engine, pattern, kinds, found, played)
    for each in random.sample(found, min(len(found), constants)):
        play_constant(
            engine, filled(pattern, list(map(engine.arguments.literal, kinds, each))), played
        )
    return played


def _columns(
    engine: Engine,
    pattern: str,
    kinds: Sequence[str],
    found: Sequence[tuple[str | None, ...]],
    played: Played,
) -> None:
    expr = filled(pattern, COLUMNS[: len(kinds)])
    declared = ", ".join(
        f"{n} {engine.arguments.types[k]}" for n, k in zip(COLUMNS, kinds, strict=False)
    )
    engine.run("drop table if exists cases")
    engine.run(f"create table cases (id integer primary key, {declared})")
    rows = [", ".join(map(engine.arguments.literal, kinds, each)) for each in found]
    values = ", ".join(f"({n}, {row})" for n, row in enumerate(rows))
    engine.run(f"insert into cases values {values}")
    db = Database(dialect=engine.dialect)
    db.execute(f"create table cases (id integer primary key, {declared})")
    (table,) = db.tables()
    unreadable = set[int]()
    for text in (expr, f"({expr})::text"):
        theirs = engine.column(text, range(len(found)))
        played.cases += len(found)
        try:
            view = db.sql(f"select id, ({text}) as x from cases").materialize()
        except PlanError as error:
            if any(each is not ERROR for each in theirs.values()):
                played.refused[text] = f"{pattern}: {str(error).splitlines()[0]}"
            continue
        except Exception as error:
            played.wrong.append(f"{text}: cannot be made: {type(error).__name__}: {error}"[:300])
            continue
        if not len(table):
            kind = table.plan.row_type
            table.add_all(kind(*row) for row in engine.rows("select * from cases"))
        mine = {row.id: row.x for row in view}
        refused = {e.row.id for e in view.errors if e.error.kind == "NotSupportedError"}
        for number, given in enumerate(found):
            one, other = theirs[number], mine.get(number, ERROR)
            if text == expr and one is UNREADABLE:
                unreadable.add(number)
            if number in refused:
                played.refused[f"{text} of {given}"] = "an error of the row"
            elif not same(one, other) and not (number in unreadable and other is ERROR):
                shown = f"{text} of {dict(zip(COLUMNS, given, strict=False))}"
                played.wrong.append(f"{shown}: {other!r}, and in {engine.name} {one!r}")
        view.close()


def play_constant(engine: Engine, text: str, played: Played, *, is_readable: bool = True) -> bool:
    """Play an expression; True if Python has a place for its value."""
    played.cases += 1
    one = engine.value(f"select ({text})")
    found = one is not UNREADABLE
    try:
        view = Database(dialect=engine.dialect).sql(f"select ({text}) as x").materialize()
        other = view.value.x if len(view) else ERROR
        if any(each.error.kind == "NotSupportedError" for each in view.errors):
            played.refused[text] = "an error of the row"
            return found
    except PlanError as error:
        if one is not ERROR:
            played.refused[text] = str(error).splitlines()[0]
        return found
    except Exception as error:
        other = f"{type(error).__name__}: {error}"
    if not same(one, other) and (is_readable or other is not ERROR):
        played.wrong.append(f"select {text}: {other!r}, and in {engine.name} {one!r}")
    return found


def same(one: Any, other: Any) -> bool:
    """Return True if a value of an engine and one of ours are equal, with their types."""
    match one:
        case str() if one is UNREADABLE:
            return other is ERROR
        case tuple():
            is_one = type(other) is tuple and len(one) == len(other)
            return is_one and all(map(same, one, other))
        case float():
            if type(other) is not float:
                return False
            return math.isclose(one, other, rel_tol=1e-14) or (one != one and other != other)
        case Decimal():
            return type(other) is Decimal and (str(one) == str(other) or f"{one:f}" == f"{other:f}")
        case timedelta():
            if not isinstance(other, timedelta):
                return False
            return interval_parts(one) == interval_parts(other)
        case _:
            return type(one) is type(other) and bool(one == other)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return bytes(value) if isinstance(value, memoryview) else value


def _reader(read: Any) -> Any:
    def made(text: str | None, cursor: Any) -> Any:
        if text is None:
            return None
        try:
            return read(text)
        except (ValueError, OverflowError):
            return UNREADABLE

    return made


def span_of(text: str) -> timedelta:
    """Read an interval as Postgres and DuckDB write it."""
    found = SPAN.fullmatch(text)
    if found is None:
        raise ValueError(text)
    years, months, days, sign, hours, minutes, seconds, rest = found.groups()
    clock = timedelta(
        hours=int(hours or 0), minutes=int(minutes or 0), seconds=int(seconds or 0)
    ) + timedelta(microseconds=round(float(rest or 0) * 1e6))
    micros = (-clock if sign == "-" else clock) // timedelta(microseconds=1)
    return interval_of(int(years or 0) * 12 + int(months or 0), int(days or 0), micros)


def sweep(
    engine: Engine, groups: Mapping[str, Sequence[str]], is_known: Callable[[str], bool]
) -> None:
    """Play all patterns of the groups that the command line names; print the differences."""
    parser = argparse.ArgumentParser()
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--limit", type=int, default=12)
    parser.add_argument("--constants", type=int, default=2)
    parser.add_argument("--shown", type=int, default=2)
    given = parser.parse_args()
    cases, wrong, refused, random = 0, Counter[str](), Counter[str](), Random(1)
    for pattern in (each for group in given.groups or groups for each in groups[group]):
        played = play(engine, pattern, given.limit, random, given.constants)
        cases += played.cases
        played.wrong = [each for each in played.wrong if not is_known(each)]
        if played.wrong:
            wrong[pattern] = len(played.wrong)
            print(f"{pattern}   {len(played.wrong)} of {played.cases}", flush=True)
            for each in played.wrong[: given.shown]:
                print("   ", each[:220])
        if played.refused:
            refused[pattern] = len(played.refused)
            print(f"{pattern}   REFUSED {next(iter(played.refused.values()))[:160]}", flush=True)
    print(f"{cases} cases; {wrong.total()} of {len(wrong)} patterns differ; {len(refused)} refused")


def main() -> None:
    """Play the groups against a server of its own."""
    postgres = PostgresServer()
    postgres.start()
    server = Server(new_database(postgres))
    sweep(server, GROUPS, lambda wrong: False)
    server.close()
    postgres.close()


def new_database(postgres: PostgresServer, name: str = "expressions") -> str:
    """The DSN of a new database whose letters are Unicode's, in the order of their code points."""
    options = "template template0 lc_collate 'C' lc_ctype 'C.UTF-8'"
    postgres.execute(postgres.dsn(), f"create database {name} {options}")
    return postgres.dsn(name)


if __name__ == "__main__":
    main()
