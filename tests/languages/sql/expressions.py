"""Draw SQL expressions of a type over the columns in scope."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.languages.sql.shop import literal

Scope = list[tuple[str, str]]
"""Columns as they are written, and their types."""

NUMBERS = ("int", "float", "decimal")


class Expressions:
    """Expressions of a depth; `typed` says that functions and types of DuckDB may be used."""

    def __init__(self, random: Random, *, typed: bool) -> None:
        self.random = random
        self.typed = typed

    def value(self, kind: str, scope: Scope, depth: int) -> str:
        """An expression of a type."""
        pick = self.random
        columns = [name for name, own in scope if own.rstrip("!") == kind]
        if depth <= 0 or pick.random() < 0.3:
            return pick.choice(columns) if columns and pick.random() < 0.85 else literal(kind, pick)
        made = pick.choice(self._forms(kind))
        return made(scope, depth - 1)

    def test(self, scope: Scope, depth: int) -> str:
        """A condition."""
        pick = self.random
        if depth <= 0 or pick.random() < 0.45:
            return self._simple(scope, depth)
        match pick.randrange(5):
            case 0:
                return f"not ({self.test(scope, depth - 1)})"
            case 1 | 2:
                return f"({self.test(scope, depth - 1)} and {self.test(scope, depth - 1)})"
            case 3:
                return f"({self.test(scope, depth - 1)} or {self.test(scope, depth - 1)})"
            case _:
                inner = self.test(scope, depth - 1)
                word = pick.choice(("is true", "is not true", "is false", "is not false"))
                return f"({inner}) {word}" if self.typed else f"(({inner}) is null)"

    def _simple(self, scope: Scope, depth: int) -> str:
        pick = self.random
        kinds = sorted({own.rstrip("!") for _, own in scope} - {"bool"})
        kind = pick.choice(kinds)
        one = self.value(kind, scope, depth - 1)
        match pick.randrange(9):
            case 0:
                return f"{one} is {pick.choice(('', 'not '))}null"
            case 1:
                items = [literal(kind, pick) for _ in range(pick.randint(1, 3))]
                items += ["null"] * (pick.random() < 0.2)
                return f"{one} {pick.choice(('in', 'not in'))} ({', '.join(items)})"
            case 2:
                low, high = self.value(kind, scope, 0), self.value(kind, scope, 0)
                return f"{one} {pick.choice(('between', 'not between'))} {low} and {high}"
            case 3:
                pattern = pick.choice(("'%e%'", "'r_d'", "'%'", "'_'", "''", "'a\\_b'", "'gr%n'"))
                text = self.value("text", scope, depth - 1)
                return f"{text} {pick.choice(('like', 'not like'))} {pattern}"
            case 4 if self.typed:
                other = self.value(kind, scope, depth - 1)
                return f"{one} is {pick.choice(('', 'not '))}distinct from {other}"
            case 5 if self.typed and any(own.startswith("bool") for _, own in scope):
                return self.value("bool", scope, 0)
            case _:
                sign = pick.choice(("=", "=", "<>", "<", "<=", ">", ">="))
                return f"{one} {sign} {self.value(kind, scope, depth - 1)}"

    def _forms(self, kind: str) -> list[Callable[[Scope, int], str]]:
        return [self._case(kind), self._coalesce(kind), self._nullif(kind), *self._own(kind)]

    def _own(self, kind: str) -> list[Callable[[Scope, int], str]]:
        common = self._of(kind, _COMMON.get(kind, ()))
        return common + (self._of(kind, _TYPED.get(kind, ())) if self.typed else [])

    def _of(self, kind: str, patterns: tuple[str, ...]) -> list[Callable[[Scope, int], str]]:
        def made(pattern: str) -> Callable[[Scope, int], str]:
            return lambda scope, depth: self._filled(pattern, scope, depth)

        return [made(pattern) for pattern in patterns]

    def _filled(self, pattern: str, scope: Scope, depth: int) -> str:
        """A pattern with an expression in the place of each `{type}`."""
        while "{" in pattern:
            before, _, rest = pattern.partition("{")
            kind, _, after = rest.partition("}")
            made = self.test(scope, depth) if kind == "test" else self.value(kind, scope, depth)
            pattern = f"{before}{made}{after}"
        return pattern

    def _case(self, kind: str) -> Callable[[Scope, int], str]:
        def made(scope: Scope, depth: int) -> str:
            def value() -> str:
                return self.value(kind, scope, depth)

            if self.random.random() < 0.3:
                other = self.value("text", scope, 0)
                return f"case {other} when 'red' then {value()} when 'blue' then {value()} end"
            end = f" else {value()}" if self.random.random() < 0.7 else ""
            return f"case when {self.test(scope, depth)} then {value()}{end} end"

        return made

    def _coalesce(self, kind: str) -> Callable[[Scope, int], str]:
        return lambda scope, depth: (
            f"coalesce({self.value(kind, scope, depth)}, {self.value(kind, scope, depth)})"
        )

    def _nullif(self, kind: str) -> Callable[[Scope, int], str]:
        return lambda scope, depth: (
            f"nullif({self.value(kind, scope, depth)}, {literal(kind, self.random)})"
        )


_COMMON: dict[str, tuple[str, ...]] = {
    "int": (
        *("({int} + {int})", "({int} - {int})", "({int} * {int})", "(-{int})"),
        *("abs({int})", "length({text})", "({int} % 3)", "cast({float} * 2 as integer)"),
        "instr({text}, 'e')",
    ),
    "float": (
        *("({float} + {float})", "({float} - {int})", "({float} * {float})", "abs({float})"),
        *("round({float}, 1)", "({float} / 2.5e0)", "cast({int} as double)"),
    ),
    "text": (
        *("upper({text})", "lower({text})", "({text} || {text})", "trim({text})"),
        *("substr({text}, 2)", "substr({text}, 1, 2)", "replace({text}, 'e', 'oo')"),
        *("cast({int} as text)", "ltrim({text}, 'r')", "rtrim({text}, 'd')"),
    ),
}
_TYPED: dict[str, tuple[str, ...]] = {
    "int": (
        *(
            "extract(year from {date})",
            "extract(month from {timestamp})",
            "date_part('day', {date})",
        ),
        *("({date} - {date})", "({int} // 4)", "greatest({int}, {int})", "least({int}, 3)"),
        *(
            "strpos({text}, 'r')",
            "cast({decimal} as integer)",
            "sign({int})",
            "cast({bool} as int)",
        ),
        *(
            "datediff('day', {date}, {date})",
            "extract(dow from {date})",
            "extract(quarter from {date})",
        ),
    ),
    "float": (
        *("({int} / {int})", "({decimal} / 3)", "cast({decimal} as double)", "sqrt(abs({float}))"),
        *("power({float}, 2)", "ln(abs({float}) + 1)", "extract(epoch from {timestamp})"),
    ),
    "decimal": (
        *("({decimal} + {decimal})", "({decimal} - {int})", "({decimal} * {decimal})"),
        *("round({decimal}, 1)", "cast({int} as decimal(10,2))", "abs({decimal})", "(-{decimal})"),
        *("cast({float} as decimal(12,3))", "ceil({decimal})", "floor({decimal})"),
    ),
    "text": (
        *(
            "concat({text}, {int}, {text})",
            "left({text}, 2)",
            "right({text}, 2)",
            "reverse({text})",
        ),
        *("cast({decimal} as varchar)", "cast({date} as varchar)", "lpad({text}, 6, '*')"),
        *("repeat({text}, 2)", "cast({bool} as varchar)", "strftime({timestamp}, '%Y-%m')"),
        *("split_part({text}, '_', 1)", "cast({timestamp} as varchar)", "initcap({text})"),
    ),
    "bool": ("({test})", "(not {bool})", "({int} = {int})", "starts_with({text}, 'r')"),
    "date": (
        *("({date} + {int})", "({date} - 3)", "cast({timestamp} as date)", "last_day({date})"),
        *("cast(date_trunc('month', {date}) as date)", "cast({date} + interval 1 month as date)"),
        "make_date(2024, 2, 3)",
    ),
    "timestamp": (
        *("({timestamp} + interval 3 hour)", "date_trunc('hour', {timestamp})"),
        *(
            "cast({date} as timestamp)",
            "({date} + interval '2' day)",
            "({timestamp} - interval 1 year)",
        ),
    ),
}
"""Texts of expressions by type; `{type}` is an operand of that type, `{test}` a condition."""
