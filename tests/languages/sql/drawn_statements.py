"""Random statements that change data, in DuckDB, Postgres or SQLite and here: the same rows after.

    insert into t select ..., update t set ... from u, delete from t using u ...,
    insert ... on conflict do nothing | do update, merge into t using u ...
    insert or replace | or ignore ..., insert ... by name        where the engine has them

Three things are compared for each statement: its refusal, the number of changed rows, and the
tables and views afterwards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from reactive import Database, PlanError, ReactiveError
from tests.languages.sql.compare import difference
from tests.languages.sql.oracles import Changing, Refused

TABLES = (
    "create table t (id integer primary key, a integer, b text default 'new')",
    "create table u (k integer, v integer)",
    "create table w (k text not null, l integer not null, x decimal(6,2) default 1.5,"
    " f double precision, d date, primary key (k, l))",
    "create table s (n smallint not null default 7, g bigint, h boolean, m timestamp)",
)
VIEWS = (
    "select a, count(*) as n, sum(id) as s, min(b) as m from t group by a",
    "select t.id, u.v from t left join u on u.k = t.id",
    "select id from t where a not in (select v from u where u.k = t.id)",
    "select k, max(v) as v from u where exists (select 1 from t where t.a = u.k) group by k",
    "select b from t union select cast(v as text) from u",
    "select l, count(x) as c, max(f) as f, min(d) as d from w group by l",
    "select w.k, s.g from w join s on s.n = w.l where w.x > 1 or s.h",
    "select n, m from s where m >= all (select d from w where w.d is not null)",
    "select k from w where l < any (select g from s)",
    "select id from t where a > any (select v from u)",
    "select id from t where a <= all (select v from u where u.k = t.id)",
    "select id from t where exists (select 1 from u where u.k = t.a and u.v >= t.id)",
    "select l from w where not exists (select 1 from s where s.h and s.g < w.f)",
)
REFUSED = ("MERGE", "a query in DO UPDATE", "table 'u' has no key")
"""First words of refusals of statements that an engine takes."""
NOT_OF_SQLITE = re.compile(r"\b(all|any) \(|\bdefault\b(?! values)|\bdate '|\btimestamp '")
SETS: Mapping[str, tuple[str, ...]] = {
    "t": (
        *("a = a + 1", "a = null", "b = {text}", "a = id, b = b || cast(a as text)", "b = default"),
        *("id = id + 100", "a = (select count(*) from u where u.k = t.id)", "(a, b) = (id, 'row')"),
        *("b = a", "a = {cell}", "id = -id", "a = (select max(v) from u), b = 'max'"),
        "a = case when exists (select 1 from u where u.v = t.id) then 1 else a end",
        *("(b, a) = (select min(k), max(v) from u where u.k = t.id)", "(id, a) = (id + 50, -id)"),
        "(a, b) = (select v, 'first' from u where u.k = t.a order by v limit 1)",
    ),
    "u": (
        "v = {value}",
        "k = v, v = k",
        "v = (select max(id) from t where t.a < u.k)",
        *("v = v * v", "(v, k) = (k, v)", "(v, k) = (k, 1, 2)", "(v) = (k)", "(k, k) = (1, 2)"),
    ),
    "w": (
        *("x = x * 1.5", "x = f", "f = x / 3", "f = f + l, x = default", "d = {day}", "x = {cell}"),
        *("k = upper(k)", "l = l + 1", "l = -l, k = k || '!'", "x = (select avg(x) from w)"),
        *("f = (select sum(v) from u where u.k = w.l)", "f = {cell}", "x = x + 9000", "d = null"),
    ),
    "s": (
        *("n = n * 100", "g = n", "g = {cell}", "h = n > 3", "h = not h", "m = {day}", "n = g"),
        *("n = null", "n = default", "g = g * 1000000000", "h = (select count(*) > 2 from w)"),
        "m = (select max(d) from w)",
    ),
}
"""The assignments that UPDATE draws, by table."""
COLUMNS = {"w": tuple("klxfd"), "s": tuple("nghm")}
VALUES: Mapping[str, tuple[str, ...]] = {
    "w.k": ("'a'", "'b'", "'A'", "'ä'", "''"),
    "w.x": ("null", "1.005", "2.5", "-7", "'3.25'", "99999.9", "0.125", "default", "1e2"),
    "w.f": ("null", "0.1", "3", "'2.5'", "1e300", "-0.0", "default"),
    "s.n": ("1", "2", "-3", "7", "'5'", "40000", "2.5", "default", "null"),
    "s.g": ("null", "12", "3", "'9'", "9223372036854775807", "1.5", "-2"),
    "s.h": ("null", "true", "false", "'t'", "default"),
    "s.m": ("null", "timestamp '2024-02-29 12:30:00'", "'2024-01-31 00:00:01.5'", "default"),
}
"""Literals of columns; others have numbers, or texts."""
DAYS = ("date '2024-02-29'", "'2024-01-31'", "null", "date '1999-12-31'")


@dataclass
class Report:
    """Counts of the played statements, differences, and texts refused only by the library."""

    run: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def unexpected(self) -> dict[str, str]:
        """The statements that are refused here for another reason than one that docs name."""
        return {text: why for text, why in self.refused.items() if not why.startswith(REFUSED)}


class Statements:
    """Texts of statements for the tables, in a dialect."""

    def __init__(self, random: Random, dialect: str) -> None:
        self._random = random
        self._dialect = dialect
        self._kinds = [
            *(self._insert, self._insert, self._typed, self._typed, self._conflict),
            *(self._update, self._update, self._delete),
            *([] if dialect == "sqlite" else [self._merge]),
            *([] if dialect == "postgres" else [self._alternative]),
        ]

    def drawn(self) -> str:
        """A statement of any kind, of words that the dialect has."""
        while True:
            text = self._random.choice(self._kinds)()
            if self._dialect != "sqlite" or not NOT_OF_SQLITE.search(text):
                return text

    def _insert(self) -> str:
        by_name = "insert into u by name select a as v, id as k from t"
        return self._random.choice(
            (
                f"insert into u values {self._pairs()}",
                f"insert into t values {self._rows()}",
                f"insert into t (id, a) values ({self._number()}, {self._value()})",
                f"insert into t (a, id) select v, k from u where {self._of_u()}",
                "insert into t (id, a, b) select max(id) + 1, count(*), 'more' from t",
                f"insert into u select id, a from t where {self._of_t()}",
                "insert into u select u.k + 1, v.v from u join u v on v.k = u.v where u.k < 3",
                f"with w as (select k, v from u where {self._of_u()})"
                " insert into t (id, b) select k + 5, cast(v as text) from w",
                f"insert into u values {self._pairs()} returning k",
                by_name if self._dialect == "duckdb" else "insert into s default values",
                f"insert into t (id) values ((select count(*) from u) + {self._number()})",
                "insert into t select k, v, 'first' from u order by v, k limit 1",
            )
        )

    def _typed(self) -> str:
        """Return an INSERT whose values must be converted to the types of the columns."""
        return self._random.choice(
            (
                f"insert into w values {self._cells('w')}",
                f"insert into s values {self._cells('s')}",
                f"insert into w (l, k) values ({self._number()}, 'few')",
                "insert into s default values",
                f"insert into s (n, g) select k, v from u where {self._of_u()}",
                "insert into w (k, l, x, f) select cast(k as text), v, k / 3.0, v / 2 from u",
                "insert into w (k, l, f) select b, id, x from t join w on w.l = t.a",
                "insert into s (n, h, m) select l, x > 1, d from w",
                "insert into u select distinct n, g from s where g < 100",
            )
        )

    def _alternative(self) -> str:
        words = self._random.choice(("insert or replace", "insert or ignore"))
        return self._random.choice(
            (
                f"{words} into t values {self._rows()}",
                f"{words} into t (id, b) values ({self._number()}, {self._text()})",
                f"{words} into t select k, max(v), 'u' from u where k is not null group by k",
                f"{words} into t (a, id) select v, k from u where k is not null order by k, v",
                f"{words} into w values {self._cells('w')}",
                f"{words} into w (l, f, k) values ({self._number()}, 0.5, 'a')",
                f"{words} into t by name select 'n' as b, k as id from u where {self._of_u()}"
                if self._dialect == "duckdb"
                else f"{words} into u values {self._pairs()}",
            )
        )

    def _conflict(self) -> str:
        if self._random.random() < 0.3:
            action = self._random.choice(
                (
                    "(k, l) do update set x = excluded.x",
                    "(l, k) do update set x = w.x + coalesce(excluded.x, 1), f = w.l",
                    "(k, l) do nothing",
                    "(k, l) do update set l = w.l + 50",
                    "(k, l) do update set f = excluded.f where w.f is null or excluded.f > w.f",
                    "(k) do nothing",
                )
            )
            return f"insert into w values {self._cells('w')} on conflict {action}"
        action = self._random.choice(
            (
                "do nothing",
                "(id) do nothing",
                "(id) do update set a = excluded.a",
                "(id) do update set a = t.a + excluded.a, b = excluded.b",
                f"(id) do update set b = 'both' where {self._of_t()}",
                "(id) do update set a = (select max(v) from u)",
                "(id) do update set b = default, a = 0",
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
        table = self._random.choice("ttuws")
        change = self._random.choice(SETS[table]).format(
            text=self._text(),
            value=self._value(),
            day=self._random.choice(DAYS),
            cell=self._random.choice(VALUES[self._random.choice(["w.x", "w.f", "s.n", "s.g"])]),
        )
        where = self._where(table)
        return self._random.choice(
            (
                f"update {table} set {change} where {where}",
                f"update {table} set {change} where {where}",
                f"update {table} set {change}",
                f"update t set a = m.v from (select k, max(v) as v from u group by k) m"
                f" where m.k = t.id and {self._of_t()}",
                "update u set v = t.a from t where t.id = u.k",
                "update s set g = t.id, h = t.b = 'new' from t where t.id = s.n",
                "update w set f = m.f, x = 0 from (select max(v) as f from u) m where l > 2",
                "with m as (select k, min(v) as v from u group by k)"
                " update t set a = m.v + t.a from m where m.k = t.id",
            )
        )

    def _delete(self) -> str:
        table = self._random.choice("tuws")
        return self._random.choice(
            (
                f"delete from {table} where {self._where(table)}",
                f"delete from {table} where {self._where(table)}",
                f"delete from t using u where u.k = t.id and {self._of_u()}",
                "delete from u using t as z, s where z.id = u.k and s.n = z.a",
                "delete from u where not exists (select 1 from t where t.id = u.k)",
                f"with w as (select k from u where {self._of_u()})"
                " delete from t where id in (select k from w)",
                "delete from w where (k, l) in (select b, id from t)",
                f"delete from {table}" if self._random.random() < 0.2 else "delete from s where h",
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

    def _where(self, table: str) -> str:
        n = self._number()
        of_others = {
            "w": (
                *(f"w.l = {n}", "w.x > 1.5", "w.x is null", "k = 'a'", "lower(k) = 'a'"),
                *(f"k = 'a' and l = {n}", "d >= date '2000-01-01'", "f < any (select v from u)"),
                *("l in (select k from u)", "x > (select avg(x) from w)", "f is not null"),
                "exists (select 1 from s where s.n = w.l and s.h)",
            ),
            "s": (
                *("h", "not h", "g > n", f"n = {n}", "m is null", "g is null or h"),
                *(f"n <> {n}", "m > (select max(d) from w)", "n not in (select k from u)"),
            ),
        }
        if table in of_others:
            return self._random.choice(of_others[table])
        return self._of_t() if table == "t" else self._of_u()

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
                "t.a >= all (select v from u where u.k = t.id)",
                "t.id = (select min(id) from t)",
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

    def _cells(self, table: str) -> str:
        """Rows of a table; SQLite has no word DEFAULT, and no literals of days."""
        rows = [
            ", ".join(self._cell(f"{table}.{name}") for name in COLUMNS[table])
            for _ in range(self._random.randint(1, 2))
        ]
        return ", ".join(f"({row})" for row in rows)

    def _cell(self, column: str) -> str:
        text = self._random.choice(DAYS if column == "w.d" else VALUES.get(column, ("1", "2", "3")))
        if self._dialect == "sqlite":
            text = text.replace("default", "null").replace("date ", "").replace("timestamp ", "")
        return text

    def _number(self) -> int:
        return self._random.randint(0, 9)

    def _value(self) -> str:
        return self._random.choice(("null", *map(str, range(6))))

    def _text(self) -> str:
        return self._random.choice(("null", "'new'", "''", "'ü'", "'it''s'"))


def play(server: Changing, random: Random, count: int, report: Report) -> None:
    """Run `count` statements on both sides, and compare after each."""
    db = Database(dialect=server.name)
    draw = Statements(random, server.name)
    for text in TABLES:
        server.run(text)
        db.execute(text)
    views = [(text, db.sql(text).materialize()) for text in _views(server)]
    tables = [(f"select * from {table.name}", table) for table in db.tables()]
    typed = server.name != "sqlite"
    for _ in range(count):
        text = draw.drawn()
        _run(server, db, text, report)
        for query, shown in (*tables, *views):
            found = difference([*map(tuple, shown)], server.ask(query), ordered=False, typed=typed)
            if found is not None:
                report.wrong.append(f"{text}\n  {query}: {found}")
        if report.wrong:  # later differences only repeat it
            break
    for _, view in views:
        view.verify()
    server.close()


def _views(server: Changing) -> list[str]:
    """The views of words that the engine has."""
    return [t for t in VIEWS if server.name != "sqlite" or not NOT_OF_SQLITE.search(t)]


def _run(server: Changing, db: Database, text: str, report: Report) -> None:
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
        report.wrong.append(f"{text}: {ours} rows, and in {server.name} {theirs}")
