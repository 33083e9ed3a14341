"""`verify()` evaluates sub-queries of SQL by definition, so that it finds a wrong translation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from optimizer import plan
from optimizer.expr import TRUE
from optimizer.subqueries import answers, decorrelation
from reactive import Database, VerificationError
from reactive.engine.reference.quantified import RecursiveRows
from reactive.languages.sql.queries import grouping, query
from reactive.languages.sql.queries.query import RowComparison
from tests.counted_calls import calls_of

Patch = pytest.MonkeyPatch
TABLES = (
    "create table c (id integer, x integer, y integer)",
    "create table o (k integer, v integer, w integer)",
    "insert into c values (1, 1, 5), (2, 2, null), (3, null, 7), (4, 9, 9), (5, 5, 1), (6, 0, 2)",
    "insert into o values (1, 1, 5), (1, 9, 1), (2, null, 3), (2, 2, 2), (4, 8, 8), (5, 3, 1),"
    " (null, 9, 9)",
)


def _lose_conditions(patch: Patch) -> None:
    """A join that holds for all pairs."""
    for module in (decorrelation, decorrelation):
        patch.setattr(module, "on_pairs", lambda *a, **k: None)


def _lose_values(patch: Patch) -> None:
    """Break the translation: use the result for one value for all values."""
    for module in (answers, decorrelation, decorrelation):
        patch.setattr(module, "match_back", lambda *a, **k: plan.Match())


def _show_of_no_rows(patch: Patch) -> None:
    patch.setattr(grouping, "_result_without_rows", lambda folded: 77)


def _read_nulls_as_values(patch: Patch) -> None:
    """NOT IN that does not ask whether there is a NULL."""
    none = query._no_match

    def without(asked: RowComparison) -> Any:
        values = tuple(replace(value, nulls=()) for value in asked.query.values)
        return none(replace(asked, query=replace(asked.query, values=values)))

    patch.setattr(query, "_no_match", without)


def _compare_otherwise(patch: Patch) -> None:
    """A comparison that takes `<` for `<=`, and `=` for everything."""
    tests = query._tests
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}

    def wrong(asked: RowComparison, left: Any) -> Any:
        if asked.symbol not in other:
            return [TRUE]
        return tests(replace(asked, symbol=other[asked.symbol]), left)

    patch.setattr(query, "_tests", wrong)


BROKEN: tuple[tuple[str, Callable[[Patch], None]], ...] = (
    ("select id from c where exists (select 1 from o where o.k = c.id)", _lose_conditions),
    ("select id from c where not exists (select 1 from o where o.k = c.id)", _lose_conditions),
    (
        "select id from c where exists (select o.k from o where o.k = c.id group by o.k"
        " having count(*) > 1)",
        _lose_values,
    ),
    ("select id, (select sum(v) from o where o.k = c.id) as s from c", _lose_values),
    ("select id, (select count(*) from o where o.k = c.id) as n from c", _show_of_no_rows),
    ("select id from c where x in (select v from o)", _compare_otherwise),
    ("select id from c where x in (select v from o where o.k = c.id)", _compare_otherwise),
    ("select id from c where x not in (select v from o where o.k = c.id)", _compare_otherwise),
    ("select id from c where x not in (select v from o where w < 4)", _read_nulls_as_values),
    ("select id, x not in (select v from o where k = 2) as n from c", _read_nulls_as_values),
    ("select id from c where (x, y) in (select v, w from o)", _compare_otherwise),
    ("select id from c where (x, y) not in (select v, w from o)", _compare_otherwise),
    ("select id from c where x < any (select v from o where v > 1)", _compare_otherwise),
    ("select id from c where x >= all (select v from o where v is not null)", _compare_otherwise),
    ("select id from c where y > any (select w from o where o.k = c.id)", _compare_otherwise),
    ("select id from c where y <> all (select w from o)", _compare_otherwise),
    ("select id, t.v from c, lateral (select v from o where o.k = c.id) t", _lose_conditions),
    (
        "select id, t.v from c left join lateral (select v from o where o.k = c.id) t on true",
        _lose_values,
    ),
    (
        "select id, t.s from c, lateral (select sum(v) as s from o where o.k = c.id) t",
        _lose_values,
    ),
    (
        "select id, (select max(d.s) from (select w, sum(v) as s from o where o.k = c.id"
        " group by w) d) as m from c",
        _lose_values,
    ),
    (
        "select id from c where exists (select 1 from o where o.k = c.id and o.w in"
        " (select p.v from o p where p.k = c.x))",
        _compare_otherwise,
    ),
)
NUMBERED = "select k, row_number() over (partition by k order by v) as n from o"
OF_ROW = "(select row_number() over (order by v) as n from o where o.k = c.id) t"
SUM = "(select sum(v) from o where o.k = c.id)"
WINDOWS: tuple[tuple[str, Callable[[Patch], None]], ...] = (
    (
        "select id from c where exists (select row_number() over (partition by k order by v) as n"
        " from o where o.k = c.id qualify n > 1)",
        _lose_values,
    ),
    (
        f"select id from c where exists (select 1 from ({NUMBERED}) t where t.k = c.id"
        " and t.n > 1)",
        _lose_conditions,
    ),
    (
        f"select id from c where not exists (select 1 from {OF_ROW} where t.n > 1)",
        _lose_values,
    ),
    (f"select id, (select max(t.n) from {OF_ROW}) as m from c", _lose_values),
    (f"select id, (select count(t.n) from {OF_ROW}) as m from c", _show_of_no_rows),
    (f"select id, (select array_agg(n order by n) from {OF_ROW}) as m from c", _lose_values),
    (f"select id, t.n from c, lateral {OF_ROW}", _lose_values),
    (
        "select id, (select sum(t.s) from (select sum(v) over (order by w) as s from o"
        " where o.k = c.id) t) as m from c",
        _lose_values,
    ),
    ("select id from c where x in (select rank() over (order by v) from o)", _compare_otherwise),
    (
        "select id from c where x not in (select rank() over (partition by k order by v) from o)",
        _compare_otherwise,
    ),
    (
        "select id from c where x not in (select lag(v) over (partition by k order by v) from o"
        " where k = 1)",
        _read_nulls_as_values,
    ),
    (
        "select id from c where x not in (select lag(v) over (order by v) from o where o.k = c.id)",
        _read_nulls_as_values,
    ),
    (
        "select id from c where y < all (select sum(w) over (partition by k) from o"
        " where w is not null)",
        _compare_otherwise,
    ),
    (f"select id, rank() over (order by {SUM}) as r from c", _lose_values),
    (f"select id, sum({SUM}) over (order by id) as r from c", _lose_values),
    (
        "select id, rank() over (partition by exists (select 1 from o where o.k = c.id"
        " and o.v > 7) order by id) as r from c",
        _lose_values,
    ),
    (
        "select id, count(*) filter (where x in (select v from o)) over (order by id) as n from c",
        _compare_otherwise,
    ),
    (
        "select id, sum(x) over (partition by y in (select w from o) order by id) as s from c",
        _compare_otherwise,
    ),
    (
        "with recursive r(a) as (select id from c where id = 1 union select c.id from c"
        f" join r on c.id = r.a + 1 where exists (select 1 from ({NUMBERED}) t"
        " where t.k = c.id and t.n > 1)) select * from r",
        _lose_conditions,
    ),
    (
        "with recursive r(a) as (select id from c where id = 1 union select c.id from c"
        " join r on c.id > r.a where c.x in (select rank() over (order by v) from o"
        " where v > 1)) select * from r",
        _compare_otherwise,
    ),
    (
        "with recursive r(a) as (select 1::bigint union select (select max(n) + 1 from"
        " (select row_number() over (order by v) as n from o where o.k = r.a) t) from r)"
        " select * from r",
        _lose_values,
    ),
    (
        "with recursive r(a) as (select id from c where id < 3 union select a + 1 from r"
        " where a < 5) select a, rank() over (order by (select sum(v) from o where o.k = r.a))"
        " as n from r",
        _lose_values,
    ),
    (
        "with recursive r(a) as (select id from c where id < 3 union select a + 1 from r"
        " where a < 5) select id from c where x in (select rank() over (order by a) from r)",
        _compare_otherwise,
    ),
)
"""Windows in sub-queries, sub-queries in windows, and both beside and inside recursions."""


def _view(text: str) -> Any:
    db = Database(dialect="postgres")
    for each in TABLES:
        db.execute(each)
    return db.sql(text).materialize()


@pytest.mark.long
@pytest.mark.parametrize(("text", "break_it"), (*BROKEN, *WINDOWS))
def test_verify_finds_a_broken_translation(
    text: str, break_it: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    right = _view(text)
    right.verify()
    with monkeypatch.context() as patch:
        break_it(patch)
        wrong = _view(text)
    assert sorted(map(repr, wrong)) != sorted(map(repr, right))
    with pytest.raises(VerificationError):
        wrong.verify()


STEPS = (
    *(f"select v from o where k {op} any(select n from r)" for op in ("=", "<>", "<", ">=")),
    "select v from o where k in (select n from r)",
    "select v from o where k in (select n + 1 from r where n < 6)",
    "select v from o where (k, w) in (select n, 5 from r)",
    *(
        f"select v from o join c on {on}"
        for on in (
            "k = id and k = any(select n from r)",
            "k <= any(select n from r) and id = k",
            "(id, y) in (select n, 5 from r) and k > 1",
            "id in (select n from r) and k in (select n from r)",
            "10 // (k - 4) > 0 and id in (select n from r) and v > x",
        )
    ),
    "select v from o, c where k = id and k in (select n from r where n < id + 2)",
    "select v from o join r on k = n where v in (select n + 4 from r)",
)


@pytest.mark.parametrize("step", STEPS)
def test_comparisons_with_the_recursion_itself_are_followed(step: str) -> None:
    """The oracle agrees with the view, and finds wrong rows.

    It evaluates a row again only if its comparison changes.
    """
    text = f"with recursive r(n) as (select id from c where x = 1 union {step}) select n from r"
    db = Database()
    for statement in TABLES:
        db.execute(statement)
    view = db.sql(text).materialize()
    for change in (
        "select 1",
        "insert into o values (9, 4, 5), (8, 2, 5), (3, null, 5)",
        "update c set x = 1 where id = 4",
        "delete from o where k = 1",
        "insert into o values (0, 1, 1), (-1, 0, 5), (1, -1, 5)",
        "delete from c where id = 1",
    ):
        if change != "select 1":
            db.execute(change)
        view.verify()
        rows = evaluate_anew(view)
        assert rows == {tuple(row): 1 for row in view}


def evaluate_anew(view: Any) -> dict[Any, int]:
    """Return the rows of a query; each change of a recursion evaluates every row again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecursiveRows, "candidates", lambda self, row: _note_all(self))
        return {tuple(row): n for row, n in view._evaluate_plan(view.relation.plan).items()}


def _note_all(rows: Any) -> Any:
    notes = rows._noting()
    if notes is not None:
        notes.add(id(rows._source))
    return rows._there()


@pytest.mark.parametrize("joined", ["", "join k on k.b = e.b and", "join k on"])
@pytest.mark.parametrize("op", ["= any", "in ", "<= any", "<> any"])
def test_a_row_is_asked_again_where_its_comparison_changes(
    op: str, joined: str, monkeypatch: Patch
) -> None:
    db = Database()
    db.execute("create table e (a integer, b integer)")
    rows = ", ".join(f"({n}, {n + 1})" for n in range(200))
    db.execute(f"insert into e values {rows}")
    db.execute("create table k (b integer)")
    db.execute(f"insert into k select b from e where {not joined.endswith('on')} or b < 2")
    text = f"select e.b from e {joined or 'where'} a {op}(select n from r)"
    view = db.sql(f"with recursive r(n) as (select 0 union {text}) select n from r").materialize()
    asked: list[Any] = []
    before = RecursiveRows.candidates

    def counted(self: RecursiveRows, row: tuple[Any, ...]) -> Any:
        asked.append(row)
        return before(self, row)

    monkeypatch.setattr(RecursiveRows, "candidates", counted)
    view.verify()
    assert len(view) >= 200
    assert 200 <= len(asked) <= 3 * 200


SHAPES = {"tree": lambda n: ((n - 1) // 2, n), "chain": lambda n: (n - 1, n)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "condition",
    [
        "where a = any(select n from r)",
        "where exists (select 1 from r where r.n = e.a)",
        "join k on k.c = e.b and a in (select n from r)",
    ],
)
def test_a_row_of_a_recursion_is_verified_in_few_calls(condition: str, shape: str) -> None:
    db = Database()
    db.execute("create table e (a integer, b integer)")
    db.execute("create table k (c integer)")
    text = f"select b from e {condition}"
    view = db.sql(f"with recursive r(n) as (select 0 union {text}) select n from r").materialize()
    rows = ", ".join(map(str, map(SHAPES[shape], range(1, 401))))
    db.execute(f"insert into e values {rows}")
    db.execute("insert into k select b from e")
    view.verify()
    assert len(view) == 401
    assert calls_of(view.verify) <= 400 * 400
