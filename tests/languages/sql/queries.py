"""Draw SQL queries: joins, sub-queries, groups, set operations, orders, windows."""

from __future__ import annotations

from random import Random

from tests.languages.sql.expressions import Expressions, Scope
from tests.languages.sql.shop import Columns

Tables = dict[str, tuple[str, Columns]]


class Queries:
    """Queries over some tables."""

    def __init__(self, tables: Tables, random: Random, *, typed: bool) -> None:
        self._columns = {name: columns for name, (_, columns) in tables.items()}
        self._random = random
        self._typed = typed
        self._made = Expressions(random, typed=typed)
        self._names = 0

    def query(self) -> str:
        """A query of one of the kinds."""
        kinds = (
            *((self._plain, 5), (self._grouped, 5), (self._set_operation, 2), (self._ordered, 3)),
            *((self._windows, 4), (self._distinct, 1), (self._of_query, 2), (self._with, 1)),
            *((self._grouping_sets, 2), (self._distinct_on, 1), (self._values, 1)),
        )
        makers, weights = zip(*kinds, strict=True)
        return str(self._random.choices(makers, weights)[0]())

    # Kinds.

    def _plain(self) -> str:
        source, scope = self._from()
        return f"select {self._columns_of(scope)} {source}{self._where(scope)}"

    def _distinct(self) -> str:
        source, scope = self._from(joins=1)
        return f"select distinct {self._columns_of(scope, depth=1)} {source}{self._where(scope)}"

    def _grouped(self) -> str:
        pick = self._random
        source, scope = self._from()
        keys = [name for name, _ in pick.sample(scope, pick.randint(0, 2))]
        if keys and pick.random() < 0.25:
            keys[0] = self._made.value(self._kind(scope), scope, 1)
        folds = [self._aggregate(scope) for _ in range(pick.randint(1, 3))]
        shown = [f"{text} as c{place}" for place, text in enumerate([*keys, *folds])]
        text = f"select {', '.join(shown)} {source}{self._where(scope)}"
        if keys:
            text += f" group by {', '.join(keys)}"
            if pick.random() < 0.35:
                text += f" having {self._having(scope)}"
        return text

    def _grouping_sets(self) -> str:
        pick = self._random
        source, scope = self._from(joins=pick.randint(0, 1))
        keys = [name for name, _ in pick.sample(scope, min(len(scope), pick.randint(1, 3)))]
        folds = [self._aggregate(scope) for _ in range(pick.randint(1, 2))]
        if pick.random() < 0.5:
            folds.append(f"grouping({pick.choice(keys)})")
        sets = ", ".join(
            f"({', '.join(pick.sample(keys, pick.randint(0, len(keys))))})"
            for _ in range(pick.randint(1, 3))
        )
        every = ", ".join(keys)
        by = pick.choice((f"grouping sets ({sets})", f"rollup ({every})", f"cube ({every})"))
        if pick.random() < 0.2:
            by = f"{keys[0]}, {by}"
        shown = [f"{text} as c{place}" for place, text in enumerate([*keys, *folds])]
        text = f"select {', '.join(shown)} {source}{self._where(scope)} group by {by}"
        return text if pick.random() < 0.7 else f"{text} having {self._having(scope)}"

    def _distinct_on(self) -> str:
        """Return DISTINCT ON, ordered by all columns after the distinct ones."""
        pick = self._random
        source, scope = self._from(joins=pick.randint(0, 1))
        names = [name for name, _ in scope]
        keys = pick.sample(names, pick.randint(1, min(2, len(names))))
        order = [*keys, *(name for name in pick.sample(names, len(names)) if name not in keys)]
        shown = ", ".join(f"{name} as c{place}" for place, name in enumerate(names))
        by = ", ".join(f"{name}{self._direction()}" for name in order)
        text = f"select distinct on ({', '.join(keys)}) {shown} {source}{self._where(scope)}"
        return f"{text} order by {by}"

    def _values(self) -> str:
        """Return a query of VALUES with several types in one column, beside a table."""
        pick = self._random
        kinds = pick.sample(("int", "float", "null"), 2)
        literals = {"int": "7", "float": "2.5", "null": "null"}
        cells = [literals[pick.choice(kinds)] for _ in range(3)]
        table = f"(values ({cells[0]}, 'a'), ({cells[1]}, null), ({cells[2]}, 'b')) as v(x, y)"
        source, scope = self._from(joins=0)
        number = self._number(scope, 0)
        return pick.choice(
            (
                f"select v.x as c0, v.y as c1, {number} as c2 {source} join {table}"
                f" on v.x < {number}{self._where(scope)}",
                f"select v.y as c0, count({number}) as c1, sum(v.x) as c2 {source}"
                f" cross join {table}{self._where(scope)} group by v.y",
                f"select {number} as c0 {source} union all select v.x from {table}",
            )
        )

    def _set_operation(self) -> str:
        pick = self._random
        kinds = [self._kind(self._all()) for _ in range(pick.randint(1, 2))]
        word = pick.choice(("union", "union all", "except", "intersect"))
        text = f"{self._of_kinds(kinds)} {word} {self._of_kinds(kinds)}"
        return (
            f"{text} {pick.choice(('union', 'except'))} {self._of_kinds(kinds)}"
            if (pick.random() < 0.2)
            else text
        )

    def _ordered(self) -> str:
        """Ordered by all columns, so that ties are equal rows."""
        pick = self._random
        source, scope = self._from(joins=1)
        shown = [self._made.value(self._kind(scope), scope, 1) for _ in range(pick.randint(1, 3))]
        names = [f"c{place}" for place in range(len(shown))]
        order = ", ".join(f"{name}{self._direction()}" for name in pick.sample(names, len(names)))
        columns = ", ".join(f"{text} as {name}" for text, name in zip(shown, names, strict=True))
        text = f"select {columns} {source}{self._where(scope)} order by {order}"
        if pick.random() < 0.6:
            text += f" limit {pick.randint(0, 6)}"
            if pick.random() < 0.4:
                text += f" offset {pick.randint(0, 3)}"
        return text

    def _direction(self) -> str:
        pick = self._random
        nulls = pick.choice(("", "", " nulls first", " nulls last"))
        return pick.choice(("", " asc", " desc")) + nulls

    def _windows(self) -> str:
        pick = self._random
        source, scope = self._from(joins=pick.randint(0, 1))
        shown = [name for name, _ in scope[:1]]
        shown.append(self._window(scope))  # of equal rows two windows may each number another first
        columns = ", ".join(f"{text} as c{place}" for place, text in enumerate(shown))
        return f"select {columns} {source}{self._where(scope, 0.3)}"

    def _of_query(self) -> str:
        inner = self._grouped() if self._random.random() < 0.5 else self._plain()
        return f"select count(*) as n, min(q.c0) as low, max(q.c0) as high from ({inner}) as q"

    def _with(self) -> str:
        inner = self._grouped()
        return f"with q as ({inner}) select a.c0 as x, b.c0 as y from q a join q b on a.c0 = b.c0"

    # Parts.

    def _from(self, joins: int | None = None) -> tuple[str, Scope]:
        pick = self._random
        count = pick.choice((0, 0, 1, 1, 2)) if joins is None else joins
        first = self._table()
        text, scope = f"from {first[0]}", first[1]
        if count and pick.random() < 0.12:
            return self._after_a_comma(text, scope)
        for _ in range(count):
            name, columns = self._table()
            kind = pick.choice(
                ("join", "join", "left join", "left join", "right join", "full join")
            )
            on = self._equation(scope, columns)
            if pick.random() < 0.2:
                on += f" and {self._made.test([*scope, *columns], 0)}"
            if pick.random() < 0.06:
                kind, on = "cross join", ""
            text += f" {kind} {name}{f' on {on}' if on else ''}"
            scope = [*scope, *columns]
        return text, scope

    def _after_a_comma(self, text: str, scope: Scope) -> tuple[str, Scope]:
        """Two tables that are joined behind a comma, which binds last."""
        (two, columns), (three, others) = self._table(), self._table()
        kind = self._random.choice(("join", "left join", "right join", "full join"))
        joined = f"{text}, {two} {kind} {three} on {self._equation(columns, others)}"
        return joined, [*scope, *columns, *others]

    def _table(self) -> tuple[str, Scope]:
        name = self._random.choice(sorted(self._columns))
        self._names += 1
        alias = f"t{self._names}"
        return f"{name} {alias}", [(f"{alias}.{c}", k) for c, k in self._columns[name].items()]

    def _equation(self, left: Scope, right: Scope) -> str:
        pick = self._random
        pairs = [
            (a, b) for a, k in left for b, j in right if k.rstrip("!") == j.rstrip("!") != "bool"
        ]
        a, b = pick.choice(pairs)
        sign = "=" if pick.random() < 0.9 else pick.choice(("<", ">="))
        return f"{a} {sign} {b}"

    def _where(self, scope: Scope, chance: float = 0.6) -> str:
        if self._random.random() > chance:
            return ""
        tests = [self._condition(scope) for _ in range(self._random.choice((1, 1, 2)))]
        return f" where {self._random.choice((' and ', ' or ')).join(tests)}"

    def _condition(self, scope: Scope) -> str:
        pick = self._random
        if pick.random() < 0.6:
            return self._made.test(scope, 2)
        inner, columns = self._table()
        kind = self._kind(columns)
        column = self._made.value(kind, columns, 0)
        correlation = f" where {self._equation(scope, columns)}" if pick.random() < 0.6 else ""
        if correlation and pick.random() < 0.4:
            correlation += f" and {self._made.test([*scope, *columns], 0)}"
        match pick.randrange(5):
            case 0 | 1:
                word = pick.choice(("exists", "not exists"))
                return f"{word} (select 1 from {inner}{correlation})"
            case 2 | 3:
                one = self._made.value(kind, scope, 0)
                word = pick.choice(("in", "not in"))
                return f"{one} {word} (select {column} from {inner}{correlation})"
            case _:
                fold = pick.choice(("min", "max"))
                one = self._made.value(kind, scope, 0)
                sign = pick.choice(("=", "<", ">="))
                return f"{one} {sign} (select {fold}({column}) from {inner}{correlation})"

    def _columns_of(self, scope: Scope, depth: int = 2) -> str:
        pick = self._random
        shown = [
            self._made.value(self._kind(scope), scope, pick.randint(0, depth))
            for _ in range(pick.randint(1, 3))
        ]
        if pick.random() < 0.2:
            inner, columns = self._table()
            numbers = [n for n, k in columns if k.startswith("int")]
            fold = (
                pick.choice((f"count({numbers[0]})", "count(*)", f"sum({numbers[0]})"))
                if (numbers)
                else "count(*)"
            )
            shown.append(f"(select {fold} from {inner} where {self._equation(scope, columns)})")
        return ", ".join(f"{text} as c{place}" for place, text in enumerate(shown))

    def _of_kinds(self, kinds: list[str]) -> str:
        source, scope = self._from(joins=self._random.choice((0, 0, 1)))
        shown = [f"{self._made.value(kind, scope, 1)} as c{n}" for n, kind in enumerate(kinds)]
        return f"select {', '.join(shown)} {source}{self._where(scope)}"

    def _all(self) -> Scope:
        return [(name, kind) for own in self._columns.values() for name, kind in own.items()]

    def _kind(self, scope: Scope) -> str:
        return self._random.choice(scope)[1].rstrip("!")

    def _number(self, scope: Scope, depth: int = 1) -> str:
        kinds = [k.rstrip("!") for _, k in scope if k.startswith(("int", "float", "decimal"))]
        return self._made.value(self._random.choice(kinds or ["int"]), scope, depth)

    def _aggregate(self, scope: Scope) -> str:
        pick = self._random
        any_value = self._made.value(self._kind(scope), scope, 1)
        number = self._number(scope)
        text = pick.choice(
            (
                *("count(*)", f"count({any_value})", f"count(distinct {any_value})"),
                *(f"sum({number})", f"avg({number})", f"sum(distinct {number})"),
                *(f"min({any_value})", f"max({any_value})", f"avg(distinct {number})"),
                *(self._of_typed(scope, number) if self._typed else ()),
            )
        )
        if pick.random() < 0.2:
            text += f" filter (where {self._made.test(scope, 1)})"
        return text

    def _of_typed(self, scope: Scope, number: str) -> tuple[str, ...]:
        """Aggregates of DuckDB alone."""
        value = self._made.value
        whole, text = value("int", scope, 0), value("text", scope, 0)
        test = self._made.test(scope, 1)
        return (
            *(f"bool_and({test})", f"bool_or({test})", f"bit_and({whole})", f"bit_or({whole})"),
            *(f"bit_xor({whole})", f"stddev({number})", f"var_pop({number})", f"median({number})"),
            *(f"string_agg({text}, ',' order by {text})", f"array_agg({whole} order by {whole})"),
            *(f"quantile_cont({number}, 0.25)", f"quantile_disc({number}, 0.5)"),
            *(f"variance({number})", f"stddev_pop({number})", f"count_if({test})"),
            f"string_agg(distinct {text}, '-' order by {text} desc)",
        )

    def _having(self, scope: Scope) -> str:
        sign = self._random.choice((">", "<=", "<>"))
        return self._random.choice(
            (
                f"count(*) {sign} {self._random.randint(1, 3)}",
                f"sum({self._number(scope, 0)}) {sign} 4",
                f"min({self._number(scope, 0)}) is not null",
            )
        )

    def _window(self, scope: Scope) -> str:
        """A window function whose order leaves no ties, or that ties do not matter to."""
        pick = self._random
        value = self._made.value(self._kind(scope), scope, 0)
        number = self._number(scope, 0)
        partition = self._random.choice(scope)[0]
        by = f"partition by {partition} " if pick.random() < 0.7 else ""
        all_columns = [name for name, _ in scope]
        ties = ", ".join(f"{name}{self._direction()}" for name in pick.sample(all_columns, 1))
        total = ", ".join([ties, *(name for name in all_columns)])
        if pick.random() < 0.45:
            function = pick.choice(
                (
                    *("row_number()", f"ntile({pick.randint(1, 4)})", f"lag({value})"),
                    *(f"lead({value}, {pick.randint(0, 2)})", f"first_value({value})"),
                    *(f"last_value({value})", f"nth_value({value}, 2)"),
                )
            )
            return f"{function} over ({by}order by {total})"
        if pick.random() < 0.5:
            function = pick.choice(
                (
                    *("rank()", "dense_rank()", f"sum({number})", "count(*)", f"min({value})"),
                    *(f"max({value})", f"avg({number})", "percent_rank()", "cume_dist()"),
                )
            )
            return f"{function} over ({by}order by {ties})"
        fold = pick.choice((f"sum({number})", f"count({value})", f"min({value})", f"avg({number})"))
        if pick.random() < 0.3:
            return f"{fold} over ({by.strip()})"
        if pick.random() < 0.3:
            key, sides = (
                self._number(scope, 0),
                ("1 preceding", "unbounded preceding", "current row"),
            )
            unit = pick.choice(("range", "groups"))
            ends = ("current row", "2 following", "unbounded following")
            words = f"{unit} between {pick.choice(sides)} and {pick.choice(ends)}"
            words += pick.choice(
                ("", "", " exclude current row", " exclude group", " exclude ties")
            )
            return f"{fold} over ({by}order by {key}{self._direction()} {words})"
        frame = pick.choice(
            (
                *("rows between 1 preceding and current row", "rows 2 preceding"),
                *("rows between unbounded preceding and 1 preceding",),
                *("rows between 1 preceding and 2 following",),
                *("rows between current row and unbounded following",),
                *("rows between 2 following and 3 following",),
            )
        )
        return f"{fold} over ({by}order by {total} {frame})"
