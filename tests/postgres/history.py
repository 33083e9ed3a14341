"""Random histories of several clients of a Postgres server, and its tables after each commit.

    accounts   by a number     with large texts, which are not sent when they do not change
    lines      by two columns  partitioned
    notes      without key     each row is sent as a whole

Clients have transactions open at the same time, with savepoints, rollbacks and statements that
fail. After each commit the tables are read: the live tables must have these states, in this
order, each by one commit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, NamedTuple

import psycopg2

from reactive import Database, Delta, Ingestion, PostgresSource, Table


class Account(NamedTuple):
    """A row by its number."""

    id: int
    owner: str | None
    balance: float
    letter: str | None


class Line(NamedTuple):
    """A row by two columns."""

    account: int
    number: int
    amount: int | None


class Note(NamedTuple):
    """A row that may be there several times."""

    text: str | None
    account: int


SCHEMA = """
create table accounts (id int primary key, owner text, balance float8 not null,
    letter text, ignored int);
alter table accounts alter letter set storage external;
create table lines (account int, number int, amount int, primary key (account, number))
    partition by hash (account);
create table lines_0 partition of lines for values with (modulus 2, remainder 0);
create table lines_1 partition of lines for values with (modulus 2, remainder 1);
create table notes (account int not null, text text);
alter table notes replica identity full;
"""
TABLES = {"accounts": Account, "lines": Line, "notes": Note}
State = dict[type, Counter[Any]]
LONG = 5000
"""Letters that Postgres stores beside the row."""


def rows_of(connection: Any) -> State:
    """Return the rows of the tables of Postgres."""
    found: State = {}
    with connection.cursor() as cursor:
        for name, kind in TABLES.items():
            cursor.execute(f"select {', '.join(kind.__annotations__)} from {name}")
            found[kind] = Counter(kind(*row) for row in cursor.fetchall())
    return found


def by_place(line: Line) -> tuple[int, int]:
    """The key of a line."""
    return line.account, line.number


class Live:
    """A database that follows the tables, and all states that it went through."""

    def __init__(self, path: Any = None, **options: Any) -> None:
        self.db = Database(path, **options)
        keys: dict[type, Any] = {
            Account: "id",
            Line: by_place,
            Note: None,
        }
        self.tables: dict[type, Table[Any, Any]] = {
            kind: self.db.table(kind, key=key) if key else self.db.table(kind)
            for kind, key in keys.items()
        }
        self.states: list[State] = []
        self._state: State = {kind: Counter() for kind in self.tables}
        self._version = -1
        self._heard = [
            table.subscribe(partial(self._hear, kind)) for kind, table in self.tables.items()
        ]

    def follow(self, dsn: str, **options: Any) -> Ingestion[Any]:
        """Begin to follow, or go on."""
        self.source = PostgresSource(dsn, TABLES, name="history", **options)
        return self.db.ingest(self.source, self.tables)

    def state(self) -> State:
        """Return the current rows of the tables."""
        return {kind: Counter(table) for kind, table in self.tables.items()}

    def _hear(self, kind: type, delta: Delta[Any]) -> None:
        if delta.version != self._version:
            self._version = delta.version
            self.states.append({each: Counter(rows) for each, rows in self._state.items()})
        for row, weight in delta.items():
            self._state[kind][row] += weight
            if not self._state[kind][row]:
                del self._state[kind][row]
        self.states[-1] = {each: Counter(rows) for each, rows in self._state.items()}


@dataclass
class History:
    """Clients at work, and the states after their commits."""

    dsn: str
    random: Random
    clients: list[Any] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def connect(self, count: int = 3) -> None:
        """Start the clients, also after the server was killed."""
        self.close()
        self.clients = [psycopg2.connect(self.dsn) for _ in range(count)]
        self._reader = psycopg2.connect(self.dsn)
        self._reader.autocommit = True
        for client in self.clients:
            with client.cursor() as cursor:
                cursor.execute("set lock_timeout = 5")
            client.commit()

    def close(self) -> None:
        """End all clients, and roll back their open transactions."""
        for client in self.clients:
            client.close()
        if self.clients:
            self._reader.close()
        self.clients = []

    def step(self) -> None:
        """Some client does something."""
        client = self.random.choice(self.clients)
        act = self.random.choices(
            [self._statement, self._savepoint, self._commit, self._roll_back], [8, 2, 4, 1]
        )[0]
        try:
            act(client)
        except psycopg2.errors.Error:
            client.rollback()

    def settle(self) -> State:
        """Commit all clients; return the rows of the tables."""
        for client in self.clients:
            self._commit(client)
        return rows_of(self._reader)

    def _commit(self, client: Any) -> None:
        client.commit()
        state = rows_of(self._reader)
        if not self.states or state != self.states[-1]:
            self.states.append(state)

    def _roll_back(self, client: Any) -> None:
        client.rollback()

    def _savepoint(self, client: Any) -> None:
        with client.cursor() as cursor:
            cursor.execute("savepoint here")
            self._execute(cursor)
            if self.random.random() < 0.5:
                cursor.execute("rollback to here")

    def _statement(self, client: Any) -> None:
        with client.cursor() as cursor:
            for _ in range(self.random.choice([1, 1, 1, 5])):
                self._execute(cursor)

    def _execute(self, cursor: Any) -> None:
        pick, number = self.random.choice, self.random.randrange
        text = pick([None, "", "tea", "x{',\"\\", "grün\n"])
        values = {
            "id": number(6),
            "other": number(6),
            "n": number(3),
            "text": text,
            "long": pick([None, "short", f"{number(100)}" * LONG]),
            "float": pick([0.0, 0.1, 1e300, -2.5, float("inf")]),
        }
        statement = pick(STATEMENTS)
        cursor.execute(statement, values)
        if statement.startswith("truncate"):  # a lock would block all other readers
            self._commit(cursor.connection)


STATEMENTS = [
    "insert into accounts values (%(id)s, %(text)s, %(float)s, %(long)s, 1) "
    "on conflict (id) do update set letter = excluded.letter",
    "insert into accounts values (%(id)s, %(text)s, %(float)s, %(long)s, 1)",
    "update accounts set owner = %(text)s where id = %(id)s",
    "update accounts set balance = %(float)s, ignored = ignored + 1",
    "update accounts set ignored = ignored + 1 where id = %(id)s",
    "update accounts set id = %(other)s where id = %(id)s",
    "delete from accounts where id = %(id)s",
    "insert into lines values (%(id)s, %(n)s, %(other)s) on conflict do nothing",
    "insert into lines select %(id)s, n, n from generate_series(0, %(n)s) n on conflict do nothing",
    "update lines set amount = amount + 1 where account = %(id)s",
    "update lines set account = %(other)s where account = %(id)s and number = %(n)s",
    "delete from lines where number = %(n)s",
    "insert into notes values (%(id)s, %(text)s), (%(id)s, %(text)s), (%(other)s, 'x')",
    "update notes set text = %(text)s where account = %(id)s",
    "delete from notes where account = %(id)s",
    "delete from notes where ctid in (select ctid from notes limit 1)",
    "update accounts set id = 1 / 0 where id >= 0",
    "truncate notes",
    "truncate accounts, lines",
]
