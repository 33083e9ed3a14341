"""`verify()` evaluates sub-queries inside recursions by definition: a wrong translation is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from optimizer import plan
from optimizer.subqueries import answers, decorrelation, translation
from reactive import Database, Table, VerificationError, fixpoint, iterate
from reactive.engine.reference import asking
from reactive.engine.reference.quantified import RankedRows

Patch = pytest.MonkeyPatch
Edge = tuple[int, int]
Word = tuple[int, str]
EDGES = [(1, 2), (2, 3), (2, 9), (3, 4), (4, 2), (5, 6), (6, 5), (7, 8), (9, 5)]
WORDS = [(2, "x"), (3, "x"), (4, "x"), (6, "y")]


class Tables:
    """A graph, some of whose nodes have words; as tables of rows, and as SQL tables."""

    def __init__(self) -> None:
        self.db = Database()
        self.edges: Table[Edge] = self.db.table(tuple[int, int], name="edges")
        self.words: Table[Word] = self.db.table(tuple[int, str], name="words")
        self.db.execute("create table e (a integer, b integer)")
        self.db.execute("create table w (k integer, t text)")

    def fill(self, edges: list[Edge], words: list[Word]) -> None:
        self.edges.add_all(edges)
        self.words.add_all(words)
        for a, b in edges:
            self.db.execute(f"insert into e values ({a}, {b})")
        for k, t in words:
            self.db.execute(f"insert into w values ({k}, '{t}')")


def _lose_conditions(patch: Patch) -> None:
    """Break the translation: a join holds for all pairs."""
    for module in (decorrelation, decorrelation):
        patch.setattr(module, "on_pairs", lambda *a, **k: None)


def _lose_values(patch: Patch) -> None:
    """Break the translation: use the result for one value for all values."""
    for module in (answers, decorrelation, decorrelation):
        patch.setattr(module, "match_back", lambda *a, **k: plan.Match())


def _keep_copies(patch: Patch) -> None:
    """Break the translation: a set in a group is a bag."""
    keyed = translation.Translation._keyed

    def wrong(self: Any, node: plan.Node) -> Any:
        return self.side(node.input) if isinstance(node, plan.Distinct) else keyed(self, node)

    patch.setattr(translation.Translation, "_keyed", wrong)


def _keep_all(patch: Patch) -> None:
    """Break the translation: the first rows of a group are all its rows."""
    patch.setattr(translation.Translation, "_top", lambda self, x, *a: replace(x, covers=False))


def _from_1(t: Tables) -> Any:
    return t.edges.where(lambda e: e[0] == 1)


def _step(r: Any, t: Tables) -> Any:
    pairs = r.join(t.edges, on=lambda p, e: p[1] == e[0])
    return pairs.select(lambda p, e: (p[0], e[1]))


FORMS: dict[str, tuple[Callable[[Tables], Any], Callable[[Patch], None]]] = {
    "any of a table": (
        lambda t: fixpoint(
            lambda r: t.edges.union(_step(r, t).where(lambda p: any(w[0] == p[1] for w in t.words)))
        ),
        _lose_conditions,
    ),
    "not any of a table": (
        lambda t: fixpoint(
            lambda r: t.edges.union(
                _step(r, t).where(lambda p: not any(w[0] == p[1] for w in t.words))
            )
        ),
        _lose_conditions,
    ),
    "any of the recursion": (
        lambda t: fixpoint(
            lambda r: _from_1(t).union(t.edges.where(lambda e: any(p[1] == e[0] for p in r)))
        ),
        _lose_conditions,
    ),
    "set comprehension": (
        lambda t: fixpoint(
            lambda r: _from_1(t).union(
                t.db.query(
                    lambda: {
                        (a, c)
                        for a, b in r
                        for x, c in t.edges
                        if b == x and any(k == c for k, _ in t.words)
                    }
                )
            )
        ),
        _lose_conditions,
    ),
    "in a set": (
        lambda t: fixpoint(
            lambda r: _from_1(t).union(
                _step(r, t).where(lambda p: p[1] in {k for k, s in t.words if s == "x"})
            )
        ),
        _lose_conditions,
    ),
    "sum of a table": (
        lambda t: iterate(
            lambda r: _step(r, t).where(lambda p: sum(k for k, _ in t.words if k == p[1]) > 2),
            t.edges,
            times=2,
        ),
        _lose_values,
    ),
    "min of the recursion": (
        lambda t: iterate(
            lambda r: t.db.query(
                lambda: [(a, min((d for c, d in r if c == b), default=b)) for a, b in t.edges]
            ),
            t.edges,
            times=3,
        ),
        _lose_values,
    ),
    "rows of each group": (
        lambda t: iterate(
            lambda r: (
                r.group_by(lambda p: p[0])
                .each(lambda g: g.where(lambda p: any(w[0] == p[1] for w in t.words)))
                .select(lambda k, p: (p[1], p[0]))
            ),
            t.edges,
            times=2,
        ),
        _lose_conditions,
    ),
    "sub-query in sub-query": (
        lambda t: fixpoint(
            lambda r: _from_1(t).union(
                _step(r, t).where(
                    lambda p: any(
                        w[0] == p[1] and any(e[0] == w[0] and e[1] > 2 for e in t.edges)
                        for w in t.words
                    )
                )
            )
        ),
        _lose_conditions,
    ),
    "two relations": (
        lambda t: fixpoint(
            lambda odd, even: (
                t.edges.union(t.edges.where(lambda e: any(p[1] == e[0] for p in even))),
                t.edges.where(lambda e: any(p[1] == e[0] and p[0] != e[1] for p in odd)),
            )
        )[1],
        _lose_conditions,
    ),
    "sum of rounds": (
        lambda t: iterate(
            lambda r: t.db.query(lambda: [(a, sum(d for c, d in r if c == a) % 50) for a, b in r]),
            t.edges,
            times=4,
        ),
        _lose_values,
    ),
    "until settled": (
        lambda t: iterate(
            lambda r: t.edges.where(lambda e: not any(p[1] == e[0] and p[0] < 3 for p in r)),
            t.edges,
            times=3,
        ),
        _lose_conditions,
    ),
    "set of each group": (
        lambda t: iterate(
            lambda r: (
                r.group_by(lambda p: p[0])
                .each(lambda g: g.select(lambda p: p[1] // 2).distinct())
                .select(lambda k, v: (v, k))
                .union_all(r)
            ),
            t.edges,
            times=3,
        ),
        _keep_copies,
    ),
    "first of each group": (
        lambda t: iterate(
            lambda r: (
                r.group_by(lambda p: p[0])
                .each(lambda g: g.order_by(lambda p: p[1]).limit(1))
                .select(lambda k, p: (p[1], p[0]))
            ),
            t.edges,
            times=2,
        ),
        _keep_all,
    ),
    "sql: exists": (
        lambda t: t.db.sql(
            "with recursive r (a, b) as (select a, b from e where a = 1 union"
            " select r.a, e.b from r join e on r.b = e.a"
            " where exists (select 1 from w where w.k = e.b)) select * from r"
        ),
        _lose_conditions,
    ),
    "sql: in the recursion": (
        lambda t: t.db.sql(
            "with recursive r (a, b) as (select a, b from e where a = 1 union"
            " select a, b from e where exists (select 1 from r where r.b = e.a)) select * from r"
        ),
        _lose_conditions,
    ),
    "sql: not in, union all": (
        lambda t: t.db.sql(
            "with recursive r (a, b) as (select a, b from e where a = 1 union all"
            " select r.a, e.b from r join e on r.b = e.a where r.b < 9 and"
            " not exists (select 1 from w where w.k = r.b and w.t = 'y') and e.b < 4)"
            " select * from r"
        ),
        _lose_conditions,
    ),
    "sql: in": (
        lambda t: t.db.sql(
            "with recursive r (a, b) as (select a, b from e where a = 1 union"
            " select r.a, e.b from r join e on r.b = e.a where (e.b, 'x') in (select k, t from w))"
            " select * from r"
        ),
        _lose_conditions,
    ),
    "sql: lateral": (
        lambda t: t.db.sql(
            "with recursive r (a, b) as (select a, b from e where a = 1 union"
            " select r.a, l.b from r, lateral (select b from e where r.b = e.a) l)"
            " select * from r"
        ),
        _lose_conditions,
    ),
    "sql: scalar": (
        lambda t: t.db.sql(
            "with recursive r (a, b) as (select a, b from e where a = 1 union all"
            " select r.b, (select max(k) from w where w.k = e.b) from r"
            " join e on r.b = e.a where r.a < 2) select * from r"
        ),
        _lose_values,
    ),
}


def _view(form: str) -> tuple[Tables, Any]:
    tables = Tables()
    view = FORMS[form][0](tables).materialize()
    tables.fill(EDGES, WORDS)
    return tables, view


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_verify_finds_a_broken_translation_inside_a_recursion(
    form: str, monkeypatch: Patch
) -> None:
    tables, right = _view(form)
    right.verify()
    with monkeypatch.context() as patch:
        FORMS[form][1](patch)
        _, wrong = _view(form)
    assert sorted(map(repr, wrong)) != sorted(map(repr, right))
    with pytest.raises(VerificationError):
        wrong.verify()
    tables.edges.remove((2, 3))
    tables.words.remove((4, "x"))
    tables.db.execute("delete from e where a = 2 and b = 3")
    right.verify()


def _twice(tables: Tables) -> Any:
    """Return a view over two recursions of one level, under a policy."""
    edges = tables.edges
    low = fixpoint(
        lambda r: edges.where(lambda e: e[0] < 2).union(
            edges.where(lambda e: any(p[1] == e[0] for p in r))
        )
    )
    high = fixpoint(
        lambda r: edges.where(lambda e: e[0] > 6).union(
            edges.where(lambda e: any(p[1] == e[0] for p in r))
        )
    )
    both = low.union_all(high).where(lambda p: 10 // (p[0] - 2) < 99)
    return both.materialize(on_error="drop")


def test_two_recursions_of_one_level_under_a_policy_are_told_apart(monkeypatch: Patch) -> None:
    tables = Tables()
    view = _twice(tables)
    with monkeypatch.context() as patch:
        _lose_conditions(patch)
        others = Tables()
        wrong = _twice(others)
    for each in (tables, others):
        each.fill([(1, 3), (3, 4), (7, 8), (8, 9), (5, 6)], [])
    assert sorted(view) == [(1, 3), (3, 4), (7, 8), (8, 9)]
    view.verify()
    with pytest.raises(VerificationError):
        wrong.verify()


class Told(int):
    """A number that says how often it was compared with another."""

    calls = 0

    def __eq__(self, other: object) -> bool:
        Told.calls += 1
        return int(self) == other

    def __hash__(self) -> int:
        return hash(int(self))

    def __gt__(self, other: int) -> bool:
        Told.calls += 1
        return int(self) > other


def _compared(make: Callable[[Database, Table[Any], Table[int]], Any], size: int, keys: int) -> int:
    """Return how often verifying compares a number of the rows `(key, value)`."""
    db = Database()
    rows: Table[Any] = db.table(tuple[int, int], name="rows")
    who = db.table(int, name="who")
    view = make(db, rows, who).materialize()
    with db.transaction():
        rows.add_all((n % keys, Told(n)) for n in range(size))
        who.add_all(range(size))
    Told.calls = 0
    view.verify()
    return Told.calls


WORK: dict[str, Callable[[Database, Table[Any], Table[int]], Any]] = {
    "equation": lambda db, rows, who: db.query(
        lambda: [w for w in who if any(v > -1 for k, v in rows if k == w)]
    ),
    "uncorrelated": lambda db, rows, who: db.query(
        lambda: [w for w in who if any(v > 10**9 for k, v in rows)]
    ),
    "uncorrelated in correlated": lambda db, rows, who: db.query(
        lambda: [
            w
            for w in who
            if any(k == w and sum(x for _, x in rows if x > 10**9) == 0 for k, _ in rows)
        ]
    ),
    "first that is there": lambda db, rows, who: db.query(
        lambda: [w for w in who if any(v > -1 for k, v in rows if k <= w)]
    ),
}


@pytest.mark.parametrize("keys", [1, 1000], ids=["one key", "many keys"])
@pytest.mark.parametrize("form", WORK)
def test_verify_compares_as_often_as_there_are_rows(form: str, keys: int) -> None:
    few, many = (_compared(WORK[form], size, keys) for size in (20, 200))
    assert many <= 12 * few + 50
    assert many <= 4 * 200


def test_a_chain_of_rounds_asks_only_what_changed() -> None:
    def compared(size: int) -> int:
        db = Database()
        edges = db.table(tuple[int, int], name="edges")
        first = edges.where(lambda e: e[0] == 0)
        view = fixpoint(
            lambda r: first.union(edges.where(lambda e: any(b > -1 for a, b in r if b == e[0])))
        ).materialize()
        edges.add_all((Told(n), Told(n + 1)) for n in range(size))
        Told.calls = 0
        view.verify()
        return Told.calls

    assert compared(200) <= 12 * compared(20)


def test_a_query_that_reads_no_value_around_is_made_once(monkeypatch: Patch) -> None:
    made: list[object] = []

    def ranked(*given: Any) -> RankedRows:
        made.append(given)
        return RankedRows(*given)

    db = Database()
    db.execute("create table o (k integer, v integer)")
    view = db.sql("select k from o where k in (select v from o where v > 0)").materialize()
    for number in range(20):
        db.execute(f"insert into o values ({number}, {number % 7})")
    monkeypatch.setattr(asking, "RankedRows", ranked)
    view.verify()
    assert len(made) == 1
