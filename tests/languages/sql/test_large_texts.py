"""Texts that programs write are right, or refused: thousands of terms, a thousand levels."""

from __future__ import annotations

import sys
from typing import Any

import duckdb
import pytest

from reactive import Database, PlanError
from reactive.languages.sql.terms.scope import Scope
from tests.budget import share_of

LEVELS = 1_000
TERMS = 10_000
STATEMENTS = (
    "create table t (id int, g int, s text)",
    "insert into t values (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, null, null)",
)


def nested(before: str, inner: str, after: str, levels: int = LEVELS) -> str:
    return before * levels + inner + after * levels


def branches(count: int) -> str:
    return " ".join(f"when g = {n} then {n * 2}" for n in range(count))


TEXTS = {
    "a sum of 10,000": f"select id, {' + '.join(['g'] * TERMS)} as x from t",
    "a chain of ||": f"select id, {'||'.join(['s'] * 2_000)} as x from t",
    "OR": "select id from t where " + " or ".join(f"g = {n}" for n in range(3_000)),
    "AND": "select id from t where " + " and ".join(f"g <> {n + 9}" for n in range(3_000)),
    "IN": f"select id from t where g in ({', '.join(map(str, range(10_000)))})",
    "brackets": f"select id, {nested('(', 'g', ')')} as x from t",
    "CASE of many branches": f"select id, case {branches(2_000)} else -1 end as x from t",
    "CASE in CASE": "select id, "
    + "".join(f"case when g = {n} then {n} else " for n in range(LEVELS))
    + f"-1{' end' * LEVELS} as x from t",
    "functions": f"select id, {nested('abs(', 'g', ')')} as x from t",
    "coalesce": f"select id, {nested('coalesce(', 'g', ', 1)')} as x from t",
    "casts": f"select id, {nested('cast(', 'g', ' as int)')} as x from t",
    "NOT": f"select id from t where {nested('not (', 'g = 1', ')')}",
    "AND in OR in AND": "select id from t where "
    + "".join(f"(g <> {n + 9} and (id = {n} or " for n in range(LEVELS // 2))
    + "g = 1"
    + "))" * (LEVELS // 2),
    "queries in FROM": f"select * from {nested('(select * from ', 't', ') x', 200)}",
    "WITH after WITH": "with c0 as (select id, g from t), "
    + ", ".join(f"c{n} as (select id, g + 1 as g from c{n - 1})" for n in range(1, 100))
    + " select * from c99",
    "a deep key of groups": f"select {'+'.join(['g'] * 500)} as x, count(*) from t group by x",
    "a deep order": f"select id from t order by {'+'.join(['g'] * 500)}, id limit 3",
    "a deep equation": "select a.id, b.id from t a join t b on "
    f"{'+'.join(['a.g'] * 500)} = {'+'.join(['b.g'] * 500)}",
    "a deep argument": f"select sum({'+'.join(['g'] * 500)}) from t",
    "a deep window": f"select id, sum(id) over (partition by {'+'.join(['g'] * 500)}) from t",
    "a query in a deep sum": f"select id, {'+'.join(['g'] * 200)} + (select max(g) from t) from t",
}


@pytest.fixture
def both() -> Any:
    """A database of ours, and DuckDB with the same rows."""
    db, other = Database(), duckdb.connect()
    for statement in STATEMENTS:
        db.execute(statement)
        other.execute(statement)
    return db, other


@pytest.mark.long
@pytest.mark.parametrize("name", share_of([*TEXTS], "large texts", 2))
def test_a_large_text_is_as_in_duckdb(name: str, both: Any) -> None:
    db, other = both
    view = db.sql(TEXTS[name]).materialize()
    for change in ("delete from t where id = 2", "insert into t values (5, 2, 'd')"):
        db.execute(change)
        other.execute(change)
        assert sorted(map(repr, map(tuple, view))) == _wanted(name, other)
    assert not view.errors


def _wanted(name: str, other: Any) -> list[str]:
    """Return the answer of DuckDB; for texts too deep for it, a result worked out by hand."""
    if name not in SAME:
        return sorted(map(repr, other.execute(TEXTS[name]).fetchall()))
    rows = other.execute("select id, g, s from t").fetchall()
    return sorted(map(repr, SAME[name](rows)))


SAME: dict[str, Any] = {
    "a sum of 10,000": lambda rows: [(i, g and g * TERMS) for i, g, _ in rows],
    "a chain of ||": lambda rows: [(i, s and s * 2_000) for i, _, s in rows],
    "OR": lambda rows: [(i,) for i, g, _ in rows if g is not None],
    "AND": lambda rows: [(i,) for i, g, _ in rows if g is not None],
    "brackets": lambda rows: [(i, g) for i, g, _ in rows],
    "CASE of many branches": lambda rows: [(i, -1 if g is None else 2 * g) for i, g, _ in rows],
    "CASE in CASE": lambda rows: [(i, -1 if g is None else g) for i, g, _ in rows],
    "functions": lambda rows: [(i, g) for i, g, _ in rows],
    "coalesce": lambda rows: [(i, g or 1) for i, g, _ in rows],
    "casts": lambda rows: [(i, g) for i, g, _ in rows],
    "NOT": lambda rows: [(i,) for i, g, _ in rows if g == 1],
    "AND in OR in AND": lambda rows: [(i,) for i, g, _ in rows if g is not None],
}
"""Answers of texts that are too deep for DuckDB, or take it minutes."""


def test_a_text_of_a_megabyte_is_read(both: Any) -> None:
    db, _ = both
    text = "x" * 1_000_000
    (row, *_) = db.sql(f"select '{text}' as x from t").materialize()
    assert row.x == text


@pytest.mark.long
def test_a_text_that_is_too_deep_is_refused_with_its_place(both: Any) -> None:
    db, _ = both
    with pytest.raises(PlanError, match=r"nested too deeply at line 1, column 200"):
        db.sql(f"select {nested('(', 'g', ')', 20_000)} from t")


@pytest.mark.long
def test_a_deep_text_in_a_transaction(both: Any) -> None:
    db, _ = both
    with db.transaction():
        db.execute("insert into t values (6, 3, 'x')")
        relation = db.sql(TEXTS["a sum of 10,000"])
        db.execute(f"delete from t where {nested('(', 'g', ')')} = 1")
    assert sorted(row.id for row in relation.materialize()) == [3, 4, 6]


def test_a_deep_insert(both: Any) -> None:
    db, _ = both
    db.execute(f"insert into t values ({'+'.join(['1'] * 3_000)}, 1, 'x')")
    assert 3_000 in {row.id for row in db.sql("select id from t").materialize()}


@pytest.mark.long
def test_the_recursion_limit_is_as_before(both: Any) -> None:
    before = sys.getrecursionlimit()
    db, _ = both
    db.sql(TEXTS["a sum of 10,000"])
    assert sys.getrecursionlimit() == before


@pytest.mark.long
def test_verify_and_explain_a_deep_view(both: Any) -> None:
    db, _ = both
    view = db.sql(TEXTS["CASE in CASE"]).materialize()
    view.verify()
    assert "select" in str(view.explain())


def test_arrays_nested_too_deeply_are_refused(both: Any) -> None:
    db, _ = both
    with pytest.raises(PlanError, match="nested"):
        db.sql(f"select {nested('[', 'g', ']')} from t")


TYPED_FIRST = {
    "duckdb": ("epoch_ms({})", "abs({})", "floor({})", "({} in (1, 2))", "({} between 0 and 1)"),
    "postgres": ("floor({})", "power({}, 1)", "sqrt({})", "sign({})", "exp({})"),
    "sqlite": ("abs({})", "({} in (1, 2))", "({} between 0 and 1)"),
}
"""Calls that ask for the type of an argument before they are made of it, by their dialect."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("dialect", "form"), [(name, form) for name, forms in TYPED_FIRST.items() for form in forms]
)
def test_an_argument_is_read_once_at_each_level(dialect: Any, form: str) -> None:
    """Read twice, 14 levels would be read 16,000 times."""
    db = Database(dialect=dialect)
    db.execute("create table t (i int)")
    text = "i"
    for _ in range(14):
        text = form.format(text)
    reads: list[Any] = []
    value = Scope._value

    def counted(self: Scope, node: Any) -> Any:
        reads.append(node)
        return value(self, node)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scope, "_value", counted)
        db.sql(f"select {text} as x from t")
    assert len(reads) < 500
