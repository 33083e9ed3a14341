"""Lifted expressions as Spark columns give what Python gives, for odd values of every type."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from optimizer.callables.opaque import opaque
from optimizer.expr import (
    And,
    Attribute,
    Call,
    Conditional,
    Display,
    Expr,
    Item,
    Lifted,
    Operation,
    Or,
    Parameter,
    constant,
    tuple_of,
)
from optimizer.expressions.text import text
from optimizer.lifting.lift import lift
from reactive.engine.codegen.functions import callable_of
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.columns import truth_of, value_of
from spark_backend.codec.schema import Record, kept_as
from spark_backend.codec.values import Inexact, Value

NAN, INF = float("nan"), float("inf")
P53, N53, ODD53, N63 = 2.0**53, 2**53, 2**53 + 1, 2**63
MOST, LEAST = 2**63 - 1, -(2**63)


@dataclass(frozen=True)
class Inner:
    x: int
    label: str | None


class Pair(NamedTuple):
    first: float
    second: int | None


@dataclass(frozen=True)
class Odd:
    i: int
    j: int | None
    f: float
    g: float | None
    s: str
    t: str | None
    b: bool
    c: bool | None
    day: date
    at: datetime | None
    money: Decimal
    raw: bytes
    inner: Inner | None
    pair: Pair
    two: tuple[str, int]


INTS = [0, 1, -1, 2, 3, -3, 7, 10, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, MOST, MOST - 1, LEAST]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, NAN, INF, -INF, 5e-324, 1e308, 2.0**53, 2.0**63, 1e16]
TEXTS = ["", "a", "A", "ab", "ba", " a ", "é", "e\u0301", "ß", "\U0001f600", "\uffff", "a\0", "aa"]
DAYS = [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(2024, 2, 29), date.max]
TIMES = [datetime.min, datetime(1900, 1, 1, 0, 0, 0, 1), datetime(2024, 3, 31, 2, 30), datetime.max]
MONEY = [Decimal(v) for v in ("0", "-0.00", "1", "1.10", "-1.1", "12345678901234567890.5", "1E-18")]
RAW = [b"", b"a", b"\x00", b"\xff", b"ab"]


def odd_rows(count: int = 150) -> list[Odd]:
    draw = random.Random(7)
    pick = draw.choice

    def maybe(values: list[Any]) -> Any:
        return None if draw.random() < 0.3 else pick(values)

    def row() -> Odd:
        inner = None if draw.random() < 0.3 else Inner(pick(INTS), maybe(TEXTS))
        return Odd(
            *(pick(INTS), maybe(INTS), pick(FLOATS), maybe(FLOATS), pick(TEXTS), maybe(TEXTS)),
            *(pick([True, False]), maybe([True, False]), pick(DAYS), maybe(TIMES), pick(MONEY)),
            *(pick(RAW), inner, Pair(pick(FLOATS), maybe(INTS)), (pick(TEXTS), pick(INTS))),
        )

    return [row() for _ in range(count)]


ROWS = odd_rows()
KEPT = kept_as(Odd)


@pytest.fixture
def frame(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """The rows in Parquet files, which Spark asks before it reads."""
    assert isinstance(KEPT, Record)
    numbers = pa.array(range(len(ROWS)), pa.int64())
    table = pa.table({"number": numbers, "row": to_arrow(KEPT, ROWS)})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=10)
    return spark.read.parquet(str(tmp_path))


def row_value() -> Value:
    assert isinstance(KEPT, Record)
    return Value(F.col("row"), KEPT)


def same(a: Any, b: Any) -> bool:
    """Equal and of the same types, a NaN only to a NaN, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Inner):
        return same(a.x, b.x) and same(a.label, b.label)
    return bool(a == b) or (a != a and b != b)


def check(frame: DataFrame, expressions: list[Expr]) -> list[tuple[Expr, str]]:
    """Compare all expressions that have a column with Python; the others, with the reason."""
    refused, found = [], []
    for expr in expressions:
        try:
            function = Lifted(expr, ("o",), (), 1)
            found.append(
                (expr, value_of(function, [row_value()]), truth_of(function, [row_value()]))
            )
        except Inexact as reason:
            refused.append((expr, str(reason)))
    columns = [value.column.alias(f"v{n}") for n, (_, value, _) in enumerate(found)]
    columns += [holds.alias(f"t{n}") for n, (_, _, holds) in enumerate(found)]
    table = frame.select("number", *columns).toArrow().sort_by("number").combine_chunks()
    for n, (expr, value, _) in enumerate(found):
        call = callable_of(Lifted(expr, ("o",), (), 1))
        got = from_arrow(value.of, table.column(f"v{n}").combine_chunks())
        holds = table.column(f"t{n}").to_pylist()
        for row, a, b in zip(ROWS, got, holds, strict=True):
            expected = call(row)
            assert same(a, expected), f"{text(expr, ('o',))} of {row}: {a!r}, not {expected!r}"
            assert b is bool(expected), f"truth of {text(expr, ('o',))} of {row}"
    return refused


class Generator:
    """Expressions over `Odd`, of a wanted type; some of them cannot be columns."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def of(self, kind: str, depth: int) -> Expr:
        makers: dict[str, Callable[[int], Expr]] = {
            "int": self.number,
            "float": self.floating,
            "str": self.string,
            "any": self.anything,
            "test": self.test,
        }
        return makers[kind](depth)

    def field(self, *names: str) -> Expr:
        return Attribute(Parameter(0), self.draw.choice(names))

    def number(self, depth: int) -> Expr:
        inner = Attribute(Attribute(Parameter(0), "inner"), "x")
        item = Item(Attribute(Parameter(0), "two"), constant(self.draw.choice([1, -1])))
        leaf = self.draw.choice(
            [
                self.field("i", "b"),
                constant(self.draw.choice(INTS)),
                self.field("i", "j"),
                inner,
                item,
            ]
        )
        if depth <= 0:
            return leaf
        shape = self.draw.randrange(6)
        if shape == 0:
            operator = self.draw.choice(["//", "%"])
            return Operation(
                operator,
                (
                    self.number(depth - 1),
                    constant(self.draw.choice([1, 2, 3, -1, -2, -7, MOST, LEAST])),
                ),
            )
        if shape == 1:
            return Operation("-", (self.number(depth - 1),))
        if shape == 2:
            return Call(constant(abs), (self.number(depth - 1),))
        if shape == 3:
            return Call(constant(len), (self.string(depth - 1),))
        if shape == 4:
            return self.conditional("int", depth)
        operator = self.draw.choice(["+", "-", "*"])
        return Operation(operator, (self.number(depth - 1), self.number(depth - 1)))

    def floating(self, depth: int) -> Expr:
        leaf = self.draw.choice(
            [self.field("f", "g"), constant(self.draw.choice(FLOATS)), self.field("f")]
        )
        if depth <= 0:
            return leaf
        operator = self.draw.choice(["+", "-", "*", "/"])
        right = self.draw.choice([self.floating, self.number])(depth - 1)
        return Operation(operator, (self.floating(depth - 1), right))

    def string(self, depth: int) -> Expr:
        leaf = self.draw.choice(
            [self.field("s"), self.field("s", "t"), constant(self.draw.choice(TEXTS))]
        )
        if depth <= 0:
            return leaf
        shape = self.draw.randrange(5)
        if shape == 0:
            start, stop = self.draw.choice([(None, 2), (1, None), (0, 1), (2, 1), (1, 3)])
            bounds = Display("slice", (constant(start), constant(stop), constant(None)))
            return Item(self.string(depth - 1), bounds)
        if shape == 1:
            name = self.draw.choice(["strip", "lstrip", "rstrip"])
            return self.called(name, depth, self.draw.choice(["a", " a", "é\u0301", "\U0001f600b"]))
        if shape == 2:
            pairs = [("a", "b"), ("aa", ""), ("é", "xyz"), ("a", "aa")]
            return self.called("replace", depth, *self.draw.choice(pairs))
        if shape == 3:
            return self.conditional("str", depth)
        return Operation("+", (self.string(depth - 1), self.string(depth - 1)))

    def called(self, name: str, depth: int, *arguments: Any) -> Expr:
        return Call(Attribute(self.string(depth - 1), name), tuple(map(constant, arguments)))

    def conditional(self, kind: str, depth: int) -> Expr:
        both = self.of(kind, depth - 1), self.of(kind, depth - 1)
        if self.draw.random() < 0.4:
            return self.draw.choice([And, Or])(both)
        return Conditional(self.test(depth - 1), *both)

    def anything(self, depth: int) -> Expr:
        kind = self.draw.choice(["int", "float", "str", "test", "field", "field", "field", "tuple"])
        if kind == "field":
            return self.field("day", "at", "money", "raw", "inner", "pair", "two", "c", "j", "t")
        if kind == "tuple":
            return tuple_of(self.anything(0), self.anything(depth - 1 if depth > 0 else 0))
        return self.of(kind, depth)

    def test(self, depth: int) -> Expr:
        if depth <= 0:
            return self.draw.choice([self.field("b", "c"), constant(True), self.compared(0)])
        shape = self.draw.randrange(8)
        if shape <= 2:
            return self.compared(depth - 1)
        if shape == 3:
            return Operation("not", (self.anything(depth - 1),))
        if shape == 4:
            optional = self.field("j", "g", "t", "at", "inner", "c")
            more = Operation(self.draw.choice(["<", ">="]), (optional, self.like(optional)))
            known = Operation("is not", (optional, constant(None)))
            if self.draw.random() < 0.5:
                return And((self.draw.choice([known, optional]), more))
            return Or((Operation("is", (optional, constant(None))), more))
        if shape == 5:
            name, wanted = (
                self.draw.choice(["startswith", "endswith"]),
                ["", "a", "é", ("a", "b"), ()],
            )
            return self.called(name, depth, self.draw.choice(wanted))
        if shape == 6:
            return self.membership(depth - 1)
        parts = (self.test(depth - 1), self.test(depth - 1), self.anything(0))
        return self.draw.choice([And, Or])(parts)

    def like(self, optional: Expr) -> Expr:
        """Something that an optional field can be compared with."""
        assert isinstance(optional, Attribute)
        values: dict[str, list[Any]] = {"j": INTS, "g": FLOATS, "t": TEXTS, "at": TIMES}
        values |= {"inner": [0], "c": [True]}
        return constant(self.draw.choice(values[optional.name]))

    def compared(self, depth: int) -> Expr:
        operator = self.draw.choice(["==", "!=", "<", "<=", ">", ">="])
        kinds = [
            ("int", "int"),
            ("float", "float"),
            ("str", "str"),
            ("int", "float"),
            ("any", "any"),
        ]
        fields: list[tuple[str, list[Any]]] = [("day", DAYS), ("money", MONEY), ("raw", RAW)]
        if self.draw.random() < 0.25:
            name, values = self.draw.choice(fields)
            return Operation(operator, (self.field(name), constant(self.draw.choice(values))))
        return Operation(operator, tuple(self.of(k, depth) for k in self.draw.choice(kinds)))

    def membership(self, depth: int) -> Expr:
        operator = self.draw.choice(["in", "not in"])
        if self.draw.random() < 0.3:
            return Operation(operator, (self.string(depth), self.string(depth)))
        pools: list[tuple[str, list[Any]]] = [("int", INTS), ("float", FLOATS), ("str", TEXTS)]
        kind, values = self.draw.choice(pools)
        odd: list[list[Any]] = [[], [None], [True]]
        some = self.draw.sample([*values, *self.draw.choice(odd)], 4)
        return Operation(operator, (self.of(kind, depth), constant(tuple(some))))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_a_column_gives_what_python_gives(frame: DataFrame, seed: int) -> None:
    generator = Generator(seed)
    makers = [generator.anything, generator.test, generator.number, generator.floating]
    expressions = [make(n % 4) for make in makers for n in range(60)]
    refused = check(frame, expressions)
    assert len(refused) < 0.6 * len(expressions)
    assert all(reason for _, reason in refused)


def expression(function: Callable[[Odd], Any]) -> Expr:
    return lift(opaque(function, 1, "where"), (Odd,)).body


COLUMNS: list[Callable[[Odd], Any]] = [
    lambda o: o.i > 2.5,
    lambda o: o.i <= -2.5,
    lambda o: o.i > 2.5,
    lambda o: o.i == 2.5,
    lambda o: o.i == P53,
    lambda o: o.i != 1e300,
    lambda o: o.i < INF,
    lambda o: o.f == N53,
    lambda o: o.f < N63,
    lambda o: o.f == 0,
    lambda o: o.f in (0.0, 2.5, None),
    lambda o: o.g in (0.0, 2.5, None),
    lambda o: o.j in (1, ODD53),
    lambda o: o.t not in ("a", "é"),
    lambda o: o.i * 1.1,
    lambda o: o.i * 3 + o.i * o.i if o.b else o.i,
    lambda o: o.i > -INF and o.i <= NAN,
    lambda o: o.i <= 1e300,
    lambda o: o.i > -1e300,
    lambda o: o.i * o.i - o.two[1] * 7,
    lambda o: -o.i,
    lambda o: o.i % 1000 / 7,
    lambda o: len(o.s) / 3,
    lambda o: o.i // -1,
    lambda o: o.i % -7,
    lambda o: o.b + o.b,
    lambda o: o.b < 2,
    lambda o: o.c is True,
    lambda o: o.c is not False,
    lambda o: o.c == o.b,
    lambda o: o.b is None,
    lambda o: o.inner is not None and o.inner.x > 3,
    lambda o: not o.inner or o.inner.label is None or o.inner.label < "b",
    lambda o: (o.inner.label or "none") if o.inner else "no one",
    lambda o: o.inner == Inner(1, "a"),
    lambda o: o.inner == o.inner,
    lambda o: o.two == ("a", 1),
    lambda o: o.two[0] + o.two[-2],
    lambda o: o.pair.first < o.f,
    lambda o: o.pair[1],
    lambda o: Inner(o.i, o.t),
    lambda o: Inner(o.i * 2, None),
    lambda o: (o.day, (o.at, None), o.money),
    lambda o: o.money > 1,
    lambda o: o.money == Decimal("1.10"),
    lambda o: o.day >= date(1582, 10, 10),
    lambda o: o.at is not None and o.at > datetime(2024, 3, 31, 2, 30),
    lambda o: o.raw < b"\xff" and bool(o.raw),
    lambda o: o.s[1:3] + o.s[:1] == "aba",
    lambda o: "a" in o.s and o.s in "abab",
    lambda o: o.s < "\uffff",
    lambda o: o.t or o.s or None,
    lambda o: abs(o.f) > 1 or o.f != o.f,
    lambda o: not o.f < 1.0,
]


def test_written_expressions_are_columns(frame: DataFrame) -> None:
    assert check(frame, [expression(f) for f in COLUMNS]) == []


REFUSED: list[tuple[Callable[[Odd], Any], str]] = [
    (lambda o: o.j < 3, "an order may raise for None"),  # type: ignore[operator]
    (lambda o: o.j + 1, "arithmetic may raise for None"),  # type: ignore[operator]
    (lambda o: o.inner.x, ".x may raise for None"),  # type: ignore[union-attr]
    (lambda o: o.i == o.f, "an integer beyond 2**53 is compared with a float"),
    (lambda o: o.i / 2, "/ of integers beyond 2**53"),
    (lambda o: o.i / o.i, "/ may be by zero"),
    (lambda o: o.i // o.i, "// may be by zero"),
    (lambda o: o.f // 2.0, "// of floats"),
    (lambda o: o.f % 2.0, "% of floats"),
    (lambda o: o.i**2, "** is not Spark's"),
    (lambda o: o.i * o.i * o.i, "more than 38 digits"),
    (lambda o: o.s.upper(), ".upper() is not Spark's"),
    (lambda o: o.s.lower(), ".lower() is not Spark's"),
    (lambda o: o.s.strip(), ".strip() is not Spark's"),
    (lambda o: o.s[0], "an item of str may not be there"),
    (lambda o: o.s[-2:], "the slice is not Spark's"),
    (lambda o: f"{o.i}", "text has no column"),
    (lambda o: o.money + 1, "arithmetic of Decimal"),
    (lambda o: o.money == o.f, "Decimal is compared with float"),
    (lambda o: o.day == o.at, "date is compared with datetime"),
    (lambda o: o.pair == Pair(1.0, 2), "a NaN in a record is compared by identity"),
    (lambda o: o.f in (1.0, NAN), "a search for NaN"),
    (lambda o: o.s is o.t, "'is' asks for the same object"),
    (lambda o: o.s == 1, "str is compared with int"),  # type: ignore[comparison-overlap]
    (lambda o: o.s or 1, "it is int or str"),
    (lambda o: round(o.f), "round() is not Spark's"),
    (lambda o: [o.i], "display has no column"),
    (lambda o: o.s == "\ud800", "has no Spark type"),
]


@pytest.mark.parametrize(("function", "reason"), REFUSED, ids=[r for _, r in REFUSED])
def test_where_spark_means_something_else_it_is_refused(
    spark: SparkSession, function: Callable[[Odd], Any], reason: str
) -> None:
    with pytest.raises(Inexact) as error:
        value_of(Lifted(expression(function), ("o",), (), 1), [row_value()])
    assert reason in str(error.value)


FILTERS: list[Callable[[Odd], Any]] = [
    lambda o: o.t and len(o.t),
    lambda o: o.inner is None or o.inner.x // 10,
    lambda o: o.inner and o.inner.label,
    lambda o: o.f == 0.0,
    lambda o: o.f != 0.0,
    lambda o: o.f > 1.0,
    lambda o: not o.f <= 1.0,
    lambda o: o.f in (0.0, 1.0),
    lambda o: not o.f,
    lambda o: o.g == -0.0,
    lambda o: o.pair.first >= 0.0,
    lambda o: o.i == 7 or o.s.startswith("a"),
    lambda o: o.t == "a",
    lambda o: o.t != "a",
    lambda o: o.inner is None,
    lambda o: o.day < date(1970, 1, 1),
    lambda o: o.money == 0,
    lambda o: o.raw > b"a",
]


@pytest.mark.quick
def test_filters_keep_what_python_keeps_though_files_are_asked_first(frame: DataFrame) -> None:
    """Statistics and dictionaries of Parquet files know nothing of NaN, nor that -0.0 is 0.0."""
    parts = [
        frame.filter(truth_of(Lifted(expression(f), ("o",), (), 1), [row_value()])).select(
            F.lit(n).alias("filter"), "number"
        )
        for n, f in enumerate(FILTERS)
    ]
    found = reduce(DataFrame.unionAll, parts).toArrow().to_pylist()
    for n, f in enumerate(FILTERS):
        kept = sorted(row["number"] for row in found if row["filter"] == n)
        assert kept == [place for place, row in enumerate(ROWS) if f(row)], n
