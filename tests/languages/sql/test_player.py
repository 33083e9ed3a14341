"""The player reads scripts, and finds faults of views."""

from __future__ import annotations

from random import Random

import pytest

from reactive.languages.sql.expressions.comparisons import OPPOSITE
from tests.languages.sql.compare import difference
from tests.languages.sql.oracles import Refused, Row, oracle
from tests.languages.sql.player import play
from tests.languages.sql.script import parsed

SCRIPT = """
# a comment
statement ok
create table t (a integer, b integer not null)

statement ok
insert into t values (1, 2), (null, 3), (1, 2), (4, 0)

statement error
insert into t values (1, null)

skipif sqlite
query II rowsort joined
select a, b // 2 from t
----
1 1

query I
select a from t where a > 1

query
select b from t order by b
"""


def test_records_have_engines_lines_and_text() -> None:
    records = parsed("t", SCRIPT).records
    assert [record.kind for record in records] == ["statement"] * 3 + ["query"] * 3
    assert [record.fails for record in records] == [False, False, True, False, False, False]
    assert records[3].engines == ("duckdb",)
    assert records[3].text == "select a, b // 2 from t"
    assert records[4].line == 19


def test_a_record_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no record begins with 'qurey'"):
        parsed("t", "qurey I\nselect 1")


def test_queries_that_follow_one_another_are_played_together() -> None:
    text = "statement ok\na\n\nquery\nb\n\nquery\nc\n\nstatement ok\nd\n\nquery\ne"
    groups = list(parsed("t", text).groups("duckdb"))
    assert [([s.text for s in ss], [q.text for q in qs]) for ss, qs in groups] == [
        (["a"], ["b", "c"]),
        (["a", "d"], ["e"]),
    ]


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_a_script_is_played(engine: str) -> None:
    report = play(parsed("t", SCRIPT), engine, Random(1))
    assert report.queries == (3 if engine == "duckdb" else 2)
    assert report.compared == 10 * report.queries
    assert not report.wrong and not report.refused and not report.empty


def test_a_view_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPPOSITE, ">", ">")
    text = "statement ok\ncreate table t (a int)\n\nstatement ok\ninsert into t values (1), (5)\n\n"
    report = play(
        parsed("t", f"{text}query\nselect a from t where not (a > 2)"), "duckdb", Random(1)
    )
    (wrong,) = report.wrong
    assert "t:8: missing" in wrong


def test_a_query_that_cannot_be_made_is_told() -> None:
    text = "statement ok\ncreate table t (a int)\n\nquery\nselect nonsense(a) from t"
    report = play(parsed("t", text), "duckdb", Random(1))
    assert "there is no function 'nonsense'" in str(report)


def test_rows_are_compared_with_types_counts_and_order() -> None:
    assert difference([(1, None)], [(1, None)], ordered=True, typed=True) is None
    assert difference([(1,), (2,)], [(2,), (1,)], ordered=False, typed=True) is None
    assert difference([(0.1 + 0.2,)], [(0.3,)], ordered=False, typed=True) is None
    assert difference([(1,)], [(1.0,)], ordered=False, typed=False) is None
    cases: list[tuple[list[Row], list[Row]]] = [
        ([(1,)], [(1.0,)]),
        ([(True,)], [(1,)]),
        ([(1,)], [(1,), (1,)]),
        ([(None,)], [(0,)]),
        ([(0.3,)], [(0.30001,)]),
    ]
    for shown, expected in cases:
        assert difference(shown, expected, ordered=False, typed=True) is not None
    assert difference([(1,), (2,)], [(2,), (1,)], ordered=True, typed=True) is not None


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_one_copy_of_a_row_is_removed_of_a_database(engine: str) -> None:
    database = oracle(engine)
    database.run("create table t (a integer, b varchar)")
    database.add("t", [(1, None), (1, None), (2, "x")])
    database.remove("t", [(1, None), (2, "x")])
    assert database.ask("select * from t") == [(1, None)]
    with pytest.raises(Refused):
        database.ask("select nonsense from t")
