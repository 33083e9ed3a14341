"""The last commits: history, undo and redo, rows as of a version, and when a row came and went."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from reactive import Database, PlanError, TableError
from tests.budget import examples
from tests.random_queries.drawn import SEEDS, commit, draw


@given(seed=SEEDS)
@examples(800)
def test_undo_and_redo_go_through_all_states(seed: int) -> None:
    drawn = draw(seed, steps=4)
    db = Database(keep=100)
    tables = drawn.open(db)
    view = drawn.relations(tables)[0].materialize()

    def state() -> Any:
        return dict(view.zset().items()), [sorted(map(repr, table)) for table in tables]

    states = {db.version: state()}
    for made in drawn.script():
        commit(db, tables, made)
        states[db.version] = state()
    versions = list(states)
    for version in reversed(versions[:-1]):
        db.undo()
        assert state() == states[version], drawn
    for version in versions[1:]:
        db.redo()
        assert state() == states[version], drawn
    for version, (rows, _) in states.items():
        found = Counter(db.at(version)[view])
        assert found == Counter({row: n for row, n in rows.items() if n > 0})
    net = Counter(dict(tables[0].changes_since(0).items()))
    assert net == Counter(dict(tables[0].zset().items()))


def words_of(db: Database) -> tuple[Any, Any]:
    words = db.table(str, name="words")
    return words, words.select(len).materialize()


def test_a_commit_of_its_own_empties_what_could_be_made_again() -> None:
    db = Database(keep=10)
    words, _ = words_of(db)
    words.add("to")
    words.add("be")
    assert db.undo().version == 2
    words.add("or")
    with pytest.raises(PlanError, match="nothing to redo"):
        db.redo()
    assert [db.undo().version for _ in range(2)] == [4, 1]
    with pytest.raises(PlanError, match="nothing to undo"):
        db.undo()
    assert not len(words)


def test_labels_are_in_the_history_in_memory_and_in_a_file(tmp_path: Path) -> None:
    for path in (None, tmp_path / "words.db"):
        db = Database(path, keep=10)
        words, _ = words_of(db)
        with db.transaction(label="import"):
            words.add("to")
        words.add("be")
        db.undo()
        assert [(past.version, past.label, past.turn) for past in db.history()] == [
            (1, "import", None),
            (2, None, None),
            (3, None, "undo"),
        ]
        db.close()
    with Database(tmp_path / "words.db", keep=10) as db:
        words, lengths = words_of(db)
        assert db.redo().version == 2 and sorted(words) == ["be", "to"]
        assert [db.undo().version, db.undo().label] == [2, "import"]
        assert not len(words) and not len(lengths)
        assert words.changes_since(1).items() == (("to", -1),)
        assert sorted(db.at(2)["words"]) == ["be", "to"]


def test_only_as_many_are_kept_as_asked_for() -> None:
    db = Database()
    words, _ = words_of(db)
    with pytest.raises(PlanError, match="no commits are kept"):
        db.undo()
    db.journal(commits=2)
    for word in ("a", "b", "c"):
        words.add(word)
    assert [past.version for past in db.history()] == [2, 3]
    with pytest.raises(PlanError, match="from version 1 on are kept"):
        db.at(0)
    db.journal(rows=3)
    words.add_all(["d", "e"])
    assert [past.version for past in db.history()] == [3, 4]
    with pytest.raises(PlanError, match="number from 1 on"):
        db.journal(commits=0)


def test_a_past_database_takes_queries_and_no_changes() -> None:
    db = Database(keep=10)
    users = db.table(tuple[int, str], name="users", key=lambda u: u[0])
    users.add((1, "ann"))
    users.upsert((1, "bob"))
    past = db.at(1)
    assert past["users"][1] == (1, "ann")
    assert list(past.db.table("users").select(lambda u: u[1]).materialize()) == ["ann"]
    with pytest.raises(TableError, match="as of version 1"):
        past["users"].add((2, "eve"))
    assert list(users) == [(1, "bob")]


def test_the_commit_and_the_fact_that_made_a_row_go_are_told() -> None:
    db = Database(keep=100)
    uses, imports = db.table(str, name="uses"), db.table(str, name="imports")
    unused = imports.anti_join(uses, on=lambda i, u: i == u).materialize("unused")
    with db.transaction(label="load"):
        imports.add_all(["os", "re"])
    with db.transaction(label="edit"):
        uses.add("os")
        uses.add("sys")
    uses.add("json")
    found = unused.why_gone("os")
    assert (found.version, found.label, ("uses", "os", 1) in found.facts) == (2, "edit", True)
    came = unused.since("re")
    assert (came.version, came.label, came.facts) == (1, "load", (("imports", "re", 1),))
    with pytest.raises(PlanError, match="is there"):
        unused.why_gone("re")
    with pytest.raises(PlanError, match="not there in all commits"):
        unused.why_gone("never")


def test_a_table_made_later_is_followed() -> None:
    db = Database(keep=10)
    words, _ = words_of(db)
    words.add("to")
    numbers = db.table(int, name="numbers")
    numbers.add(1)
    db.undo()
    assert not len(numbers) and list(words) == ["to"]


def test_a_commit_that_was_taken_back_before_another_one_is_never_made_again() -> None:
    db = Database(keep=10)
    words, _ = words_of(db)
    for word in ("a", "b"):
        words.add(word)
    db.undo()
    words.add("c")
    assert [db.undo().version for _ in range(2)] == [4, 1]
    assert [db.redo().version for _ in range(2)] == [1, 4]
    assert sorted(words) == ["a", "c"]
    with pytest.raises(PlanError, match="nothing to redo"):
        db.redo()
