"""The catalog of a store in Postgres: what it keeps of its tables, and how that is read.

    tables          the schema of each table, and where its rows are
    names           as JSON, since text of Postgres has no NUL

Cost: O(entries) to read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from reactive.borders.durable.postgres_tables import PostgresTable
from reactive.borders.durable.refusals import DAMAGED, damaged
from reactive.borders.durable.schema_text import schema_of_text
from reactive.borders.durable.store import Logged, Rows
from reactive.errors import DurabilityError

MADE = (
    "create table if not exists {schema}.state (name text primary key, value text not null)",
    "create table if not exists {schema}.tables (rank bigserial, name text primary key, "
    "text text, place text, columns text[])",
    "create table if not exists {schema}.reactive_commits "
    "(version bigint primary key, time float8)",
    "create table if not exists {schema}.reactive_changes (version bigint, "
    '"table" text, weight int, row text, rowid bigserial)',
    "create index if not exists reactive_changes_of on {schema}.reactive_changes (version)",
)
"""The statements that make it, if it is not there."""


def escaped(name: str) -> str:
    """A name as text of Postgres, which has no NUL."""
    return json.dumps(name)


def unescaped(text: str) -> str:
    name = json.loads(text)
    if type(name) is not str:
        raise ValueError(f"{text!r:.100} is no name")
    return name


LISTED = ("name", "text", "place", "columns")


def table_of(room: str, name: str, text: str, place: str, columns: Sequence[str]) -> PostgresTable:
    """Return the table of an entry of the catalog.

    Raises
    ------
    Exception: the entry is damaged.
    """
    schema = schema_of_text(unescaped(name), text)
    named = tuple(columns)
    if len(named) != len(schema.columns) or not all(type(each) is str for each in (place, *named)):
        raise ValueError("it does not fit its columns")
    if schema.key is not None:
        _ = schema.key_place  # which raises where there is none
    return PostgresTable(schema, room, place, named)


def with_names(logged: Logged) -> Logged:
    """Return a commit with the names of its tables as they were given."""
    datetime.fromtimestamp(logged.time, UTC)  # which raises where it is no time
    changes = {unescaped(name): rows for name, rows in logged.changes.items()}
    return logged._replace(changes=changes)


def read_rows(name: str, table: PostgresTable, batch: Sequence[tuple[Any, ...]]) -> Rows:
    """Return the rows of a batch of a table, by how often they are there.

    name: of the store.
    """
    try:
        return [(rows, weight) for weight, rows in table.read(batch).items()]
    except DAMAGED:
        for row in batch:
            with reading(name, table.schema.table, row):
                table.read([row])
        raise


@contextmanager
def reading(name: str, table: str, row: object) -> Iterator[None]:
    """Report an error of reading a row of a store as a `DurabilityError` that names it."""
    try:
        yield
    except DAMAGED as error:
        raise DurabilityError(damaged(name, table, row)) from error
