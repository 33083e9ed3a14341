"""Draw tables, statements and views of SQLite, and play them beside it.

The views are made before the first statement, and follow the changes. A view may show any of the
texts that are equal under a collation, so texts are compared without case and without spaces at
their ends if the view groups by one.
"""

from __future__ import annotations

from random import Random

from tests.languages.sql.sqlite_player import Both

TYPES = ("integer", "text", "real", "numeric", "blob", "date", "", "varchar(9)")
COLLATIONS = ("", "", " collate nocase", " collate rtrim", " collate binary")
KEYS = (
    *("", "", "k integer primary key", "k text not null collate nocase primary key"),
    *("k text not null collate rtrim primary key", "k text not null primary key"),
    "k integer primary key desc not null",
)
VALUES = (
    *("null", "1", "2", "-3", "0", "2.5", "-1.5", "'1'", "'2.5'", "'x'", "'X'", "'x '", "''"),
    *("'ab'", "'Ab '", "'é'", "'É'", "'2024-01-31'", "'12 a'", "x'78'", "x''", "'1e3'", "1e20"),
    *("9223372036854775807", "true", "' 7 '", "'b'", "'B'"),
)
OF_KEYS = (
    "1",
    "2",
    "3",
    "4",
    "'5'",
    "'x'",
    "'X'",
    "'x '",
    "'y'",
    "'Y '",
    "'é'",
    "7",
    "'ab'",
    "null",
)
TESTS = (
    *("{a} = {x}", "{a} < {x}", "{a} >= {b}", "{a} in ({x}, {y})", "{a} between {x} and {y}"),
    *("{a} is null", "{a} <> {b}", "{a} || '' like 'x%'", "{a} = {x} collate nocase", "{a}"),
    *("typeof({a}) = 'text'", "{a} in (select p from u)", "{a} is not {x}", "not {a} > {x}"),
    "exists (select 1 from u where u.p = {a})",
)
EXPRESSIONS = (
    *("{x}", "{x}", "{b}", "{a} || 'x'", "coalesce({a}, {x})", "max({a}, {b})", "lower({b})"),
    *("case when {test} then {x} else {a} end", "-{a}", "{a} + 1", "nullif({a}, {x})"),
    *("cast({b} as text)", "(select max(p) from u)"),
)
VIEWS = (
    "select * from t where {test}",
    "select a, b, c from t where {test} and {test2}",
    "select {a} as z, count(*) as n, count(distinct {b}) as d from t group by {a} --fold",
    "select {a} as z, min({b}) as n, max({b}) as d from t group by {a} --fold",
    "select min({a}) as n, max({a}) as m, count({a}) as c from t where {test} --fold",
    "select distinct {a} as z from t --fold",
    "select distinct {a} as z, {b} as y from t where {test} --fold",
    "select {a} as z from t union select {b} as z from t --fold",
    "select {a} as z from t union select p as z from u --fold",
    "select p as z from u except select {a} as z from t --fold",
    "select {a} as z from t except select q as z from u --fold",
    "select {a} as z, {b} as y from t intersect select p, q from u --fold",
    "select {a} as z from t intersect select q from u --fold",
    "select {a} as z from t union all select q as z from u --fold",
    "select {a} as z from t union select p from u except select q from u --fold",
    "select t.a, t.b, u.q from t join u on t.{a} = u.p",
    "select t.c, u.q from t left join u on u.p = t.{a} and {test}",
    "select t.a, w.b from t join t w on t.{a} = w.{b}",
    "select {a} as z, {b} as y from t order by {a}, {b} desc --fold",
    "select {a} as z from t order by {a} desc limit 3 --fold",
    "select {a} as z, {b} as y from t order by {a} collate nocase, {b} limit 4 offset 1 --fold",
    "select count(*) as n from (select distinct {a}, {b} from t)",
    "select z, count(*) as n from (select {a} as z from t union all select p from u) "
    "group by z --fold",
    "select {a} as z, count(*) as n from t group by {a} having count(*) > 1 --fold",
    "select c, (select count(*) from u where u.q = t.{a}) as n from t",
    "select {a} as z from t where {a} not in (select p from u where p is not null)",
    "select case {a} when {x} then 1 when {b} then 2 end as z from t",
)


class History:
    """A table `t`, a table `u` beside it, and views over both."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._key = self._random.choice(KEYS)
        self._names = ["a", "b", "c"]
        self._untyped = set[str]()
        columns = [self._column(name) for name in self._names]
        columns = [*([self._key] if self._key else []), *columns]
        self.both = Both(
            f"create table t ({', '.join(columns)})",
            "create table u (p text collate nocase, q collate rtrim)",
            "insert into u values ('X', 'x '), ('ab', 1), (null, 'É'), ('2', x'78'), ('b', 'B')",
        )
        texts = [self._filled(text) for text in self._random.sample(VIEWS, 4)]
        self.views = [(text, self.both.view(text)) for text in texts]

    def _column(self, name: str) -> str:
        random = self._random
        declared = random.choice(TYPES)
        if declared in ("", "blob"):
            self._untyped.add(name)
        text = f"{name} {declared}{random.choice(COLLATIONS)}"
        if random.random() < 0.1:
            text += f" not null default {random.choice(VALUES[1:])}"
        elif random.random() < 0.2:
            text += f" default {random.choice(VALUES)}"
        return text

    def _filled(self, text: str) -> str:
        random = self._random
        a, b = random.sample(self._names, 2)
        x, y = random.sample(VALUES, 2)
        given = {"a": a, "b": b, "x": x, "y": y}
        tests = [random.choice(TESTS).format(**given) for _ in range(2)]
        if " join " in text:
            tests = [test.replace(f"{a} ", f"t.{a} ", 1) for test in tests if test]
        return text.format(**given, test=tests[0], test2=tests[1])

    def _value(self) -> str:
        return self._random.choice(VALUES)

    def _row(self) -> str:
        cells = [self._value() for _ in self._names]
        if self._key:
            cells = [self._random.choice(OF_KEYS), *cells]
        return f"({', '.join(cells)})"

    def _insert(self, *, words: str = "insert") -> str:
        rows = [self._row() for _ in range(self._random.choice((1, 1, 1, 2, 3)))]
        return f"{words} into t values {', '.join(rows)}"

    def statement(self) -> str:
        """One statement."""
        random, draw = self._random, self._random.random()
        if draw < 0.35:
            return self._insert()
        if draw < 0.42:
            named = random.sample(self._names, 2)
            cells = [self._value(), self._value()]
            if self._key:
                named, cells = [*named, "k"], [*cells, random.choice(OF_KEYS)]
            return f"insert into t ({', '.join(named)}) values ({', '.join(cells)})"
        if draw < 0.5:
            return self._selected()
        if draw < 0.62 and self._key:
            return self._insert(words=random.choice(("insert or replace", "insert or ignore")))
        if draw < 0.75 and self._key:
            name = random.choice(self._names)
            value = random.choice(
                (f"excluded.{name}", f"coalesce(excluded.{name}, {name})", self._value())
            )
            ends = ("do nothing", f"do update set {name} = {value}")
            return f"{self._insert()} on conflict (k) {random.choice(ends)}"
        if draw < 0.9:
            name = random.choice(self._names)
            value = self._expression(name)
            return f"update t set {name} = {value} where {self._where()}"
        return f"delete from t where {self._where()}"

    def _expression(self, name: str) -> str:
        """A value for a column; one without a type would keep 1.0 beside 1, which are equal."""
        if name in self._untyped:
            return self._value()
        return self._filled(self._random.choice(EXPRESSIONS).replace("{test}", "{a} > {x}"))

    def _selected(self) -> str:
        values = [self._expression(name) for name in self._names]
        if "k integer" in self._key:
            values = ["k + 10", *values]
        elif self._key:
            values = ["k || 'n'", *values]
        return f"insert into t select {', '.join(values)} from t where {self._where()}"

    def _where(self) -> str:
        if self._key and self._random.random() < 0.3:
            return f"k = {self._random.choice(OF_KEYS)}"
        return self._filled(self._random.choice(TESTS))

    def play(self, count: int) -> None:
        """Play some statements; after each, compare the table and its views with SQLite."""
        every = self.both.view("select * from t")
        for _ in range(count):
            text = self.statement()
            self.both.execute(text)
            self.both.same("select * from t", every)
            for query, view in self.views:
                self.both.same(query, view)
            if self.both.wrong:
                self.both.wrong.insert(0, text)
                return
