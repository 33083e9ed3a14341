"""The common type of two operands by place, beside DuckDB and a Postgres server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import duckdb
import pytest

from reactive import Database, PlanError
from reactive.languages.sql.expressions import casts
from reactive.languages.sql.terms.types import SqlType
from tests.budget import TIMES, drawing, share_of
from tests.languages.sql.common_types import (
    PLACES,
    Failed,
    Player,
    Refused,
    Side,
    constants,
    is_of_arrays,
    is_of_loose_texts,
    is_of_uuids,
    is_of_zones,
    plain,
    sides,
)
from tests.postgres_server import PostgresServer

SHARE = 1 if TIMES else 12


@dataclass(frozen=True)
class Thing:
    a: Any
    b: int


def in_duckdb() -> Player:
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")

    def run(text: str) -> list[tuple[Any, ...]]:
        try:
            return connection.execute(text).fetchall()
        except (duckdb.BinderException, duckdb.NotImplementedException) as error:
            raise Refused(str(error)) from error
        except duckdb.Error as error:
            kind = Refused if "Unimplemented type" in str(error) else Failed
            raise kind(str(error)) from error

    player = Player(
        Database(),
        run,
        lambda text: text,
        [is_of_zones, is_of_arrays, is_of_uuids],
        [is_of_loose_texts],
    )
    for text in player.made:
        connection.execute(text)
    return player


def in_postgres(server: PostgresServer) -> Player:
    import psycopg2
    from psycopg2.extras import register_uuid

    connection = psycopg2.connect(server.dsn())
    connection.autocommit = True
    cursor = connection.cursor()
    register_uuid(conn_or_curs=cursor)
    cursor.execute("set timezone = 'UTC'")

    def run(text: str) -> list[tuple[Any, ...]]:
        try:
            cursor.execute(text)
            return list(cursor.fetchall())
        except psycopg2.Error as error:
            if (error.pgcode or "")[:2] in ("42", "0A"):
                raise Refused(str(error)) from error
            raise Failed(str(error)) from error

    db = Database(dialect="postgres")
    player = Player(db, run, lambda text: text.replace("blob", "bytea"), [is_of_zones])
    for text in player.made:
        cursor.execute(text)
    return player


@pytest.fixture(scope="module")
def duck() -> Player:
    return in_duckdb()


@pytest.fixture(scope="module")
def elephant(postgres: PostgresServer) -> Iterator[Player]:
    yield in_postgres(postgres)


def differing(player: Player, place: str) -> list[str]:
    pairs = list(product(sides("t", "a"), [*sides("u", "b"), *constants()]))
    drawn = drawing().sample(pairs, len(pairs) // SHARE)
    found = [player.play(place, left, right) for left, right in drawn]
    return [each for each in found if each is not None]


@pytest.mark.long
@pytest.mark.parametrize("place", share_of([*PLACES], "places", 2))
def test_types_beside_one_another_are_as_in_duckdb(place: str, duck: Player) -> None:
    wrong = differing(duck, place)
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_types_beside_one_another_are_as_in_postgres(place: str, elephant: Player) -> None:
    wrong = differing(elephant, place)
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])


def test_a_wrong_common_type_is_found(duck: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    def first(dialect: str, place: str, kinds: Sequence[SqlType]) -> SqlType:
        return next(iter(kinds))

    date, text = Side("date", "t.a"), Side("varchar", "u.b")
    assert duck.play("union all", date, text) is None
    assert duck.play("case", date, text) is None
    monkeypatch.setattr(casts, "common_of_all", first)
    assert duck.play("union all", date, text)
    assert duck.play("case", date, text)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_columns_of_unknown_types_go_with_all(dialect: Literal["duckdb", "postgres"]) -> None:
    db = Database(dialect=dialect)
    things, counts = db.table(Thing, name="things"), db.table(tuple[int], name="counts")
    views = [
        db.sql("select a from things union all select column0 from counts").materialize(),
        db.sql("select coalesce(a, column0) from things, counts").materialize(),
        db.sql("select b from things where b > 2 and b in (2.5, 4)").materialize(),
    ]
    things.add_all([Thing("z", 4), Thing(1, 2**70)])
    counts.add((3,))
    found = [sorted((tuple(row) for row in view), key=repr) for view in views]
    assert found == [[("z",), (1,), (3,)], [("z",), (1,)], [(4,)]]


def test_the_digits_of_a_column_are_those_of_its_common_type() -> None:
    db = Database()
    db.execute("create table t (a decimal(5, 2), b decimal(9, 4))")
    db.execute("insert into t values (1.5, 2.25)")
    view = db.sql("select a from t union all select b from t union all select 3").materialize()
    assert sorted(str(row.a) for row in view) == ["1.5000", "2.2500", "3.0000"]


STRUCTS = {
    "t": ("struct(x int, y text)", "{'x': 1, 'y': 'a'}", "null", "{'x': 2, 'y': 'b'}"),
    "same": ("struct(x bigint, y text)", "{'x': 1, 'y': 'a'}", "{'x': null, 'y': 'z'}"),
    "turned": ("struct(y text, x int)", "{'y': 'a', 'x': 1}", "null"),
    "fewer": ("struct(x int)", "{'x': 1}", "{'x': 2}"),
    "more": ("struct(X double, y text, k int)", "{'X': 1.5, 'y': 'a', 'k': 2}", "null"),
    "rest": ("struct(k decimal(4, 1))", "{'k': 2.5}"),
    "texts": ("struct(x text, y text)", "{'x': '2', 'y': 'b'}"),
}
BESIDE = (
    "select a from t union all select b from {o}",
    "select a from t union select b from {o}",
    "select a from t except select b from {o}",
    "select coalesce(a, b) from t, {o}",
    "select case when id = 1 then a end from t union all select b from {o}",
    "select a = b from t, {o}",
    "select a < b from t, {o}",
    "select a in (b) from t, {o}",
    "select array[a, b] from t, {o}",
    "select greatest(a, b) from t, {o}",
    "select id from t join {o} on a = b",
    "select id from t where a in (select b from {o})",
    "select a is not distinct from b from t, {o}",
    "select array[a] || array[b] from t, {o}",
)


def _fields(value: Any) -> Any:
    if isinstance(value, dict):
        return _fields(tuple(value.values()))
    return tuple(map(_fields, value)) if isinstance(value, list | tuple) else plain(value)


@pytest.mark.long
@pytest.mark.parametrize("other", [name for name in STRUCTS if name != "t"])
def test_structs_beside_one_another_are_as_in_duckdb(other: str) -> None:
    db, connection = Database(), duckdb.connect()
    for name, (kind, *values) in STRUCTS.items():
        column = "a" if name == "t" else "b"
        cells = ", ".join(f"({n}, {value})" for n, value in enumerate(values))
        for text in (
            f"create table {name} (id int, {column} {kind})",
            f"insert into {name} values {cells}",
        ):
            db.execute(text)
            connection.execute(text)
    for form in BESIDE:
        text = (
            form.format(o=other).replace("select id", "select t.id").replace("when id", "when t.id")
        )
        try:
            wanted = Counter(map(_fields, connection.execute(text).fetchall()))
        except duckdb.Error:
            with pytest.raises(PlanError):
                db.sql(text)
            continue
        view = db.sql(text).materialize()
        assert (Counter(_fields(tuple(row)) for row in view), list(view.errors)) == (wanted, []), (
            text
        )
        view.verify()
