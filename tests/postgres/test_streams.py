"""Postgres feeds streams: inserted rows are events, and other changes are refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import psycopg2
import pytest

from reactive import Count, Database, PlanError, PostgresSource, SourceError, TableError, tumbling
from tests.postgres_server import PostgresServer

PATIENCE = 30


class Reading(NamedTuple):
    """An event."""

    id: int
    at: int


class Following:
    """A stream that a table of Postgres feeds."""

    def __init__(self, dsn: str, sql: Callable[..., Any], **options: Any) -> None:
        self.sql = sql
        self.db = Database()
        self.stream = self.db.stream(
            Reading, at="at", lateness=2, late=options.pop("late", "keep"), name="readings"
        )
        self.rows, self.late = self.stream.materialize(), self.stream.late.materialize()
        per_ten = self.stream.window(tumbling(10), at="at").group_by(lambda r, w: w.start)
        self.counts = per_ten.aggregate(Count()).materialize()
        self.source = PostgresSource(dsn, "readings", backoff=(0.02, 0.2), **options)
        self.reading = self.db.ingest(self.source, self.stream)

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *_: object) -> None:
        self.reading.stop()
        self.db.close()
        self.source.drop()

    def insert(self, *rows: tuple[int, int]) -> None:
        """Insert rows in one transaction."""
        self.sql("insert into readings values " + ", ".join(map(str, rows)))

    def ids(self) -> list[int]:
        """Return the events in time."""
        return sorted(row.id for row in self.rows)

    def fails(self, match: str) -> None:
        """Wait until the source has stopped at an error."""
        with pytest.raises(TableError, match=match):
            self.reading.wait(timeout=PATIENCE)
        assert self.reading.state == "failed"


@pytest.fixture
def sql(postgres: PostgresServer, database: str) -> Callable[..., Any]:
    def run(statement: str) -> Any:
        return postgres.execute(database, statement, None)

    run("create table readings (id int primary key, at int not null)")
    run("insert into readings values (1, 30), (2, 10), (3, 12)")
    return run


def test_inserted_rows_are_events(database: str, sql: Callable[..., Any]) -> None:
    with Following(database, sql, size=1) as of:  # in the order of times, of which none is late
        of.source.catch_up(PATIENCE)
        assert (of.ids(), list(of.late), of.stream.watermark.first()) == ([1, 2, 3], [], 28)
        of.insert((4, 31), (5, 27), (6, 28))
        of.insert((7, 40))
        of.source.catch_up(PATIENCE)
        assert (of.ids(), list(of.late)) == ([1, 2, 3, 4, 6, 7], [Reading(5, 27)])
        assert sorted(of.counts) == [(10, 2), (20, 1), (30, 2), (40, 1)]


def test_a_late_event_stops_the_source_before_its_transaction(
    database: str, sql: Callable[..., Any]
) -> None:
    with Following(database, sql, late="raise") as of:
        of.source.catch_up(PATIENCE)
        token = of.reading.token
        of.insert((4, 50), (5, 3))
        of.fails("its time, 3, is before the watermark, 28")
        assert (of.ids(), of.reading.token) == ([1, 2, 3], token)
        of.reading.start()
        of.fails("its time, 3, is before the watermark, 28")
        of.reading.start(on_error="drop")
        of.insert((6, 51))
        of.source.catch_up(PATIENCE)
        assert (of.ids(), of.stream.watermark.first()) == ([1, 2, 3, 4, 6], 49)
        assert [error.row for error in of.reading.errors] == [Reading(5, 3)]


@pytest.mark.parametrize("identity", ["default", "full"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("update readings set at = 60 where id = 3", "has updated id=3 of 'readings'"),
        ("delete from readings where id = 2", "has deleted id=2 of 'readings'"),
        ("truncate readings", "has truncated all rows of 'readings'"),
    ],
)
def test_other_changes_are_refused(
    database: str, sql: Callable[..., Any], change: str, text: str, identity: str
) -> None:
    sql(f"alter table readings replica identity {identity}")
    with Following(database, sql) as of:
        of.source.catch_up(PATIENCE)
        with closing(psycopg2.connect(database)) as other, other, other.cursor() as cursor:
            cursor.execute("insert into readings values (4, 31)")
            cursor.execute(change)
        of.fails(text if identity == "default" else "takes inserted rows only: Postgres has ")
        assert of.ids() == [1, 2, 3]
        of.reading.start(on_error="drop")
        of.insert((5, 32))
        of.source.catch_up(PATIENCE)
        assert of.ids() == [1, 2, 3, 4, 5]
        assert len(of.reading.errors) == 1


def test_a_stream_does_not_take_rows_again(database: str, sql: Callable[..., Any]) -> None:
    with Following(database, sql) as of:
        of.source.catch_up(PATIENCE)
        of.reading.stop()
        of.insert((4, 31))
        of.reading.start()  # from its position, which the slot keeps
        of.source.catch_up(PATIENCE)
        of.reading.stop()
        with pytest.raises(PlanError, match="the difference of two readings"):
            of.reading.start(anew=True)
        assert of.ids() == [1, 2, 3, 4]
    with Following(database, sql, temporary=True) as of:
        of.source.catch_up(PATIENCE)
        of.reading.stop()
        of.reading.start()
        with pytest.raises(SourceError, match="a stream does not take the rows again"):
            of.reading.wait(timeout=PATIENCE)
