"""JSON and JSONB of the dialect "postgres" equal a Postgres server after each change."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psycopg2
import psycopg2.extras
import pytest

from reactive import Database, PlanError
from reactive.sql import Jsonb
from tests.budget import TIMES, drawing
from tests.languages.sql.json_cases import QUERIES, draw_document, postgres_expressions
from tests.postgres_server import PostgresServer

TABLE = "create table t (id int primary key, j jsonb, k jsonb, t json, s text, n int, p text[])"
TRIED = """
create function tried(query text) returns text language plpgsql as $$
declare found text;
begin execute query into found; return coalesce(found, 'NULL');
exception when others then return 'an error'; end $$
"""
PLACES = [["a"], ["a", "b"], ["0"], ["-1"], ["1", "a"], [], None, ["a", None], ["5"], [" 1"], ["x"]]
Row = tuple[Any, ...]


class Server:
    """A table of documents in Postgres."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg2.connect(dsn)
        self._connection.autocommit = True
        psycopg2.extras.register_default_json(self._connection, loads=str)
        psycopg2.extras.register_default_jsonb(self._connection, loads=Jsonb.parse)
        self._cursor = self._connection.cursor()
        self._cursor.execute(TABLE)
        self._cursor.execute(TRIED)

    def run(self, statement: str, row: Row = ()) -> None:
        self._cursor.execute(statement, row or None)

    def rows(self, query: str) -> list[Row]:
        self._cursor.execute(query)
        found: list[Row] = self._cursor.fetchall()
        return found

    def is_refused(self, expression: str) -> bool:
        """Return True if Postgres has no such expression, whatever the rows are."""
        try:
            self._cursor.execute(f"select ({expression})::text from t where false")
        except psycopg2.Error:
            return True
        return False

    def column(self, expression: str) -> dict[int, str]:
        """Return the texts of an expression of each row: NULL, or an error."""
        query = (
            "select id, tried(format('select (%%s)::text from t where id = %%s', %s, id)) from t"
        )
        self._cursor.execute(query, (expression,))
        return dict(self._cursor.fetchall())

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def server(postgres: PostgresServer) -> Iterator[Server]:
    made = Server(postgres.new_database())
    yield made
    made.close()


def draw_row(random: Random, number: int) -> Row:
    documents = [draw_document(random) if random.random() > 0.1 else None for _ in range(2)]
    text = random.choice(["a", "b", "aa", "1", "0", "-1", "é", "", None, "x y"])
    place = random.choice([0, 1, -1, 2, -2, 5, None])
    return number, *documents, documents[0], text, place, random.choice(PLACES)


def change_both(random: Random, db: Database, server: Server, ids: set[int]) -> None:
    """Change some rows of the table of a database and of Postgres."""
    with db.transaction():
        for number in random.sample(range(30), 8):
            if number in ids and random.random() < 0.4:
                ids.discard(number)
                server.run("delete from t where id = %s", (number,))
                db.execute("delete from t where id = :id", id=number)
                continue
            row = draw_row(random, number)
            if number in ids:
                server.run("update t set j = %s, k = %s where id = %s", (row[1], row[2], number))
                db.execute(
                    "update t set j = :j, k = :k where id = :id", j=row[1], k=row[2], id=number
                )
                continue
            ids.add(number)
            server.run("insert into t values (%s, %s, %s, %s, %s, %s, %s)", row)
            steps = None if row[6] is None else tuple(row[6])
            given = dict(zip("abcdefg", (*row[:6], steps), strict=True))
            db.execute("insert into t values (:a, :b, :c, :d, :e, :f, :g)", **given)


def as_text(value: str | None) -> str:
    return "NULL" if value is None else value


def check_expressions(db: Database, server: Server, expressions: list[str]) -> int:
    """Compare expressions of each row; return how many values were compared."""
    compared = 0
    for each in expressions:
        if server.is_refused(each):
            with pytest.raises(PlanError):
                db.sql(f"select ({each})::text as found from t")
            continue
        view = db.sql(f"select id, ({each})::text as found from t").materialize()
        found = {row.id: as_text(row.found) for row in view}
        for number, wanted in server.column(each).items():
            assert found.get(number, "an error") == wanted, (each, number)
            compared += 1
    return compared


def test_expressions_are_what_postgres_gives(server: Server) -> None:
    random, db = drawing(), Database(dialect="postgres")
    db.execute(TABLE)
    ids: set[int] = set()
    for _ in range(3):
        change_both(random, db, server, ids)
    every = postgres_expressions()
    asked = every if TIMES else random.sample(every, 60)
    assert check_expressions(db, server, asked) > 5 * len(asked)


def test_huge_numbers_and_equal_keys_are_read_as_in_postgres(server: Server) -> None:
    db = Database(dialect="postgres")
    db.execute(TABLE)
    numbers = ["1e1000", "1e-1000", "1e39", "1e-50", "1e300", '"1e1000"', "0e1000"]
    repeated = ['{"a":{"b":1},"a":3}', '{"a":{"b":1},"a":{"b":2}}', '{"a":{"b":1},"a":{"b":null}}']
    repeated += ['{"a":[1],"a":{"0":2}}', '{"a":{"b":{"a":1},"b":[]},"a":[]}']
    for number, text in enumerate(numbers + repeated):
        row = (number, text, text, text, "a", 0, ["a", "b"])
        server.run("insert into t values (%s, %s, %s, %s, %s, %s, %s)", row)
        db.execute(
            "insert into t values (:a, :j, :j, :j, 'a', 0, :p)", a=number, j=text, p=("a", "b")
        )
    asked = ["j::float8", "j::real", "jsonb_path_query_array(j, '$.double()')", "t #> p"]
    asked += ["jsonb_path_query_array(j, '$.double()', '{}', true)", "t #>> p", "t -> 'a' -> 'b'"]
    asked += ["json_extract_path(t, 'a', '0')", "t #> '{a,b,a}'", "j #> p", "t #> '{}'"]
    assert check_expressions(db, server, asked) == 132


def test_queries_are_what_postgres_gives_after_each_change(server: Server) -> None:
    random, db = drawing(), Database(dialect="postgres")
    db.execute(TABLE)
    asked = QUERIES if TIMES else random.sample(QUERIES, 14)
    views = {query: db.sql(query).materialize() for query in asked}
    ids: set[int] = set()
    for _ in range(4 * (TIMES or 1)):
        change_both(random, db, server, ids)
        for query, view in views.items():
            wanted, found = server.rows(query), list(view)
            assert not view.errors
            assert Counter(found) == Counter(wanted), query
            if "union" not in query and re.search(r"order by [^()]*$", query):
                assert found == wanted, query


@dataclass(frozen=True)
class Note:
    """A row with a document."""

    id: int
    extra: Jsonb | None


def test_documents_are_read_from_a_durable_database(tmp_path: Path) -> None:
    notes = [Note(1, Jsonb({"a": [1, 2.50, None], "é": {}})), Note(2, None), Note(3, Jsonb(None))]
    with Database(str(tmp_path / "notes.db"), dialect="postgres") as db:
        table = db.table(Note, name="notes", key="id")
        table.add_all(notes)
        db.execute("create table more (id int primary key, j jsonb, t json)")
        db.execute("insert into more values (1, :j, '[1 , 2]')", j=Jsonb({"b": 1}))
    with Database(str(tmp_path / "notes.db"), dialect="postgres") as db:
        assert sorted(db.table(Note, name="notes", key="id"), key=lambda n: n.id) == notes
        db.execute("create table more (id int primary key, j jsonb, t json)")
        found = db.sql("select j, t -> 1 as second from more").materialize().value
        assert found == (Jsonb({"b": 1}), "2")


def test_documents_are_equal_by_value_and_immutable() -> None:
    one, other = Jsonb.parse('{"b": 1.0, "a": [1e0, true]}'), Jsonb({"a": [1, True], "b": 1})
    assert one == other and hash(one) == hash(other) and len({one, other}) == 1
    assert Jsonb(1) != Jsonb(True) and Jsonb(0) != Jsonb(False) and Jsonb("1") != Jsonb(1)
    assert pickle.loads(pickle.dumps(one)) == one and repr(one).startswith("Jsonb.parse(")
    with pytest.raises(AttributeError):
        one.data = 1
    inside = other.value
    inside["a"].append(2)
    assert other == one
    for refused in (float("nan"), float("inf"), "\0", "\ud800", {1: 2}, {"a": {1}}, b"x"):
        with pytest.raises((TypeError, ValueError)):
            Jsonb(refused)
    deep: Any = 1
    for _ in range(199):
        deep = [deep]
    assert Jsonb.parse(str(Jsonb(deep))) == Jsonb(deep)
    for text in ("[" * 201 + "]" * 201, "NaN", "[1,]", "{'a': 1}", '"\\u0000"', "1e200000", ""):
        with pytest.raises(ValueError):
            Jsonb.parse(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("select j -> 'a' from t where j -> 'a'", "is no condition"),
        ("select t = t from t", "cannot compare JSON and JSON"),
        ("select j + 1 from t", "no operator"),
        ("select jsonb_path_query_array(j, '$[') from t", "is no jsonpath"),
        ("select jsonb_path_query_array(j, '$.keyvalue()') from t", "is not supported"),
        ("select json_build_object('a') from t", "even number"),
        ("select to_jsonb('a') from t", "cast it"),
        ("select '{\"a\": nan}'::jsonb from t where id = 1 and j = '{x'", "cannot read"),
        ("select j[1:2] from t", "slices"),
        ("select array_length(j, 1) from t", "postgres has no array_length"),
    ],
)
def test_errors_name_what_is_wrong(text: str, told: str) -> None:
    db = Database(dialect="postgres")
    db.execute(TABLE)
    with pytest.raises(PlanError, match=told):
        db.sql(text)


def test_fields_of_any_class_are_documents() -> None:
    db = Database(dialect="postgres")

    @dataclass(frozen=True)
    class Loose:
        id: int
        extra: Any

    loose = db.table(Loose, name="loose")
    view = db.sql("select id, extra -> 'a' ->> 0 as found from loose").materialize()
    loose.add_all([Loose(1, Jsonb({"a": ["x"]})), Loose(2, '{"a": [2]}'), Loose(3, None)])
    assert sorted(view) == [(1, "x"), (2, "2"), (3, None)]
    loose.remove(Loose(2, '{"a": [2]}'))
    assert sorted(view) == [(1, "x"), (3, None)]
