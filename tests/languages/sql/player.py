"""Play a script: compare the maintained views of its queries with a database that recomputes.

    the script's statements, in the database  ->  tables and their rows
    views of all queries of a group, over empty tables
    rows in random order, in some 40 commits            compare after each
    a random half removed, inserted again, all removed    compare on the way

A query that the database refuses on the way, as for a value that cannot be cast, is not compared
then. The test is sound: nothing here depends on the meaning of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import sqlglot

from reactive import Database, PlanError
from tests.languages.sql.compare import difference
from tests.languages.sql.oracles import Oracle, Refused, Row, oracle
from tests.languages.sql.script import Record, Script

Change = tuple[str, Row]
COMMITS, FEW = 40, 6


@dataclass
class Report:
    """Result of playing: queries and comparisons, and the texts of differences."""

    queries: int = 0
    compared: int = 0
    not_asked: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    """Queries that never had a row."""

    def add(self, other: Report) -> None:
        self.queries += other.queries
        self.compared += other.compared
        self.not_asked += other.not_asked
        self.refused += other.refused
        self.wrong += other.wrong
        self.empty += other.empty

    def __str__(self) -> str:
        head = (
            f"{self.queries} queries, {self.compared} comparisons, {len(self.wrong)} wrong,"
            f" {len(self.refused)} refused, {len(self.empty)} always empty,"
            f" {self.not_asked} not asked of the database"
        )
        return "\n".join([head, *self.wrong, *self.refused])


@dataclass
class Playing:
    """A query with its view."""

    record: Record
    view: Any
    ordered: bool
    had_rows: bool = False


def play(
    script: Script,
    engine: str,
    random: Random,
    commits: int = COMMITS,
    *,
    made: Callable[[str], Oracle] = oracle,
) -> Report:
    """Play the records that the database understands; `made` returns an empty database."""
    report = Report()
    for statements, queries in script.groups(engine):
        for few in _parts(queries, 25):
            report.add(_play_group(script.name, statements, few, engine, random, commits, made))
    return report


def _play_group(
    name: str,
    statements: Sequence[Record],
    queries: Sequence[Record],
    engine: str,
    random: Random,
    commits: int,
    made: Callable[[str], Oracle],
) -> Report:
    prepared = _prepared(statements, made(engine))
    if engine == "postgres":
        queries = [each for each in queries if _takes(prepared, each.text)]
    report = Report(queries=len(queries))
    rows = [
        (table, row)
        for kind, table, _ in prepared.definitions()
        if kind == "table"
        for row in prepared.ask(f"select * from {table}")
    ]
    other, db = made(engine), Database(dialect=engine)  # type: ignore[arg-type]
    for _, _, text in prepared.definitions():
        other.run(text)
        try:
            db.execute(text)
        except PlanError as error:
            report.refused.append(f"{name}: {error}\n  {text}")
            return report
    playing = list(_views(name, queries, db, engine, report))
    side = _Sides(other, db)
    for changes in _history(rows, random, commits):
        _commit(name, side, changes, playing, report)
        for one in list(playing):
            wrong = _compared(one, other, report)
            if wrong is not None:
                report.wrong.append(f"{name}:{one.record.line}: {wrong}\n  {one.record.text}")
                playing.remove(one)
    report.empty += [f"{name}:{one.record.line}" for one in playing if not one.had_rows]
    return report


def _commit(
    name: str,
    side: _Sides,
    changes: Sequence[tuple[int, Change]],
    playing: list[Playing],
    report: Report,
) -> None:
    """Change both databases; a view that raises is closed, and is wrong."""
    while True:
        try:
            side.change_live(changes)
            break
        except Exception as error:
            text = "\n  ".join([f"{type(error).__name__}: {error}", *error.__notes__])
            culprit = next((one for one in playing if f"'{one.view.name}'" in text), None)
            if culprit is None:
                raise
            report.wrong.append(f"{name}:{culprit.record.line}: {text}\n  {culprit.record.text}")
            playing.remove(culprit)
            culprit.view.close()
    side.change_other(changes)


def _prepared(statements: Sequence[Record], made: Oracle) -> Oracle:
    """The database after the statements of a script; one that it refuses is left out."""
    for statement in statements:
        try:
            made.run(statement.text)
        except Refused:
            continue
    return made


def _takes(other: Oracle, text: str) -> bool:
    try:
        other.ask(text)
    except Refused:
        return False
    return True


def _views(
    name: str, queries: Sequence[Record], db: Database, engine: str, report: Report
) -> Iterator[Playing]:
    for record in queries:
        try:
            relation = db.sql(record.text)
            view = relation.materialize(name=f"line {record.line}")
            yield Playing(record, view, _is_ordered(record.text, engine))
        except PlanError as error:
            report.refused.append(f"{name}:{record.line}: {error}\n  {record.text}")
        except Exception as error:
            text = f"{type(error).__name__}: {error}\n  {record.text}"
            report.wrong.append(f"{name}:{record.line}: cannot be made: {text}")


def _is_ordered(text: str, engine: str) -> bool:
    return sqlglot.parse_one(text, read=engine).args.get("order") is not None


class _Sides:
    """Both databases, which get the same changes."""

    def __init__(self, other: Oracle, db: Database) -> None:
        self._other = other
        self._db = db
        self._tables = {table.name: table for table in db.tables()}
        self._types: dict[str, Any] = {
            name: table.plan.row_type for name, table in self._tables.items()
        }

    def change_live(self, changes: Sequence[tuple[int, Change]]) -> None:
        """One commit of the tables that views are made of."""
        with self._db.transaction():
            for weight, (name, row) in changes:
                table = self._tables[name]
                made = self._types[name](*row)
                if weight > 0:
                    table.add(made)
                else:
                    table.remove(made)

    def change_other(self, changes: Sequence[tuple[int, Change]]) -> None:
        """Apply the changes to the other database."""
        together: dict[tuple[str, int], list[Row]] = {}
        for weight, (name, row) in changes:
            together.setdefault((name, weight), []).append(row)
        for (name, weight), rows in together.items():
            (self._other.add if weight > 0 else self._other.remove)(name, rows)


def _compared(one: Playing, other: Oracle, report: Report) -> str | None:
    try:
        expected = other.ask(one.record.text)
    except Refused:
        report.not_asked += 1
        return None
    report.compared += 1
    one.had_rows |= bool(expected)
    try:
        shown = [tuple(row) for row in one.view]
    except Exception as error:
        return f"cannot be read: {type(error).__name__}: {error}"
    return difference(shown, expected, ordered=one.ordered, typed=other.name != "sqlite")


def _history(
    rows: Sequence[Change], random: Random, commits: int
) -> Iterator[list[tuple[int, Change]]]:
    """Yield commits of inserts and deletes: none, all, half, all again, nothing."""
    rows = random.sample(rows, len(rows))
    yield []
    for some in _parts(rows, max(1, -(-len(rows) // max(1, commits - 2 * FEW)))):
        yield [(1, row) for row in some]
    half = random.sample(rows, len(rows) // 2)
    for weight in (-1, 1):
        for some in _parts(half, max(1, len(half) // FEW)):
            yield [(weight, row) for row in some]
    yield [(-1, row) for row in rows]


def _parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
