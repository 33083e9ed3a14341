"""What a server keeps for a source: a publication of its tables, and a slot with its position.

    publication   reactive_users             which tables are told of
    slot          reactive_users_1f0c92ab    what log is kept; made anew with each snapshot

A slot has a name of its own each time it is made, and the token has that name. So one that was made
anew by somebody else, with changes missing between, is not taken for the one that was.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from typing import Any

from reactive.borders.sources.postgres.connection import Connection, lsn
from reactive.borders.sources.postgres.reconnecting import SlotInUse
from reactive.borders.sources.postgres.schema import Schema
from reactive.engine.runtime.postgres import driver, literal
from reactive.engine.runtime.sql_names import quoted
from reactive.errors import SourceError

LONGEST = 40
"""Letters of the source's name in the names that the server has."""
PUBLISHED = """
    select schemaname, tablename, to_jsonb(p) ->> 'rowfilter', to_jsonb(p) -> 'attnames'
    from pg_publication_tables p where pubname = %s
"""
"""Filters and lists of columns are there from version 15 on."""
SLOT = """
    select plugin, active_pid, wal_status, to_jsonb(s) ->> 'conflicting'
    from pg_replication_slots s where slot_name = %s
"""
SLOTS = """
    select slot_name, active_pid from pg_replication_slots
    where slot_name ~ %s and database = current_database()
"""
MOMENT, STEP = 2.0, 0.02
"""Seconds until a server knows at the latest that a slot is read no more; between two looks."""
NEEDED = "select 1 from pg_publication where pubname = %s"
LEVEL = "select current_setting('wal_level'), current_setting('server_version_num')::int"
OLDEST = 130000
"""The first version that publishes partitioned tables."""


def base_name(source: str) -> str:
    """What the names of the publication and the slot begin with."""
    return "reactive_" + re.sub(r"[^a-z0-9]+", "_", source.lower())[:LONGEST].strip("_")


def new_slot_name(source: str) -> str:
    """A name that no slot has had."""
    return f"{base_name(source)}_{secrets.token_hex(4)}"


def check_server(connection: Connection) -> None:
    """Raise `SourceError` if the server cannot tell changes."""
    level, version = connection.rows(LEVEL)[0]
    if int(version) < OLDEST:
        raise SourceError(
            f"the server is of version {version // 10000}; changes are read from 13 on\n"
            "  NotifySource reads tables of any server"
        )
    if level != "logical":
        raise SourceError(
            f"the server has wal_level = {level}, with which it tells no changes\n"
            "  ALTER SYSTEM SET wal_level = logical, and restart it; or take NotifySource"
        )


def check_published(connection: Connection, name: str, tables: Sequence[Schema]) -> None:
    """Raise `SourceError` if the publication does not tell of a table, as of one made anew."""
    published = {(row[0], row[1]) for row in connection.rows(PUBLISHED, [name])}
    for table in tables:
        if (table.schema, table.table) not in published:
            raise SourceError(
                f"publication {name!r} does not tell of {table.sql} any more, whose changes since "
                "are lost: the table was made anew, or the publication was\n"
                "  start(anew=True) of what ingest gave reads the table anew"
            )


def publish(connection: Connection, name: str, tables: Sequence[Schema], *, ours: bool) -> None:
    """Have the publication tell of the tables; it is made, or tables are added, if it is `ours`.

    Raises
    ------
    SourceError: it is somebody else's, and is absent or has not all tables.
    """
    published = {(row[0], row[1]) for row in connection.rows(PUBLISHED, [name])}
    missing = [table for table in tables if (table.schema, table.table) not in published]
    is_there = bool(connection.rows(NEEDED, [name]))
    if is_there and not missing:
        return
    listed = ", ".join(table.rows_sql for table in missing)
    make = (
        f"ALTER PUBLICATION {quoted(name)} ADD TABLE {listed}"
        if is_there
        else f"CREATE PUBLICATION {quoted(name)} FOR TABLE {listed} "
        "WITH (publish_via_partition_root = true)"
    )
    if not ours:
        what = f"does not tell of {listed}" if is_there else "is not there"
        raise SourceError(f"publication {name!r} {what}\n  {make}")
    try:
        connection.rows(make)
    except driver().errors.DuplicateObject:  # another process was quicker
        publish(connection, name, tables, ours=ours)


def row_filters(connection: Connection, publication: str) -> dict[tuple[str, str], str]:
    """The condition of each table of a publication that has one: a snapshot is to heed it."""
    rows: list[Any] = connection.rows(PUBLISHED, [publication])
    return {(row[0], row[1]): row[2] for row in rows if row[2]}


def check_slot(connection: Connection, slot: str) -> None:
    """Raise `SourceError` if one cannot go on with a slot."""
    rows: list[Any] = connection.rows(SLOT, [slot])
    remedy = (
        "\n  start(anew=True) of what ingest gave reads the tables anew, and applies what differs "
        "as one commit"
    )
    if not rows:
        raise SourceError(
            f"slot {slot!r} is not there any more, and so neither is the log since the last commit"
            + remedy
        )
    _, pid, status, conflicting = rows[0]
    if status == "lost" or conflicting == "true":
        raise SourceError(
            f"slot {slot!r} was invalidated: the server has removed log that it would have needed"
            + remedy
            + "; a larger max_slot_wal_keep_size keeps more"
        )
    if pid is not None:
        raise SlotInUse(
            f"slot {slot!r} is read by another process, which server process {pid} serves\n"
            "  one database at a time goes on from a token; another one takes a source of another "
            "name"
        )


def make_slot(connection: Connection, slot: str, *, temporary: bool) -> tuple[int, str]:
    """Make a slot; the position from which it tells changes, and the snapshot of before."""
    kind = "TEMPORARY " if temporary else ""
    row = connection.rows(f'CREATE_REPLICATION_SLOT "{slot}" {kind}LOGICAL pgoutput')[0]
    return lsn(row[1]), row[2]


def start_command(slot: str, position: str, publication: str) -> str:
    """The command that begins to stream."""
    options = f"proto_version '1', publication_names {literal(quoted(publication))}"
    return f'START_REPLICATION SLOT "{slot}" LOGICAL {position} ({options})'


def drop_slot(connection: Connection, slot: str) -> None:
    """Drop a slot that nobody reads, if it is there."""
    connection.rows(
        "select pg_drop_replication_slot(slot_name) from pg_replication_slots "
        "where slot_name = %s and active_pid is null",
        [slot],
    )


def drop_all(connection: Connection, source: str, publication: str | None) -> None:
    """Drop a publication, and all slots of sources of this name that nobody reads; who has stopped
    to read one a moment ago is waited for."""
    until = time.monotonic() + MOMENT
    while left := connection.rows(SLOTS, [f"^{base_name(source)}_[0-9a-f]{{8}}$"]):
        free = [slot for slot, reader in left if reader is None]
        for slot in free:
            drop_slot(connection, slot)
        if not free:
            if time.monotonic() > until:
                break
            time.sleep(STEP)
    if publication is not None:
        connection.rows(f"DROP PUBLICATION IF EXISTS {quoted(publication)}")
