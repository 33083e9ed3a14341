"""State of views across restarts: read where it fits, computed where not, and right in any case."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from math import inf
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database, DurabilityError, PlanError, Store, Sum
from reactive.borders.durable import kept_views, sqlite_tables
from reactive.borders.durable.sqlite_store import SqliteStore
from reactive.borders.durable.sqlite_tables import Cost
from reactive.borders.durable.store import MemoryStore
from tests.borders.durable.faulty import Faults
from tests.budget import seeds
from tests.engine.operators.test_operator_state import RELATIONS, Arc, change, play

Query = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views are stored when a test says so, and at the end."""
    monkeypatch.setattr(kept_views, "EVERY", 1e6)


@pytest.fixture
def pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store each state that can be stored."""
    monkeypatch.setattr(Cost, "pays", property(lambda cost: cost.reading != inf))


class Life:
    """A database with a kept view, in one process after the other."""

    def __init__(self, path: Path, query: Query, **options: Any) -> None:
        self.path, self.query, self.options = path, query, options
        self.held: list[Arc] = []
        self.begin()

    def begin(self) -> None:
        self.db = Database(self.path, **self.options)
        self.arcs: Any = self.db.table(Arc, name="arcs")
        self.view: Any = self.query(self.arcs).materialize("top", kept=True)

    @property
    def state(self) -> Any:
        return self.view.kept_state()

    def commit(self, random: Random, nodes: int = 8) -> None:
        play(self.db, self.arcs, *change(random, self.held, nodes))

    def store(self) -> None:
        """Store the view, as the thread does."""
        views = self.db._engine.journal.kept_views
        for kept in views._views.values():
            kept.due = 0.0
        views.look_after()

    def check(self) -> None:
        assert sorted(self.arcs) == sorted(self.held)
        self.db.verify()

    def kill(self) -> None:
        """Go on with the files as they are now."""
        copy = self.path.with_name(f"{self.path.name}~")
        for end in ("", "-wal"):
            if Path(f"{self.path}{end}").exists():
                shutil.copy(f"{self.path}{end}", f"{copy}{end}")
        self.path = copy
        self.old = self.db
        self.begin()

    def restart(self) -> None:
        self.db.close()
        self.begin()


def closure(arcs: Any) -> Any:
    return RELATIONS["closure"](arcs)


def sums(arcs: Any) -> Any:
    return RELATIONS["sums"](arcs)


@pytest.mark.long
@pytest.mark.usefixtures("pays")
@pytest.mark.parametrize("name", RELATIONS)
def test_views_are_right_after_any_end_and_stay_right(name: str, tmp_path: Path) -> None:
    for seed in seeds(4, 2):
        random = Random(seed)
        durability = random.choice(["commit", "group", "exit"])
        keep, nodes = random.choice([0, 3, 1000]), random.choice([4, 12])
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = folder / "a.db"
        life = Life(path, RELATIONS[name], keep=keep, durability=durability)
        for _ in range(5):
            for _ in range(random.randint(0, 6)):
                life.commit(random, nodes)
                if random.random() < 0.2:
                    life.store()
            if durability == "commit" and random.random() < 0.5:
                life.kill()
                life.check()
            else:
                life.restart()
                life.check()
                assert life.state.state == "read" or name == "greatest"
            for _ in range(3):
                life.commit(random, nodes)
                life.check()
        life.db.close()


@pytest.mark.usefixtures("pays")
@pytest.mark.parametrize("keep", [0, 1000])
def test_commits_since_are_taken_from_the_history(tmp_path: Path, keep: int) -> None:
    life, random = Life(tmp_path / "a.db", closure, keep=keep), Random(1)
    for _ in range(5):
        life.commit(random)
    life.store()
    for _ in range(5):
        life.commit(random)
    life.kill()
    life.check()
    if keep:
        assert (life.state.state, life.state.why, life.state.version) == ("read", "", 5)
    else:
        assert life.state.state == "computed"
        assert "is of version 5, and" in life.state.why
        assert "does not keep all commits since: Database(path, keep=...)" in life.state.why


@pytest.mark.usefixtures("pays")
def test_another_query_is_computed_anew(tmp_path: Path) -> None:
    life = Life(tmp_path / "a.db", lambda arcs: sums(arcs.where(lambda a: a.source > 1)))
    life.commit(Random(1))
    life.db.close()
    life.query = lambda arcs: sums(arcs.where(lambda a: a.source > 2))
    life.begin()
    life.check()
    assert life.state.state == "computed"
    assert life.state.why.startswith("the query, the library or Python is not as it was")
    life.restart()
    assert life.state.state == "read"


class Wide(NamedTuple):
    source: int
    target: int
    more: int = 7


@pytest.mark.usefixtures("pays")
def test_tables_that_are_not_as_they_were_are_computed_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    def opened(row: type, *, is_new: bool = False) -> tuple[Database, Any]:
        db = Database(path)
        if is_new:
            db.drop(db.table(row, name="arcs"))
        arcs: Any = db.table(row, name="arcs", migrate=lambda old: old)
        count = arcs.aggregate(Count())
        return db, count.materialize("top", kept=True)

    with Database(path) as db:
        db.table(Arc, name="arcs").add_all([Arc(1, 2), Arc(2, 3)])
    for row, is_new, state in (
        (Arc, False, "computed"),
        (Arc, False, "read"),
        (Wide, False, "computed"),
        (Wide, False, "read"),
        (Wide, True, "computed"),
    ):
        db, view = opened(row, is_new=is_new)
        assert view.kept_state().state == state
        db.verify()
        db.close()


@pytest.mark.usefixtures("pays")
def test_a_state_that_is_damaged_is_computed_anew_and_told(tmp_path: Path) -> None:
    life, random = Life(tmp_path / "a.db", closure), Random(1)
    for _ in range(10):
        life.commit(random)
    life.db.close()
    told = set()
    for number in range(60):
        copy = tmp_path / f"{number}.db"
        shutil.copy(life.path, copy)
        with sqlite3.connect(copy) as file:
            damage(file, random)
        life.path = copy
        life.begin()
        life.check()
        if life.state.state == "computed":
            assert "cannot be read" in life.state.why or "not as it was" in life.state.why
        told.add(life.state.state)
        life.restart()
        assert life.state.state == "read"
        life.db.close()
    assert told == {"computed", "read"}


def damage(file: sqlite3.Connection, random: Random) -> None:
    """Change some stored bytes of a view, or delete some."""
    (bytes_of,) = file.execute("select sql_name from reactive_tables where name like 'kept-_ top'")
    name = random.choice(["kept top", *bytes_of])
    part, data = random.choice(file.execute(f'select part, data from "{name}"').fetchall())
    torn = bytearray(data)
    for _ in range(random.choice([0, 1, 3])):
        torn[random.randrange(len(torn))] = random.choice(b"0z{\xff\x00")
    if random.random() < 0.2:
        torn = torn[: random.randrange(len(torn))]
    file.execute(f'update "{name}" set data = ? where part = ?', (bytes(torn), part))
    if random.random() < 0.1:
        file.execute(f'delete from "{name}" where part = ?', (part,))


def test_what_takes_longer_to_read_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = sqlite_tables.pack_state
    monkeypatch.setattr(sqlite_tables, "pack_state", lambda state: (pack(state)[0], 1e6))
    with Database(tmp_path / "a.db") as db:
        db.table(Arc, name="arcs").add_all([Arc(n, n + 1) for n in range(20)])
    life = Life(tmp_path / "a.db", closure)
    life.commit(Random(1))
    life.restart()
    assert (life.state.state, life.state.bytes) == ("computed", 0)
    assert life.state.why == "it is computed as fast as it would be read"
    copied: list[Any] = []
    monkeypatch.setattr(sqlite_tables, "pack_state", copied.append)
    life.commit(Random(2))
    life.restart()
    assert life.state.why == "it is computed as fast as it would be read"
    assert not copied


def test_what_takes_longer_to_compute_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = sqlite_tables.pack_state
    monkeypatch.setattr(sqlite_tables, "pack_state", lambda state: (pack(state)[0], 0.0))
    life = Life(tmp_path / "a.db", closure)
    life.commit(Random(1))
    life.restart()
    assert life.state.state == "read"
    assert life.state.why == ""


def test_a_view_of_tables_that_were_filled_later_is_stored(tmp_path: Path) -> None:
    life = Life(tmp_path / "a.db", closure)
    for number in range(200):
        life.held.append(Arc(number, number + 1))
    life.arcs.add_all(life.held)
    life.restart()
    life.check()
    assert life.state.state == "read"


class Card:
    """A row that its fields do not identify."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Card) and self.number == other.number

    def __hash__(self) -> int:
        return self.number


@pytest.mark.usefixtures("pays")
def test_rows_that_cannot_be_stored_are_computed_anew(tmp_path: Path) -> None:
    life = Life(tmp_path / "a.db", lambda arcs: arcs.select(lambda a: Card(a.source)).distinct())
    life.commit(Random(1))
    life.restart()
    life.check()
    assert (life.state.state, life.state.bytes) == ("computed", 0)


@pytest.mark.usefixtures("pays")
def test_explain_says_which_operators_were_read(tmp_path: Path) -> None:
    life = Life(tmp_path / "a.db", lambda arcs: sums(arcs).where(lambda source, *_: source > 1))
    life.commit(Random(1))
    assert "state read" not in life.view.explain(analyze=True)
    life.restart()
    (line,) = [n for n in life.view.explain(analyze=True).splitlines() if "state read" in n]
    assert "aggregate" in line and line.endswith(", state read from the store]")


@pytest.mark.usefixtures("pays")
def test_a_reader_in_another_process_reads_it(tmp_path: Path) -> None:
    life, random = Life(tmp_path / "a.db", closure, keep=100), Random(1)
    for _ in range(5):
        life.commit(random)
    life.store()
    for commits in range(3):
        with Database(life.path, readonly=True) as reader:
            arcs = reader.table(Arc, name="arcs")
            view = closure(arcs).materialize("top", kept=True)
            assert view.kept_state().state == "read"
            for _ in range(commits):
                life.commit(random)
            reader.reread()
            reader.verify()
            assert sorted(view) == sorted(life.view)
            assert "kept top" not in [table.name for table in reader.tables()]
    life.db.close()


@pytest.mark.usefixtures("pays")
def test_a_reader_that_is_behind_computes_it(tmp_path: Path) -> None:
    life, random = Life(tmp_path / "a.db", closure), Random(1)
    life.commit(random)
    with Database(life.path, readonly=True) as reader:
        arcs = reader.table(Arc, name="arcs")
        life.commit(random)
        life.store()
        view = closure(arcs).materialize("top", kept=True)
        assert view.kept_state().state == "computed"
        assert "db.reread()" in view.kept_state().why
        reader.verify()
    life.db.close()


@pytest.mark.usefixtures("pays")
def test_views_that_share_operators_are_each_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    for state in ("computed", "read"):
        with Database(path) as db:
            arcs = db.table(Arc, name="arcs")
            if state == "computed":
                arcs.add_all([Arc(1, 2), Arc(2, 3)])
            one = closure(arcs).materialize("one", kept=True)
            two = closure(arcs).select(lambda a: a.source).materialize("two", kept=True)
            assert one.kept_state().state == state
            if state == "read":
                assert two.kept_state().why == "another view has its operators already"
            arcs.add(Arc(3, len(arcs)))
            db.verify()
            assert len(two) == len(one)


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="in memory cannot be kept"):
        Database().table(Arc, name="arcs").materialize("top", kept=True)
    with Database(tmp_path / "a.db") as db:
        arcs, others = db.table(Arc, name="arcs"), db.table(Arc, name="others", durable=False)
        with pytest.raises(PlanError, match="has a name"):
            arcs.materialize(kept=True)
        with pytest.raises(PlanError, match="'others', which is not durable"):
            arcs.union(others).materialize("top", kept=True)
        view = arcs.materialize("top", kept=True)
        with pytest.raises(PlanError, match="'top' is kept already"):
            arcs.materialize("top", kept=True)
        view.close()
        assert arcs.materialize("top", kept=True).kept_state() is not None
        assert arcs.materialize("other").kept_state() is None


@pytest.mark.usefixtures("pays")
def test_a_table_of_the_name_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with Database(tmp_path / "a.db") as db:
            table = db.table(str, name="kept top")
            arcs = db.table(Arc, name="arcs")
            view = closure(arcs).materialize("top", kept=True)
            assert "there is a table 'kept top'" in view.kept_state().why
            table.add("here")
            arcs.add(Arc(1, len(arcs)))
        assert "has a table 'kept top' of another kind" in caplog.text
    with Database(tmp_path / "a.db") as db:
        assert list(db.table(str, name="kept top")) == ["here", "here"]


def above(arcs: Any, least: int) -> Any:
    return arcs.where(lambda a: a.source > least)


@pytest.mark.usefixtures("pays")
def test_names_of_views_do_not_meet(tmp_path: Path) -> None:
    names = ["top", "top 0", "top 1", "-0 top", "kept top", "", "'\"; drop"]
    for state in ("computed", "read", "read", "read"):
        with Database(tmp_path / "a.db") as db:
            arcs = db.table(Arc, name="arcs")
            views: list[Any] = [
                above(arcs, number).distinct().materialize(name, kept=True)
                for number, name in enumerate(names)
            ]
            assert {view.kept_state().state for view in views} == {state}
            arcs.add_all([Arc(len(arcs), n) for n in range(9)])
            db.verify()


@pytest.mark.usefixtures("pays")
def test_kinds_of_views_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    for _ in range(2):
        with Database(path) as db:
            arcs = db.table(Arc, name="arcs")
            views = [
                arcs.order_by(lambda a: a.source).limit(2).materialize("ordered", kept=True),
                sums(arcs).materialize("groups", kept=True),
                arcs.group_by(lambda a: a.source)
                .aggregate(total=Sum(lambda a: a.target))
                .materialize("named", kept=True),
                db.sql("select source, count(*) as n from arcs group by source").materialize(
                    "sql", kept=True
                ),
                arcs.previous().distinct().materialize("before", kept=True),
                arcs.select(lambda a: 7 // a.target)
                .distinct()
                .materialize("errors", on_error="drop", kept=True),
            ]
            arcs.add_all([Arc(1, len(arcs)), Arc(2, 3)])
            db.verify()
            assert all(view.kept_state() for view in views)


@pytest.mark.usefixtures("pays")
def test_a_store_of_ones_own_keeps_views(tmp_path: Path) -> None:
    store: Store = MemoryStore()
    for state in ("computed", "read"):
        with Database(store=store) as db:
            arcs = db.table(Arc, name="arcs")
            view = closure(arcs).materialize("top", kept=True)
            assert view.kept_state().state == state, view.kept_state()
            arcs.add(Arc(1, len(arcs)))
            db.verify()


@pytest.mark.long
@pytest.mark.usefixtures("pays")
def test_an_end_or_an_error_at_any_call_leaves_a_view_that_is_right(tmp_path: Path) -> None:
    def lived(path: Path, faults: Faults) -> list[Arc]:
        life = Life.__new__(Life)
        life.path, life.query, life.held = path, closure, []
        life.options = {}
        random = Random(3)
        life.db = Database(store=SqliteStore(path, connect=faults.connect), keep=50)
        life.arcs = life.db.table(Arc, name="arcs")
        life.view = closure(life.arcs).materialize("top", kept=True)
        for _ in range(4):
            life.commit(random)
            life.store()
        life.db.close()
        return life.held

    counted = Faults(0, lambda: None)
    lived(tmp_path / "whole.db", counted)
    found = set()
    for at in range(10, counted.calls + 1, 3):
        path, copy = tmp_path / f"{at}.db", tmp_path / f"{at}~.db"

        def end(path: Path = path, copy: Path = copy) -> None:
            for tail in ("", "-wal"):
                if Path(f"{path}{tail}").exists():
                    shutil.copy(f"{path}{tail}", f"{copy}{tail}")

        lived(path, Faults(at, end))
        with Database(copy, keep=50) as db:
            arcs = db.table(Arc, name="arcs")
            view = closure(arcs).materialize("top", kept=True)
            db.verify()
            found.add(view.kept_state().state)
            arcs.add_all([Arc(1, 2), Arc(2, 1)])
            db.verify()
    assert found == {"read", "computed"}


@pytest.mark.usefixtures("pays")
@pytest.mark.parametrize(("method", "at"), [("create", 1), ("create", 2), ("write", 1)])
def test_a_write_that_fails_stops_neither_commits_nor_the_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
    at: int,
) -> None:
    life, random = Life(tmp_path / "a.db", closure), Random(1)
    life.commit(random)
    write, calls = getattr(SqliteStore, method), []

    def refused(store: Any, *arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == at:
            raise DurabilityError("database or disk is full")
        write(store, *arguments)

    monkeypatch.setattr(SqliteStore, method, refused)
    life.store()
    assert "the state of view 'top' is not stored" in caplog.text
    life.commit(random)
    life.kill()
    life.check()
    assert life.state.why == "nothing is stored of it yet"
    life.old.close()
    life.restart()
    life.check()
    assert life.state.state == "read"
    life.db.close()


@pytest.mark.usefixtures("pays")
def test_a_state_is_of_one_version_while_others_commit(tmp_path: Path) -> None:
    life, random = Life(tmp_path / "a.db", closure, keep=10_000), Random(1)

    def store() -> None:
        for _ in range(30):
            life.store()

    thread = Thread(target=store)
    thread.start()
    while thread.is_alive():
        life.commit(random)
    thread.join()
    life.kill()
    assert life.state.state == "read"
    life.check()
    life.old.close()
    life.db.close()
