"""Random statements that change data, in a Postgres server and here: the same rows after each.

    insert into t select ..., update t set ... from u, delete from t using u ...,
    insert ... on conflict do nothing | do update, merge into t using u ...

Of each statement three things are compared: whether it is refused, how many rows it changed, and
what tables and views hold afterwards.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from reactive import Database, PlanError, ReactiveError
from tests.sql.compare import difference
from tests.sql.oracles import Postgres, Refused

TABLES = (
    "create table t (id integer primary key, a integer, b text default 'new')",
    "create table u (k integer, v integer)",
)
VIEWS = (
    "select a, count(*) as n, sum(id) as s, min(b) as m from t group by a",
    "select t.id, u.v from t left join u on u.k = t.id",
    "select id from t where a not in (select v from u where u.k = t.id)",
    "select k, max(v) as v from u where exists (select 1 from t where t.a = u.k) group by k",
    "select b from t union select cast(v as text) from u",
)


@dataclass
class Report:
    """Counts of the statements that were run, differences, and texts refused only here."""

    run: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class Statements:
    """Texts of statements."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def drawn(self) -> str:
        """A statement of any kind."""
        kinds = (
            self._insert,
            self._insert,
            self._conflict,
            self._update,
            self._delete,
            self._merge,
        )
        return self._random.choice(kinds)()

    def _insert(self) -> str:
        pick = self._random.choice
        return pick(
            (
                f"insert into u values {self._pairs()}",
                f"insert into t values {self._rows()}",
                f"insert into t (id, a) values ({self._number()}, {self._value()})",
                f"insert into t (a, id) select v, k from u where {self._of_u()}",
                "insert into t (id, a, b) select max(id) + 1, count(*), 'more' from t",
                f"insert into u select id, a from t where {self._of_t()}",
                f"with w as (select k, v from u where {self._of_u()})"
                " insert into t (id, b) select k + 5, v::text from w",
                f"insert into t values ({self._number()}, {self._value()}, default)",
                f"insert into u values {self._pairs()} returning k",
            )
        )

    def _conflict(self) -> str:
        action = self._random.choice(
            (
                "do nothing",
                "(id) do nothing",
                "(id) do update set a = excluded.a",
                "(id) do update set a = t.a + excluded.a, b = excluded.b",
                f"(id) do update set b = 'both' where {self._of_t()}",
                "(id) do update set a = (select max(v) from u)",
            )
        )
        source = self._random.choice(
            (
                f"values {self._rows()}",
                "select k, max(v), 'u' from u where k is not null group by k",
            )
        )
        return f"insert into t {source} on conflict {action}"

    def _update(self) -> str:
        change = self._random.choice(
            (
                "a = a + 1",
                "a = null",
                f"b = {self._text()}",
                "a = id, b = b || a",
                "id = id + 100",
                "a = (select count(*) from u where u.k = t.id)",
                "(a, b) = (id, 'row')",
                "b = default",
            )
        )
        return self._random.choice(
            (
                f"update t set {change} where {self._of_t()}",
                f"update t set a = m.v from (select k, max(v) as v from u group by k) m"
                f" where m.k = t.id and {self._of_t()}",
                f"update u set v = {self._value()} where {self._of_u()}",
                "update u set v = t.a from t where t.id = u.k",
            )
        )

    def _delete(self) -> str:
        return self._random.choice(
            (
                f"delete from t where {self._of_t()}",
                f"delete from u where {self._of_u()}",
                f"delete from t using u where u.k = t.id and {self._of_u()}",
                "delete from u where not exists (select 1 from t where t.id = u.k)",
                f"with w as (select k from u where {self._of_u()})"
                " delete from t where id in (select k from w)",
            )
        )

    def _merge(self) -> str:
        source = "(select k, max(v) as v from u where k is not null group by k)"
        matched = self._random.choice(
            (
                "when matched then update set a = m.v",
                "when matched and t.a > m.v then delete when matched then update set b = 'seen'",
                "when matched then do nothing",
                "",
            )
        )
        missing = self._random.choice(
            (
                "when not matched then insert (id, a) values (m.k, m.v)",
                "when not matched and m.v > 1 then insert values (m.k, m.v, 'merged')",
                "when not matched then do nothing",
            )
        )
        return f"merge into t using {source} m on m.k = t.id {matched} {missing}"

    # Parts.

    def _of_t(self) -> str:
        n = self._number()
        return self._random.choice(
            (
                f"t.id = {n}",
                f"t.a > {n}",
                "t.a is null",
                "t.a is not null and t.b <> 'new'",
                f"t.id in (select v from u where u.k < {n})",
                f"not (t.a = {n} or t.b like 'n%')",
            )
        )

    def _of_u(self) -> str:
        n = self._number()
        return self._random.choice(
            (f"u.k = {n}", f"u.v <= {n}", "u.v is null", "u.k in (select id from t)", f"u.k <> {n}")
        )

    def _pairs(self) -> str:
        pairs = [f"({self._value()}, {self._value()})" for _ in range(self._random.randint(1, 3))]
        return ", ".join(pairs)

    def _rows(self) -> str:
        count = self._random.randint(1, 2)
        rows = [f"({self._number()}, {self._value()}, {self._text()})" for _ in range(count)]
        return ", ".join(rows)

    def _number(self) -> int:
        return self._random.randint(0, 9)

    def _value(self) -> str:
        return self._random.choice(("null", *map(str, range(6))))

    def _text(self) -> str:
        return self._random.choice(("null", "'new'", "''", "'ü'", "'it''s'"))


def play(dsn: str, random: Random, count: int, report: Report) -> None:
    """Run `count` statements on both sides, and compare after each."""
    server, db, draw = Postgres(dsn), Database(dialect="postgres"), Statements(random)
    for text in TABLES:
        server.run(text)
        db.execute(text)
    views = [(text, db.sql(text).materialize()) for text in VIEWS]
    tables = [(f"select * from {table.name}", table) for table in db.tables()]
    for _ in range(count):
        text = draw.drawn()
        _run(server, db, text, report)
        for query, shown in (*tables, *views):
            found = difference([*map(tuple, shown)], server.ask(query), ordered=False, typed=True)
            if found is not None:
                report.wrong.append(f"{text}\n  {query}: {found}")
        if report.wrong:  # what follows only repeats it
            break
    for _, view in views:
        view.verify()
    server.close()


def _run(server: Postgres, db: Database, text: str, report: Report) -> None:
    """Run a statement on both sides; a statement that is refused only here changes nothing."""
    report.run[text.split()[0]] += 1
    try:
        theirs: int | None = server.change(text)
    except Refused:
        theirs = None
    try:
        ours: int | None = db.execute(text)
    except PlanError as error:
        ours = None
        if theirs is not None:
            report.refused[text] = str(error).splitlines()[0]
            server.undo()
            return
    except ReactiveError:
        ours = None
    if theirs is not None:
        server.keep()
    if ours != theirs:
        report.wrong.append(f"{text}: {ours} rows, and in Postgres {theirs}")
