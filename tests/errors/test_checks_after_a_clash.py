"""Views under a policy are planned again, with checks of equality, when values in them clash.

origin of the clash x query x policy              the commit stands, both rows are errors
the clash leaves                                  the rows return, the errors disappear
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from optimizer.rewriting.equality_checks import PolicyQuery
from reactive import (
    Batch,
    Collect,
    Count,
    CountDistinct,
    Database,
    Delta,
    PlanError,
    Sum,
    fixpoint,
)


class Money:
    """An amount that compares with amounts of its currency alone."""

    def __init__(self, amount: int, currency: str) -> None:
        self.amount, self.currency = amount, currency

    def __repr__(self) -> str:
        return f"{self.amount} {self.currency}"

    def __hash__(self) -> int:
        return hash(self.amount)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Money) or other.currency != self.currency:
            raise ValueError(f"no rate for {self!r} and {other!r}")
        return self.amount == other.amount


class Sale(NamedTuple):
    id: int
    amount: int
    currency: str
    tag: Any = None


class Other(NamedTuple):
    id: int
    amount: int
    currency: str


def money(row: Any) -> Money:
    return Money(row.amount, row.currency)


EURO, POUND = Sale(1, 7, "euro"), Sale(2, 7, "pound")
ELSE = Sale(3, 8, "euro")
QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "group_by": lambda s, o: s.group_by(money).aggregate(Count(), Sum(lambda r: r.id)),
    "distinct": lambda s, o: s.select(money).distinct(),
    "select": lambda s, o: s.select(lambda r: (r.id > 0, money(r))),
    "join": lambda s, o: s.join(o, left_key=money, right_key=money),
    "join on": lambda s, o: s.join(o, on=lambda a, b: money(a) == money(b)),
    "anti_join": lambda s, o: s.anti_join(o, left_key=money, right_key=money),
    "union": lambda s, o: s.select(money).union(o.select(money)),
    "CountDistinct": lambda s, o: s.group_by("tag").aggregate(CountDistinct(money)),
    "top": lambda s, o: s.group_by(money).top(1, by="id"),
    "limit": lambda s, o: (
        s.group_by(money).aggregate(Count()).order_by(lambda m, n: repr(m)).limit(2)
    ),
    "each": lambda s, o: s.group_by("tag").each(lambda g: g.select(money).distinct()),
    "nest": lambda s, o: s.group_by(money).aggregate(Collect(lambda r: r.id)),
    "fixpoint": lambda s, o: fixpoint(
        lambda path: s.select(lambda r: (money(r), 0)).union(
            path.where(lambda p: p[1] < 2).select(lambda p: (p[0], p[1] + 1))
        )
    ),
}


def shown(view: Any) -> Counter[str]:
    return Counter(map(repr, view))


def alone(query: Callable[[Any, Any], Any], rows: list[Sale], others: list[Other]) -> Counter[str]:
    """Return the rows of a query over some rows, which do not clash."""
    db = Database()
    sales, of = db.table(Sale), db.table(Other)
    sales.add_all(rows)
    of.add_all(others)
    return shown(query(sales, of).materialize())


def told(deltas: list[Any]) -> Counter[str]:
    """Return the rows that subscribers know after some deltas."""
    known: Counter[str] = Counter()
    for delta in deltas:
        if delta.is_snapshot:
            known.clear()
        for row, weight in delta.items():
            known[repr(row)] += weight
    return +known


class Plans(logging.Handler):
    """Count the views that were planned again."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "is planned again" in record.getMessage()


@pytest.fixture
def plans() -> Iterator[Plans]:
    log, found = logging.getLogger("reactive"), Plans()
    level = log.level
    log.addHandler(found)
    log.setLevel(logging.INFO)
    yield found
    log.removeHandler(found)
    log.setLevel(level)


def by_add(db: Any, sales: Any) -> None:
    sales.add(POUND)


def by_add_all(db: Any, sales: Any) -> None:
    sales.add_all([POUND, *(Sale(n, 100 + n, "euro") for n in range(4, 50))])
    sales.remove_all([Sale(n, 100 + n, "euro") for n in range(4, 50)])


def by_update(db: Any, sales: Any) -> None:
    sales.add(Sale(2, 9, "pound"))
    sales.update(Sale(2, 9, "pound"), POUND)


def by_transaction(db: Any, sales: Any) -> None:
    with db.transaction():
        sales.add(Sale(9, 9, "pound"))
        next(t for t in db.tables() if t.name == "others").add(Other(9, 1, "yen"))
        sales.add(POUND)
        sales.remove(Sale(9, 9, "pound"))
    next(t for t in db.tables() if t.name == "others").remove(Other(9, 1, "yen"))


def by_replace_all(db: Any, sales: Any) -> None:
    sales.replace_all([EURO, ELSE, POUND])


def by_ingest(db: Any, sales: Any) -> None:
    source = db.ingest(None, sales, name="pushed")
    source.take(Batch(origins={"a": [POUND]}))
    source.stop()


WAYS = [by_add, by_add_all, by_update, by_transaction, by_replace_all, by_ingest]


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_clash_comes_and_leaves(name: str, policy: Any, way: Any, plans: Plans) -> None:
    query, db = QUERIES[name], Database()
    sales, others = db.table(Sale, name="sales"), db.table(Other, name="others")
    others.add(Other(1, 8, "euro"))
    view = query(sales, others).materialize("view", on_error=policy)
    deltas: list[Delta[Any]] = []
    errors: list[Delta[Any]] = []
    listening = view.subscribe(deltas.append, snapshot=True), view.errors.subscribe(errors.append)
    sales.add_all([EURO, ELSE])
    assert not plans.count
    way(db, sales)
    assert plans.count
    rest = [Other(1, 8, "euro")]
    assert shown(view) == alone(query, [ELSE], rest)
    assert {error.row.id for error in view.errors} == {1, 2}
    for each in (view, view.errors):
        each.verify()
    was = plans.count
    (second,) = [row for row in sales if row.id == 2]
    sales.remove(second)
    assert shown(view) == alone(query, [EURO, ELSE], rest) and not list(view.errors)
    sales.add(POUND)
    assert plans.count == was and len(view.errors) == 2
    sales.remove(EURO)
    assert shown(view) == alone(query, [ELSE, POUND], rest) and not list(view.errors)
    for each in (view, view.errors):
        each.verify()
    assert told(deltas) == shown(view) and not told(errors)
    sales.clear()
    others.clear()
    assert not view.snapshot()
    assert all(not each.closed for each in listening)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_clash_is_there_before_the_view(name: str, policy: Any) -> None:
    query, db = QUERIES[name], Database()
    sales, others = db.table(Sale, name="sales"), db.table(Other, name="others")
    sales.add_all([EURO, POUND, ELSE])
    view = query(sales, others).materialize(on_error=policy)
    assert shown(view) == alone(query, [ELSE], [])
    assert {error.row.id for error in view.errors} == {1, 2}
    view.verify()
    if "join" not in name:
        with pytest.raises(ValueError, match="no rate"):
            query(sales, others).materialize()
    view.verify()
    again = query(sales, others).materialize(on_error=policy)
    assert shown(again) == shown(view)
    again.verify()


def test_subscribers_hear_one_delta_of_what_has_changed() -> None:
    db = Database()
    sales = db.table(Sale, name="sales")
    view = sales.group_by(money).aggregate(Count()).materialize(on_error="drop")
    sales.add_all([EURO, ELSE])
    deltas: list[Delta[Any]] = []
    listening = view.subscribe(deltas.append)
    sales.add(POUND)
    (delta,) = deltas
    assert not delta.is_snapshot and delta.version == db.version
    assert [(repr(row), weight) for row, weight in delta.items()] == [("(7 euro, 1)", -1)]
    assert not listening.closed


def test_two_views_that_clash_at_once(plans: Plans) -> None:
    db = Database()
    sales = db.table(Sale, name="sales")
    groups = sales.group_by(money).aggregate(Count()).materialize("groups", on_error="drop")
    values = sales.select(money).distinct().materialize("values", on_error="null")
    same = sales.group_by(money).aggregate(Count()).materialize("same", on_error="drop")
    sales.add(EURO)
    version = db.version
    sales.add(POUND)
    assert db.version == version + 1 and plans.count == 3
    for view in (groups, values, same):
        assert not view.snapshot() or view is values
        assert {error.row.id for error in view.errors} == {1, 2}
        view.verify()


def test_a_view_without_a_policy_still_refuses_the_commit(plans: Plans) -> None:
    db = Database()
    sales = db.table(Sale, name="sales")
    others = db.table(Other, name="others")
    strict = sales.group_by(money).aggregate(Count()).materialize("strict")
    view = sales.select(money).distinct().materialize("view", on_error="drop")
    over = view.select(lambda m: m.currency).materialize("over")
    sales.add(EURO)
    for _ in range(3):
        with pytest.raises(ValueError, match="no rate"):
            sales.add(POUND)
        with pytest.raises(ValueError, match="no rate"), db.transaction():
            others.add(Other(1, 1, "yen"))
            sales.add(POUND)
        assert plans.count <= 2 and not len(others) and len(sales) == 1
        for each in (strict, view, over):
            each.verify()
            assert len(each) == 1
    strict.close()
    sales.add(POUND)
    assert not list(view) and not list(over) and len(view.errors) == 2


def test_a_shared_step_of_a_view_without_a_policy_plans_nothing_again(plans: Plans) -> None:
    db = Database()
    sales = db.table(Sale, name="sales")
    view = sales.where(lambda r: r.amount > 0).materialize("view", on_error="drop")
    strict = view.group_by(money).aggregate(Count()).materialize("strict")
    sales.add(EURO)
    with pytest.raises(ValueError, match="no rate"):
        sales.add(POUND)
    assert not plans.count
    strict.verify()
    view.verify()


def test_views_over_views_and_relations_go_on() -> None:
    db = Database()
    sales = db.table(Sale, name="sales")
    view = sales.group_by(money).aggregate(n=Count()).materialize("view", on_error="drop")
    relation = view.where(lambda r: r.n > 0)
    early = relation.materialize("early")
    ordered = view.order_by(lambda r: repr(r.key)).materialize("ordered")
    nested = view.select(lambda r: (repr(r.key), r.n)).materialize("nested")
    total = db.sql("select sum(n) as n from view", view=view).materialize("total")
    deltas: list[Any] = []
    listening = [early.subscribe(deltas.append), relation.subscribe(deltas.append)]
    errors = view.errors.select(lambda e: e.row.id).materialize("errors")
    sales.add_all([EURO, ELSE])
    sales.add(POUND)
    late = relation.materialize("late")
    every = (view, early, ordered, nested, total, errors, late, view.errors)
    for each in every:
        each.verify()
    assert [len(each) for each in every] == [1, 1, 1, 1, 1, 2, 1, 2]
    assert len(deltas) == 4
    sales.remove(EURO)
    sales.add(Sale(4, 9, "yen"))
    for each in every:
        each.verify()
    assert [len(each) for each in every] == [3, 3, 3, 3, 1, 0, 3, 0]
    assert total.value.n == 3
    assert all(not each.closed for each in listening)
    sales.clear()
    assert not list(late) and not list(ordered)


def test_a_policy_over_a_view_with_a_policy() -> None:
    db = Database()
    sales = db.table(Sale, name="sales")
    inner = sales.where(lambda r: r.amount < 100).materialize("inner", on_error="drop")
    outer = inner.group_by(money).aggregate(Count()).materialize("outer", on_error="drop")
    top = outer.select(lambda m, n: repr(m)).distinct().materialize("top", on_error="null")
    sales.add_all([EURO, ELSE])
    sales.add(POUND)
    assert len(inner) == 3 and len(outer) == 1 and list(top) == ["8 euro"]
    for view in (inner, outer, top, outer.errors):
        view.verify()
    assert not list(inner.errors) and len(outer.errors) == 2


def test_a_view_that_is_gone_goes_by_its_policy_in_queries_over_it() -> None:
    db = Database()
    sales = db.table(Sale, name="sales")
    view = sales.group_by(money).aggregate(Count()).materialize("view", on_error="drop")
    over = view.select(lambda m, n: repr(m)).materialize("over")
    view.close()
    sales.add_all([EURO, ELSE])
    sales.add(POUND)
    assert list(over) == ["8 euro"]
    over.verify()


SQL = {
    "join": "select s.id, o.id from sales s join others o on s.x = o.x",
    "comma": "select s.id, o.id from sales s, others o where s.x = o.x",
    "three": "select a.id from sales a, others b, sales c where a.x = b.x and b.x = c.x",
    "one side": "select s.id from sales s, others o where s.x = o.x and s.id > 3 and o.id > 1",
    "exists": "select id from sales s where exists (select 1 from others o where o.x = s.x)",
    "not exists": "select id from sales s where not exists "
    "(select 1 from others o where o.x = s.x)",
    "in": "select id from sales where x in (select x from others)",
    "group": "select x, count(*) from sales group by x",
    "distinct": "select distinct x from sales",
    "union": "select x from sales union select x from others",
    "except": "select x from sales except select x from others",
    "count distinct": "select count(distinct x) from sales",
    "having": "select x from sales group by x having count(*) > 0",
}


class Any1(NamedTuple):
    id: int
    x: Any


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", SQL)
def test_sql_over_any_fields_takes_values_beside_plain_ones(
    name: str, seed: int, policy: Any
) -> None:
    chance, db = Random(seed), Database()
    tables = [db.table(Any1, name="sales"), db.table(Any1, name="others")]
    relation = db.sql(SQL[name])
    view = relation.materialize("view", on_error=policy)
    deltas: list[Any] = []
    listening = view.subscribe(deltas.append, snapshot=True)
    rows: list[tuple[Any, Any1]] = []
    for number in range(40):
        if rows and chance.random() < 0.4:
            table, row = rows.pop(chance.randrange(len(rows)))
            table.remove(row)
        else:
            amount = chance.randrange(4)
            x = chance.choice([amount, amount, Money(amount, "euro"), None])
            rows.append((chance.choice(tables), Any1(number, x)))
            rows[-1][0].add(rows[-1][1])
        view.verify()
        view.errors.verify()
        assert told(deltas) == shown(view)
    while rows:
        table, row = rows.pop()
        table.remove(row)
    view.verify()
    assert not list(view.errors) and not listening.closed


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_random_histories_of_many_views(seed: int) -> None:
    chance, db = Random(seed), Database()
    sales, others = db.table(Sale, name="sales"), db.table(Other, name="others")
    names = chance.sample(sorted(QUERIES), 5)
    views = [
        QUERIES[name](sales, others).materialize(name, on_error=chance.choice(["drop", "null"]))
        for name in names
    ]
    heard: list[list[Any]] = [[] for _ in views]
    listening = [
        view.subscribe(each.append, snapshot=True) for view, each in zip(views, heard, strict=True)
    ]
    rows: list[Any] = []
    for number in range(30):
        with db.transaction():
            for place in range(chance.randrange(1, 3)):
                if rows and chance.random() < 0.4:
                    row = rows.pop(chance.randrange(len(rows)))
                    (sales if isinstance(row, Sale) else others).remove(row)
                    continue
                of = chance.choice([Sale, Other])
                amount = number * 10 + place, chance.randrange(4)
                rows.append(of(*amount, chance.choice(["euro", "euro", "euro", "pound"])))
                (sales if of is Sale else others).add(rows[-1])
        for view, deltas in zip(views, heard, strict=True):
            view.verify()
            view.errors.verify()
            assert told(deltas) == shown(view)
    assert all(not each.closed for each in listening)


def test_a_durable_database_is_opened_again(tmp_path: Path) -> None:
    path = str(tmp_path / "sales.db")
    for kept in (False, True, True):
        with Database(path) as db:
            sales = db.table(Sale, name="sales", key="id")
            query = sales.group_by(money).aggregate(Count())
            view = query.materialize("view", on_error="drop", kept=kept)
            view.verify()
            for row in (EURO, ELSE, POUND):
                sales.upsert(row)
            assert [repr(row) for row in view] == ["(8 euro, 1)"] and len(view.errors) == 2
            view.verify()
            sales.delete(2)
            assert len(view) == 2 and not list(view.errors)
            sales.upsert(POUND)
            view.verify()


def test_writers_and_readers_of_many_threads() -> None:
    db = Database()
    sales = db.table(Sale, name="sales")
    view = sales.group_by(money).aggregate(Count()).materialize("view", on_error="drop")
    failures: list[BaseException] = []
    is_over = threading.Event()

    def write(first: int) -> None:
        chance = Random(first)
        try:
            for number in range(60):
                row = Sale(first + number, chance.randrange(5), chance.choice(["euro", "pound"]))
                sales.add(row)
                if chance.random() < 0.5:
                    sales.remove(row)
        except BaseException as error:
            failures.append(error)

    def read() -> None:
        try:
            while not is_over.is_set():
                assert all(count > 0 for _, count in view)
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(n * 1000,)) for n in range(3)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    for thread in readers:
        thread.join()
    assert not failures
    view.verify()
    view.errors.verify()


def test_a_watched_file_brings_the_clash(tmp_path: Path) -> None:
    path = tmp_path / "sales.jsonl"
    lines = [json.dumps(Other(n, 7, of)._asdict()) for n, of in ((1, "euro"), (2, "pound"))]
    path.write_text(lines[0] + "\n")
    with Database() as db:
        watched: Any = db.watch(path, Other, name="watched", key="id", poll=0.01)
        view = watched.group_by(money).aggregate(Count()).materialize(on_error="drop")
        path.write_text("\n".join([*lines, ""]))
        watched.catch_up(timeout=60)
        assert not list(view) and len(view.errors) == 2
        path.write_text(lines[1] + "\n")
        watched.catch_up(timeout=60)
        assert len(view) == 1 and not list(view.errors)
        view.verify()


def test_over_a_table_that_is_not_stored_the_commit_is_refused() -> None:
    db = Database()
    sales = db.table(Sale, name="sales", stored=False)
    view = sales.group_by(money).aggregate(Count()).materialize("view", on_error="drop")
    sales.add(EURO)
    with pytest.raises(ValueError, match="no rate"):
        sales.add(POUND)
    assert len(view) == 1
    sales.add(ELSE)
    assert len(view) == 2


def test_what_raises_again_is_raised() -> None:
    """A recursion cannot retract rows that it has used: computed values clash once more."""
    db = Database()
    sales: Any = db.table(Sale, name="sales")
    view = fixpoint(
        lambda path: sales.select(lambda r: (r.amount, r.currency)).union(
            path.where(lambda p: p[0] is not None and p[0] != 0).select(
                lambda p: (0, Money(7, p[1]) if isinstance(p[1], str) else p[1])
            )
        )
    ).materialize("view", on_error="drop")
    sales.add(EURO)
    before = shown(view)
    for _ in range(2):
        with pytest.raises(ValueError, match="no rate"):
            sales.add(POUND)
        assert shown(view) == before and len(sales) == 1
        view.verify()
    sales.add(Sale(5, 7, "euro"))
    view.verify()


def test_a_view_that_has_seen_no_clash_has_no_checks() -> None:
    db = Database()
    sales, others = db.table(Sale, name="sales"), db.table(Other, name="others")
    for query in QUERIES.values():
        view = query(sales, others).materialize(on_error="drop")
        sales.add_all([EURO, ELSE])
        view.verify()
        assert "semi_join hash(" not in str(view.explain())
        sales.clear()
    with pytest.raises(PlanError):
        sales.materialize().errors  # noqa: B018


@pytest.mark.parametrize("query", ["group_by", "join"])
def test_what_raises_is_not_repeated_without_new_checks(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[PolicyQuery] = []
    monkeypatch.setattr(PolicyQuery, "add_checks", lambda policy: calls.append(policy))
    db = Database()
    sales, others = db.table(Sale, name="sales"), db.table(Other, name="others")
    sales.add(EURO)
    view = QUERIES[query](sales, others).materialize(on_error="drop")
    if query == "join":
        others.add(Other(9, 7, "euro"))
    before = list(view)
    with pytest.raises(ValueError, match="no rate for"):
        sales.add(POUND)
    assert len(calls) == 1 and list(sales) == [EURO] and list(view) == before
    sales.add(ELSE)
    view.verify()
