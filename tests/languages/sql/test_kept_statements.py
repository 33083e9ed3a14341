"""Statements that are run again keep their plans, and do the same as if they did not."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import pytest

from reactive import Database
from reactive.api.internal_interface import engine_of
from reactive.languages.sql.statements import kept
from tests.budget import seeds
from tests.counted_calls import calls_of

DIALECTS = ("duckdb", "postgres", "sqlite")
Statement = tuple[str, Mapping[str, Any]]

TEXTS = (
    "update t set a = {n} where id = {id}",
    "update t set a = :n where id = :id",
    "update t set a = a + 1 where id = {id}",
    "update t set a = a + {n} where id = :id",
    "update t set a = {n} where id = {n}",
    "update t set s = '{s}', a = {n} where id = {id}",
    "update t set s = :s where id = :id and a < {n}",
    "update t set a = :n, s = 'x{n}' where s = '{s}'",
    "update t set s = '{s}', a = -{n} where s = '{s}' or a = {n}",
    "update t set id = {new} where id = {id}",
    "update t set a = null where a = {n}",
    "update t set a = :none where id = :id",
    "update t set a = :text where id = {id}",
    "update t set day = '2024-01-0{digit}' where id = {id}",
    "update t set day = :day where id = {id}",
    "update t set x = {n}.5 where id = {id}",
    "update t set x = :x where id = :id",
    "update t set x = :decimal where id = :id",
    "update t set a = {n} / {zero} where id = {id}",
    "update t set a = default where id = {id}",
    "update t set a = {large} where id = {id}",
    "update t set a = :large where id = {id}",
    "update t set a = {n} where id = (select max(id) from t)",
    "update t set s = 'it''s {n}' where id = {id}",
    "update t set s = '{n}' || '{s}' where id = {id} -- remark {n}",
    'update t as "t 1" set a = {n} where "t 1".id = {id}',
    "delete from t where id = {id}",
    "delete from t where id = :id",
    "delete from t where a = :n and s = '{s}'",
    "delete from t where id in ({id}, {n})",
    "delete from t where a between {n} and {id}",
    "insert into t values ({new}, {n}, '{s}', null, {n}.5)",
    "insert into t (id, a) values ({new}, {n})",
    "insert into t (id, s) values (:new, :s)",
    "insert into t (a, id) values ({n}, {new}), ({n}, {id})",
    "insert into t (id, day) values ({new}, '2024-01-0{digit}')",
    "insert into t (id, day) values ({new}, :day)",
    "insert into t (id, a) values ({new}, {n} + 1)",
    "insert into t (id, a) values ({new}, :none)",
    "insert into t (id, a) values ({new}, default)",
    "insert into t (id) values (:none)",
    "insert into t (id, s) values ({new}, :text)",
    "insert into t (id, a) values ({new}, {n}, {id})",
    "insert into t (id, a) values ({new}, {n}) on conflict do nothing",
    "insert into t (id, a) select {new}, max(a) from t",
    "update nothing set a = {n}",
    "update t set b = {n} where id = {id}",
    "update t set a = :n",
    "update t set a = :missing where id = {id}",
)
"""Statements about numbers, texts and dates that are drawn anew each time."""
GENERAL = "create table t (id integer primary key, a integer default 7, s varchar(5), day date, x "


def statements(random: Random, count: int) -> Iterator[Statement]:
    """Draw statements of few texts, so that most are run again."""
    texts = random.sample(TEXTS, 12)
    for new in range(100, 100 + count):
        drawn = {
            "id": random.choice([1, 2, 3, 4, 5, 99, 100 + random.randrange(count)]),
            "n": random.choice([0, 1, 2, 3, 40, 500, 70_000]),
            "new": new,
            "s": random.choice(["a", "b", "", "abcde", "longer"]),
            "digit": random.choice([1, 5, 0]),
            "zero": random.choice([0, 1]),
            "large": random.choice([2**31, 5, 2**31 - 1, 999_999_999, 1_000_000_000]),
        }
        given = drawn | {
            "none": random.choice([None, 3]),
            "text": random.choice(["5", "x", 5, True, 2.5]),
            "day": random.choice([dt.date(2024, 5, 6), "2024-05-07", "soon", None]),
            "x": random.choice([1.5, 2, -0.0, 0.0, float("nan"), True]),
            "decimal": random.choice([Decimal("1.5"), Decimal("1.50"), 3]),
        }
        text = random.choice(texts)
        named = {name: given[name] for name in re.findall(r":(\w+)", text) if name in given}
        yield text.format(**drawn), named


def outcome_of(db: Database, text: str, given: Mapping[str, Any]) -> Any:
    """Return the result of a statement, or what it raises, and the rows of the table afterwards."""
    try:
        found: Any = db.execute(text, **given)
    except Exception as error:
        found = type(error), str(error)
    return found, [(*map(repr, row), type(row[1])) for row in db.tables()[0]]


def database(dialect: Any) -> Database:
    db = Database(dialect=dialect)
    db.execute(GENERAL + ("double)" if dialect == "duckdb" else "double precision)"))
    db.execute("insert into t (id, a, s) values (1, 1, 'a'), (2, 2, 'b'), (3, null, 'a')")
    return db


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("seed", seeds(100))
def test_kept_statements_do_the_same(
    dialect: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = database(dialect), database(dialect)
    views = [db.sql("select s, count(*) n, sum(a) a from t group by s") for db in (one, other)]
    live = [view.materialize() for view in views]
    for text, given in statements(Random(seed), 60):
        found = outcome_of(one, text, given)
        with monkeypatch.context() as without:
            without.setattr(kept.KeptStatements, "find", lambda *asked: None)
            expected = outcome_of(other, text, given)
        assert found == expected, (text, given)
        assert sorted(map(repr, live[0])) == sorted(map(repr, live[1])), (text, given)
        live[0].verify()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_kept_statements_see_their_transaction(dialect: str) -> None:
    db = database(dialect)
    for number in range(4):
        with db.transaction():
            db.execute(f"insert into t (id, a) values ({10 + number}, {number})")
            assert db.execute(f"update t set a = a + 5 where id = {10 + number}") == 1
    assert {row[0]: row[1] for row in db.tables()[0] if row[0] >= 10} == {
        10: 5,
        11: 6,
        12: 7,
        13: 8,
    }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statement_of_a_table_that_was_made_again(dialect: str) -> None:
    db = database(dialect)
    for number in range(3):
        db.execute(f"update t set a = {number} where id = 1")
    db.execute("drop table t")
    db.execute("create table t (a varchar, id integer primary key)")
    for number in range(3):
        assert db.execute(f"insert into t values ('x', {number})") == 1
        assert db.execute(f"update t set a = 'y' where id = {number}") == 1
    assert [tuple(row) for row in db.tables()[0]] == [("y", 0), ("y", 1), ("y", 2)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        "update t set a = {n} where id = {id}",
        "update t set a = :n where id = :id",
        "update t set s = 'x{id}' where id = {id}",
        "update t set a = a + 1 where id = :id",
        "delete from t where id = {id}",
        "delete from t where id = :id",
        "insert into t (id, a) values ({new}, {n})",
        "insert into t (id, s) values (:new, 'x')",
    ],
)
def test_kept_statement_is_not_translated_again(dialect: str, text: str) -> None:
    db = database(dialect)

    def run(number: int) -> None:
        drawn = {"id": 1 + number % 3, "n": 50 + number, "new": 50 + number}
        given = {name: drawn[name] for name in re.findall(r":(\w+)", text)}
        db.execute(text.format(**drawn), **given)

    counts = [calls_of(partial(run, number)) for number in range(8)]
    assert min(counts[3:]) < 180 and max(counts[5:]) < 500 < counts[0], counts


def test_few_statements_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST", 8)
    db = database("duckdb")
    for number in range(2 * kept.MOST):
        db.execute(f"update t set a = 1 where id = 1 and {'a = a and ' * number} a = 1.{number}")
    assert len(engine_of(db).catalog.statements) <= kept.MOST
