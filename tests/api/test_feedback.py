"""`db.feedback` beside a recursion over the commits that is kept by hand."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import (
    Count,
    Database,
    OffloadError,
    PlanError,
    Sum,
    TableError,
    TransactionError,
    live,
)
from reactive.engine.dataflow.schedule import LATEST
from reactive.engine.transactions.prepared import PreparedTransaction
from reactive.engine.transactions.transaction import Transaction
from tests.borders.offload.elsewhere import Elsewhere
from tests.budget import seeds, stride
from tests.moments import Moments
from tests.thresholds import drawn, thresholds


class Load(NamedTuple):
    host: str
    value: float


class Refused(Exception):
    """Exception raised by a callable, or between the phases."""


def refuse() -> None:
    raise Refused


def accepted(load: Load) -> float:
    if load.value == 99:
        raise Refused
    return load.value


# Definitions, and what they are after a commit, from the rows before it and those of `loads`.

Rows = Counter[Any]


def smooth_of(loads: Any, y: Any) -> Any:
    """The sum of the loads of a host, and half of what there was: it decays."""
    halves = y.previous().select(lambda old: Load(old.host, old.value / 2))
    rows = loads.union_all(halves.where(lambda old: old.value > 0.1))
    sums = rows.group_by(lambda load: load.host).aggregate(Sum(lambda load: load.value))
    return sums.select(lambda host, value: Load(host, value))


def smooth_after(before: Rows, loads: Rows) -> Rows:
    sums: dict[str, float] = {}
    for load, n in loads.items():
        sums[load.host] = sums.get(load.host, 0) + n * load.value
    for old in before.elements():
        if old.value / 2 > 0.1:
            sums[old.host] = sums.get(old.host, 0) + old.value / 2
    return Counter(Load(*pair) for pair in sums.items())


def seen_of(loads: Any, y: Any) -> Any:
    """All hosts that there ever were."""
    return loads.select(lambda load: load.host).union(y.previous())


def seen_after(before: Rows, loads: Rows) -> Rows:
    return Counter({*before, *(load.host for load in loads)})


def commits_of(loads: Any, y: Any) -> Any:
    """The number of commits, as copies of a row."""
    return y.previous().union_all(loads.aggregate(Count()).select(lambda n: "commit"))


def commits_after(before: Rows, loads: Rows) -> Rows:
    return before + Counter(["commit"])


def turns_of(loads: Any, y: Any) -> Any:
    """The loads, if there were none before: rows come and go."""
    return loads.anti_join(y.previous(), on=lambda load, old: load.host == old.host)


def turns_after(before: Rows, loads: Rows) -> Rows:
    hosts = {old.host for old in before}
    return Counter({load: n for load, n in loads.items() if load.host not in hosts})


def still_of(loads: Any, y: Any) -> Any:
    """Comprehensions name the rows before, too: the hosts of two commits."""
    before = y.previous()
    return live(load for load in loads if not any(load.host == old.host for old in before))


After = Callable[[Rows, Rows], Rows]
DEFINITIONS: dict[str, tuple[Any, Callable[[Any, Any], Any], After]] = {
    "smooth": (Load, smooth_of, smooth_after),
    "seen": (str, seen_of, seen_after),
    "commits": (str, commits_of, commits_after),
    "turns": (Load, turns_of, turns_after),
    "turns by loops": (Load, still_of, turns_after),
}


def made_by_name(db: Database, loads: Any, name: str) -> Any:
    row_type, step, _ = DEFINITIONS[name]
    return db.feedback(row_type, lambda y: step(loads, y), name=name)


class Side:
    """Tables, recurrences over them, and the rows that these are to have."""

    def __init__(self, *, names: Any = DEFINITIONS, commits: int = 0, **options: Any) -> None:
        self.db = Database(**options)
        self.loads: Any = self.db.table(Load, name="loads")
        self.other: Any = self.db.table(int, name="other")
        self.guard = self.loads.select(accepted).materialize()
        self.views: dict[str, tuple[Any, Any]] = {}
        self.expected: dict[str, tuple[Rows, Rows]] = {}
        self.version = self.db.version
        for name in names:
            after = DEFINITIONS[name][2]
            made = made_by_name(self.db, self.loads, name)
            self.views[name] = made.materialize(), made.previous().materialize()
            before = Rows()
            self.expected[name] = before, after(before, Counter(self.loads))
        assert self.db.version == self.version
        for _ in range(commits):
            self.add("warm", 1.0)
            self.loads.remove(Load("warm", 1.0))
            self.noted()

    def add(self, host: str, value: float) -> None:
        self.loads.add(Load(host, value))
        self.noted()

    def noted(self) -> None:
        """Record the commit, if there was one."""
        assert self.db.version - self.version in (0, 1)
        if self.db.version > self.version:
            self.version = self.db.version
            for name, (_, now) in self.expected.items():
                self.expected[name] = now, DEFINITIONS[name][2](now, Counter(self.loads))

    def check(self, where: Any = "") -> None:
        for name, (view, previous) in self.views.items():
            before, now = self.expected[name]
            assert (Counter(view), Counter(previous)) == (now, before), (name, where)
        self.db.verify()


@pytest.mark.parametrize("seed", seeds(30, 5))
def test_rows_after_each_commit_are_those_of_the_recursion(seed: int) -> None:
    """Statements, transactions, commits of other tables, and commits that fail."""
    random = Random(seed)
    lowest = {name: n for name, n in drawn(random).items() if name.startswith("reactive.")}
    with thresholds(lowest if seed % 2 else {}):
        side = Side(optimize=random.random() < 0.8)
        for _ in range(30):
            drawn_commit(random, side)
            side.noted()
            side.check(seed)


def drawn_commit(random: Random, side: Side) -> None:
    kind = random.randrange(8)
    with suppress(Refused):
        if kind == 0:
            side.other.add(random.randrange(9))
        elif kind == 1:
            with side.db.transaction():
                drawn_statement(random, side)
                refuse()
        elif kind == 2:
            side.loads.add(Load("a", 99.0))
        elif kind == 3:
            with side.db.transaction():
                side.loads.add(Load("a", 3.0))
                side.loads.remove(Load("a", 3.0))
        elif kind == 4:
            with side.db.transaction():
                for _ in range(random.randrange(4)):
                    drawn_statement(random, side)
        else:
            drawn_statement(random, side)


def drawn_statement(random: Random, side: Side) -> None:
    load = Load(random.choice("abc"), float(random.randrange(4)))
    if random.random() < 0.4:
        side.loads.discard(load)
    else:
        side.loads.add(load)


# Commits that are undone, interrupted, or made in two phases.


def add(side: Side) -> None:
    side.loads.add(Load("a", 3.0))


def other(side: Side) -> None:
    side.other.add(1)


def together(side: Side) -> None:
    with side.db.transaction():
        side.loads.add(Load("b", 3.0))
        side.other.add(1)


def fails(side: Side) -> None:
    with suppress(Refused):
        side.loads.add(Load("a", 99.0))


def in_two_phases(side: Side) -> None:
    with Transaction(side.db._engine, int):
        side.loads.add(Load("a", 2.0))


def refused_between(side: Side) -> None:
    with suppress(Refused), Transaction(side.db._engine, refuse):
        side.loads.add(Load("a", 2.0))


def prepared(side: Side) -> None:
    with PreparedTransaction(side.db._engine) as transaction:
        side.loads.add(Load("c", 2.0))
        transaction.prepare()
        transaction.publish()


def prepared_and_undone(side: Side) -> None:
    with PreparedTransaction(side.db._engine) as transaction:
        side.loads.add(Load("c", 2.0))
        transaction.prepare()
        side.check("prepared")


ACTS = [
    *(add, other, together, fails, in_two_phases, refused_between, prepared, prepared_and_undone),
]


@pytest.mark.parametrize("commits", [0, LATEST])
def test_a_commit_that_does_not_stand_is_no_step(commits: int) -> None:
    side = Side(commits=commits)
    for act in [*ACTS, *reversed(ACTS)]:
        act(side)
        side.noted()
        side.check(act.__name__)


EVERY = stride(7)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", range(len(ACTS) * 2))
def test_an_interrupt_at_any_moment_is_a_step_or_none(number: int) -> None:
    act, commits = ACTS[number // 2], LATEST * (number % 2)
    moment, where = number % EVERY, "the first"
    while where:
        side = Side(names=["smooth", "commits"], commits=commits)
        with Moments(moment) as moments, suppress(KeyboardInterrupt):
            act(side)
        where = moments.where or ""
        with side.db.transaction():
            pass
        side.noted()
        side.check((moment, where))
        side.other.add(7)
        side.noted()
        side.check((moment, where))
        moment += EVERY


def test_a_commit_that_is_repeated_with_other_plans_is_one_step() -> None:
    """Sums of pairs take the place of the sums of a side when a NaN comes."""
    db = Database()
    table, other = db.table(tuple, name="table"), db.table(tuple, name="other")
    sums = (
        table.join(other, on=lambda a, b: a[0] == b[0])
        .group_by(lambda a, b: a[0])
        .aggregate(Sum(lambda a, b: a[1] * b[1]))
        .select(lambda k, total: (k, total))
    )
    steps = db.feedback(
        int, lambda y: y.previous().select(lambda n: n + 1).union(sums.select(lambda p: 0))
    ).materialize()
    view: Any = sums.materialize()
    table.add((1, 2))
    other.add((1, 3))
    assert sorted(steps) == [0]
    table.add((1, float("nan")))
    assert sorted(steps) == [0, 1] and len(view) == 1
    other.add((2, 1))
    assert sorted(steps) == [0, 1, 2]
    db.verify()


def test_transactions_of_tasks_that_commit_beside_each_other() -> None:
    side = Side()

    async def one(ready: asyncio.Event, go: asyncio.Event) -> None:
        async with side.db.transaction():
            side.loads.add(Load("a", 3.0))
            ready.set()
            await go.wait()
            side.loads.add(Load("b", 1.0))
        side.noted()
        side.check("the first task")

    async def both() -> None:
        ready, go = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(one(ready, go))
        await ready.wait()
        side.other.add(1)
        side.noted()
        side.check("a statement beside")
        with side.db.transaction():
            side.loads.add(Load("c", 2.0))
        side.noted()
        side.check("a transaction beside")
        go.set()
        await task

    asyncio.run(both())


def test_what_subscribers_write_is_a_step_of_its_own() -> None:
    side = Side()

    def write(delta: Any) -> None:
        side.noted()
        if Load("a", 3.0) in delta.added:
            side.other.add(1)
            side.noted()

    with side.loads.subscribe(write):
        side.loads.add(Load("a", 3.0))
    side.check()
    assert side.db.version == 2


# Files.


def test_a_reopened_file_goes_on_where_it_was(tmp_path: Path) -> None:
    """The rows of the commit before are stored in the commit; opening is no step."""
    path = tmp_path / "db"
    before: dict[str, Any] = {}
    expected: dict[str, tuple[Rows, Rows]] = {}
    for run in range(4):
        side = Side(path=path)
        if run:
            side.expected, side.version = expected, side.db.version
        side.check(run)
        assert not before or {n: Counter(v) for n, (v, _) in side.views.items()} == before
        for value in range(3):
            side.add("ab"[run % 2], float(value))
            side.check((run, value))
        expected = side.expected
        before = {name: Counter(view) for name, (view, _) in side.views.items()}
        side.views.clear()
        side.db.close()


def test_the_start_is_of_a_new_file_only(tmp_path: Path) -> None:
    def counted(db: Database) -> Any:
        return db.feedback(
            int, lambda y: y.previous().select(lambda n: n + 1), start=[10], name="steps"
        ).materialize()

    db = Database(tmp_path / "db")
    other = db.table(int, name="other")
    steps = counted(db)
    assert list(steps) == [11]
    other.add(1)
    assert list(steps) == [12]
    db.close()
    db = Database(tmp_path / "db")
    assert list(counted(db)) == [12]
    reader = Database(tmp_path / "db", readonly=True)
    reading = counted(reader)
    other = db.table(int, name="other")
    other.add(2)
    assert list(reading) == [12]
    reader.reread()
    assert list(reading) == [13]
    reader.close()
    db.close()


def test_its_rows_are_stored_as_it_is_said(tmp_path: Path) -> None:
    """`durable=False` begins again in a new process; `codec=` writes what has no plain form."""
    found: list[tuple[list[str], list[int]]] = []
    for _ in range(2):
        with Database(tmp_path / "db") as db:
            texts = db.table(str, name="texts")

            def patterns(y: Any, texts: Any = texts) -> Any:
                return y.previous().union(texts.select(lambda text: re.compile(text)))

            codec = (lambda pattern: pattern.pattern, re.compile)
            kept = db.feedback(re.Pattern, patterns, name="kept", codec=codec).materialize()
            lost = db.feedback(
                int, lambda y: y.previous().select(lambda n: n + 1), start=[0], durable=False
            ).materialize()
            texts.clear()
            texts.add("ab*" if not found else "c")
            found.append((sorted(p.pattern for p in kept), list(lost)))
    assert found == [(["ab*"], [2]), (["ab*", "c"], [3])]


# Work, and what is kept.


def test_a_commit_costs_what_the_one_before_has_changed() -> None:
    touched = []
    for size in (20, 2_000):
        db = Database()
        loads = db.table(Load, name="loads")
        loads.add_all([Load(str(n), 1.0) for n in range(size)])
        seen = made_by_name(db, loads, "seen").materialize()
        loads.add(Load("a", 1.0))
        before = seen.stats().touched
        loads.add(Load("b", 1.0))
        loads.add(Load("b", 2.0))
        loads.remove(Load("a", 1.0))
        touched.append(seen.stats().touched - before)
        assert len(seen) == size + 2
    assert touched[0] == touched[1]


def test_it_goes_on_without_a_view_until_it_is_closed() -> None:
    db = Database()
    x = db.table(int, name="x")
    largest = db.feedback(int, lambda y: x.union(y.previous()), name="all")
    for n in range(3):
        x.add(n)
        x.remove(n)
    view = largest.materialize()
    assert sorted(view) == [0, 1, 2]
    with pytest.raises(PlanError, match="it is read by"):
        largest.close()
    x.add(3)
    assert sorted(view) == [0, 1, 2, 3]
    view.close()
    largest.close()
    largest.close()
    assert [table.name for table in db.tables()] == ["x"] and not db.views()
    assert db._engine.feedback is None
    again = db.feedback(int, lambda y: x.union(y.previous()), name="all").materialize()
    assert sorted(again) == [3]


def test_recurrences_of_recurrences() -> None:
    db = Database()
    x = db.table(int, name="x")
    one = db.feedback(int, lambda y: x.union(y.previous()), name="one")
    two = db.feedback(int, lambda y: one.previous().union(y.previous()), name="two")
    views = [one.materialize(), two.materialize(), two.previous().materialize()]
    x.add(1)
    x.update(1, 2)
    x.remove(2)
    assert [sorted(view) for view in views] == [[1, 2], [1, 2], [1]]
    x.add(3)
    assert [sorted(view) for view in views] == [[1, 2, 3], [1, 2], [1, 2]]
    db.verify()


# Errors.


def test_a_row_that_cannot_be_fed_back_undoes_the_commit_that_makes_it() -> None:
    db = Database(strict=True)
    x = db.table(Load, name="x")
    y = db.feedback(int, lambda y: x.select(lambda load: load.value).union(y.previous()))  # type: ignore[arg-type, return-value]
    view = y.materialize()
    with pytest.raises(TableError, match=r"feedback 'int' makes 0\.5, which cannot be fed back"):
        x.add(Load("a", 0.5))
    assert not view and not x
    x.add(Load("a", 1))
    assert list(view) == [1]


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "itself": (lambda x, y: y, "reads the rows that it defines"),
    "a cycle in a union": (lambda x, y: x.union(y), "reads the rows that it defines"),
    "a cycle in a join": (lambda x, y: x.join(y), r"y.previous\(\)"),
    "a cycle in a method": (lambda x, y: y.where(lambda n: n > 1), r"y.previous\(\)"),
    "a cycle in a loop": (lambda x, y: live(n for n in y), r"y.previous\(\)"),
    "a cycle in a condition": (
        lambda x, y: x.where(lambda n: n in y),
        r"y.previous\(\)",
    ),
    "a number": (lambda x, y: 3, "returned 3, which is no relation"),
    "an order": (lambda x, y: x.order_by(lambda n: n), "has an order"),
    "two bindings": (lambda x, y: x.join(x), "has 2 bindings"),
    "negative weights": (lambda x, y: x.negate(), "negative weight"),
    "another database": (lambda x, y: Database().table(int), "of another database"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    step, message = REFUSED[name]
    db = Database()
    x = db.table(int, name="x")
    with pytest.raises(PlanError, match=message):
        db.feedback(int, lambda y: step(x, y))
    assert db.tables() == [x] and not db.views() and db._engine.feedback is None
    x.add(1)


def test_where_it_cannot_be_made() -> None:
    db = Database(offload=Elsewhere())
    x = db.table(int, name="x")
    with pytest.raises(TransactionError, match="inside a transaction"), db.transaction():
        db.feedback(int, lambda y: x)
    with pytest.raises(PlanError, match="takes one parameter"):
        db.feedback(int, lambda y, z: x)  # type: ignore[arg-type, misc]
    distinct = x.distinct().materialize()
    distinct.offload()
    with pytest.raises(OffloadError, match="changes at flushes and not at commits"):
        db.feedback(int, lambda y: x.distinct())
    distinct.recall()
    made = db.feedback(int, lambda y: x.distinct()).materialize()
    for view in (distinct, made):
        with pytest.raises(OffloadError, match=r"feedback reads the rows of each commit"):
            view.offload()
