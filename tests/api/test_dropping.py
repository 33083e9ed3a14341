"""Dropped or replaced tables: the views that end with them, and the errors of later calls."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from reactive import ClosedError, Count, Database, PlanError, Table, TableError, TransactionError


def words_of(db: Database, **options: Any) -> Table[str]:
    return db.table(str, name="words", **options)


def test_a_dropped_table_is_none_of_the_database() -> None:
    db = Database()
    words, names = words_of(db), db.table(str, name="names")
    db.drop(words)
    assert db.tables() == [names]
    assert repr(words) == "Table('words', dropped)"
    names.add("be")
    assert list(names.materialize()) == ["be"]


def test_a_table_with_views_is_not_dropped_and_they_are_named() -> None:
    db = Database()
    words = words_of(db)
    view = words.group_by(len).aggregate(Count()).materialize("sizes")
    again = words.where(str.islower).subscribe(print)
    with pytest.raises(PlanError) as caught:
        db.drop(words)
    message = str(caught.value)
    assert "view 'sizes' (test_dropping.py:" in message
    assert "a subscription made at test_dropping.py:" in message
    assert "views=True" in message
    words.add("to")
    assert view[2] == 1
    again.close()


def test_many_views_are_counted() -> None:
    db = Database()
    words = words_of(db)
    views = [words.where(str.islower).materialize(f"v{n}") for n in range(8)]
    with pytest.raises(PlanError, match=r"'v4' .*, 3 more"):
        db.drop(words)
    assert len(views) == 8


def test_views_that_are_closed_or_held_by_nobody_are_no_hindrance() -> None:
    db = Database()
    words = words_of(db)
    closed = words.materialize()
    closed.close()
    words.materialize("gone")
    db.drop(words)
    assert db.views() == []


def test_views_go_with_their_table_if_so_asked_and_say_why() -> None:
    db = Database()
    words, names = words_of(db), db.table(str, name="names")
    view = words.join(names, on=lambda w, n: w == n).materialize("both")
    other = names.materialize()
    heard: list[Any] = []
    subscription = view.subscribe(heard.append)
    db.drop(words, views=True)
    with pytest.raises(ClosedError, match=r"'both' is closed: table 'words' was dropped at test_"):
        list(view)
    assert subscription.closed
    names.add("be")
    assert list(other) == ["be"]
    assert heard == []


def test_a_query_that_no_longer_reads_the_table_as_it_is_run_is_one_over_it() -> None:
    db = Database()
    words = words_of(db)
    view = words.where(lambda w: False).materialize("none")
    with pytest.raises(PlanError, match="'none'"):
        db.drop(words)
    view.close()


USES: list[Callable[[Any], object]] = [
    lambda t: t.add("a"),
    lambda t: t.add_all([]),
    lambda t: t.add_all(["a"]),
    lambda t: t.remove("a"),
    lambda t: t.remove_all(["a"]),
    lambda t: t.discard("a"),
    lambda t: t.update("a", "b"),
    lambda t: t.replace_all([]),
    lambda t: t.replace_where(lambda w: True, []),
    lambda t: t.clear(),
    lambda t: len(t),
    lambda t: list(t),
    lambda t: "a" in t,
    lambda t: t.count("a"),
    lambda t: t.items(),
    lambda t: t.stats(),
    lambda t: t.show(),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("use", USES)
def test_using_a_dropped_table_says_so(use: Callable[[Any], object], strict: bool) -> None:
    db = Database(strict=strict)
    words = words_of(db)
    words.add("a")
    db.drop(words)
    with pytest.raises(TableError, match=r"table 'words' was dropped at test_dropping.py:"):
        use(words)
    assert db.version == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.upsert("a"),
        lambda t: t.upsert_all(["a"]),
        lambda t: t.delete("a"),
        lambda t: t["a"],
        lambda t: t.get("a"),
        lambda t: "a" in t,
    ],
)
def test_using_a_dropped_table_with_a_key_says_so(use: Callable[[Any], object]) -> None:
    db = Database()
    words = words_of(db, key=lambda w: w)
    words.add("a")
    db.drop(words)
    with pytest.raises(TableError, match=r"table 'words' was dropped at test_dropping.py:"):
        use(words)


def test_a_statement_of_a_transaction_that_came_too_late_says_so() -> None:
    db = Database()
    words, names = words_of(db), db.table(str, name="names")
    db.drop(words)
    with pytest.raises(TableError, match="was dropped"), db.transaction():
        names.add("be")
        words.add("to")
    assert list(names) == []


def test_a_query_over_a_dropped_table_cannot_be_computed() -> None:
    db = Database()
    words = words_of(db)
    query = words.select(len).distinct()
    db.drop(words)
    for use in (query.materialize, query.tables, words.materialize, lambda: query.subscribe(print)):
        with pytest.raises(PlanError, match="table 'words' of this query was dropped"):
            use()
    assert "table words" in repr(query)


def test_a_table_of_another_database_is_not_dropped() -> None:
    db, other = Database(), Database()
    words = words_of(other)
    for wrong in (words, words.distinct(), "words"):
        with pytest.raises(PlanError):
            db.drop(wrong)  # type: ignore[arg-type]
    db.drop(mine := words_of(db))
    with pytest.raises(PlanError, match="dropped already"):
        db.drop(mine)
    assert words_of(db).name == "words"


def test_tables_are_not_dropped_inside_a_transaction() -> None:
    db = Database()
    words = words_of(db)
    with db.transaction():
        words.add("to")
        with pytest.raises(TransactionError, match="inside a transaction"):
            db.drop(words)
        with pytest.raises(TransactionError, match="inside a transaction"):
            words_of(db, replace=True)
    assert list(words) == ["to"]
    assert db.tables() == [words]


def test_tables_are_not_dropped_by_callables_of_queries() -> None:
    db = Database()
    words = words_of(db)

    class Drops:
        def __call__(self, word: str) -> bool:
            db.drop(*db.tables(), views=True)
            return True

    view = words.where(Drops()).materialize()
    with pytest.raises(TransactionError):
        words.add("to")
    assert list(view) == []
    assert list(words) == []


def test_a_replaced_table_is_empty_and_the_old_one_names_the_line() -> None:
    db = Database()
    old = words_of(db)
    old.add("to")
    view = old.materialize("copy")
    new = words_of(db, replace=True)
    assert list(new) == []
    assert db.tables() == [new]
    with pytest.raises(TableError, match=r"table 'words' was replaced at test_dropping.py:"):
        old.add("be")
    with pytest.raises(ClosedError, match=r"'copy' is closed: table 'words' was replaced at"):
        len(view)
    fresh = new.where(str.islower).materialize()
    new.add("or")
    assert list(fresh) == ["or"]


def test_without_a_name_the_table_of_the_class_is_replaced() -> None:
    db = Database()
    db.table(str, replace=True)
    db.table(int)
    assert [t.name for t in db.tables()] == ["str", "int"]
    new = db.table(str, replace=True)
    assert [t.name for t in db.tables()] == ["int", "str"]
    assert db.table(str).name == "str_2"
    assert new.name == "str"


def test_a_table_that_cannot_be_made_replaces_nothing() -> None:
    db = Database()
    old = words_of(db)
    old.add("to")
    view = old.materialize()
    with pytest.raises(PlanError, match="must be stored"):
        words_of(db, replace=True, stored=False, key=len)
    with pytest.raises(PlanError, match="no hash"):
        db.table(list, name="words", replace=True)
    with pytest.raises(PlanError, match="takes the class"):
        db.table("words", replace=True)  # type: ignore[call-overload]
    assert db.table("words") is old
    assert db.tables() == [old]
    old.add("be")
    assert sorted(view) == ["be", "to"]


def test_commits_of_other_tables_go_on_after_many() -> None:
    """Functions that commit one table alone must forget dropped nodes."""
    db = Database()
    words, names = words_of(db), db.table(str, name="names")
    both = words.union_all(names).materialize("both")
    kept = names.select(len).materialize()
    for n in range(100):
        names.add(str(n))
        words.add(str(n))
    db.drop(words, views=True)
    assert both.closed
    names.add("four")
    assert kept.count(4) == 1
    kept.verify()


def test_nothing_of_a_dropped_table_is_kept() -> None:
    class Word(str):
        __slots__ = ("__weakref__",)

    db = Database()
    words = db.table(Word)
    words.add(Word("to"))
    held = weakref.ref(next(iter(words)))
    view = words.group_by(len).aggregate(Count()).materialize()
    db.drop(words, views=True)
    gc.collect()
    assert held() is None
    assert db._engine.graph.nodes() == []
    assert db._engine.graph.leaves() == []
    assert view.closed


def test_numbers_of_tables_are_not_used_again() -> None:
    """A query over a table that is gone must never read another one."""
    db = Database()
    first = words_of(db)
    query = first.select(len)
    db.drop(first)
    words_of(db)
    with pytest.raises(PlanError, match="was dropped"):
        query.materialize()
