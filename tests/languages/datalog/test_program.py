"""Inputs and outputs of a program."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from reactive import Database, PlanError, Program, TableError
from tests.languages.datalog.play import play

CLOSURE = """
.decl edge(x: number, y: number) .input edge
.decl path(x: number, y: number) .output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@dataclass(frozen=True)
class Road:
    name: str
    y: int
    x: int


class Arc(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("row_type", "rows"),
    [
        (Road, [Road("a", 2, 1), Road("b", 2, 1), Road("c", 3, 2)]),
        (Arc, [Arc(1, 2), Arc(1, 2), Arc(2, 3)]),
        (tuple, [(1, 2), (2, 3), (1, 2)]),
        (tuple[int, int], [(1, 2), (2, 3), (1, 2)]),
    ],
)
def test_a_table_that_is_there_gives_its_rows(row_type: Any, rows: list[Any]) -> None:
    db = Database()
    table = db.table(row_type, name="edge")
    program = db.datalog(CLOSURE)
    assert program.tables == {"edge": table}
    paths = program["path"].materialize()
    table.add_all(rows)
    assert sorted(paths) == [(1, 2), (1, 3), (2, 3)]
    paths.verify()
    table.remove(rows[0])
    assert (1, 2) in paths
    for row in rows[1:]:
        table.remove(row)
    assert list(paths) == []


def test_a_plain_value_is_the_only_column() -> None:
    db = Database()
    words = db.table(str, name="word")
    long = db.datalog("""
        .decl word(s: symbol) .input word
        .decl long(s: symbol) .output long
        long(s) :- word(s), strlen(s) > 2.
    """)["long"].materialize()
    words.add_all(["to", "not", "not"])
    assert list(long) == [("not",)]


def test_relations_may_be_given_and_have_rules_and_facts_too() -> None:
    db = Database()
    arcs = db.table(Arc, name="arcs")
    pairs = arcs.join(arcs, on=lambda a, b: a.y == b.x).select(lambda a, b: (a.x, b.y))
    program = db.datalog(
        CLOSURE.replace(".input edge", "") + "edge(7, 8). edge(x, x) :- edge(x, 8).",
        inputs={"edge": pairs},
    )
    paths = program["path"].materialize()
    assert sorted(paths) == [(7, 7), (7, 8)] and program.tables == {}
    arcs.add_all([Arc(1, 2), Arc(2, 7)])
    assert sorted(paths) == [(1, 7), (1, 8), (7, 7), (7, 8)]
    paths.verify()


def test_two_bindings_are_two_columns() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    both = numbers.join(numbers, on=lambda a, b: a + 1 == b)
    paths = db.datalog(CLOSURE, inputs={"edge": both})["path"].materialize()
    numbers.add_all([1, 2, 3])
    assert sorted(paths) == [(1, 2), (1, 3), (2, 3)]


def test_bindings_have_to_be_as_many_as_columns() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    three = numbers.join(numbers).join(numbers)
    with pytest.raises(PlanError, match="has 2 columns, and its rows 3 bindings"):
        db.datalog(CLOSURE, inputs={"edge": three})


def test_missing_fields_are_told() -> None:
    db = Database()
    db.table(Road, name="edge")
    with pytest.raises(PlanError, match="has columns that Road lacks: z\n  it has name, y, x"):
        db.datalog(".decl edge(x: number, z: number) .input edge")


def test_a_program_is_a_mapping_of_its_outputs() -> None:
    program = Database().datalog(CLOSURE)
    assert isinstance(program, Program)
    assert (list(program), len(program), repr(program)) == (["path"], 1, "Program(path)")
    assert "path" in program and "edge" in program and program["edge"] is program["edge"]
    with pytest.raises(KeyError, match="no relation 'pth'; did you mean 'path'"):
        program["pth"]


def test_programs_of_one_database_share_tables_and_rows() -> None:
    db = Database()
    first, second = db.datalog(CLOSURE), db.datalog(CLOSURE)
    assert first.tables == second.tables and first.row("edge") is second.row("edge")
    views = [program["path"].materialize() for program in (first, second)]
    first.tables["edge"].add(first.row("edge")(1, 2))
    assert [list(view) for view in views] == [[(1, 2)], [(1, 2)]]


def test_rows_can_be_pickled() -> None:
    program = Database().datalog(
        '.type L = [h: number, t: L]\n.decl a(from: number, ?l: L, _x: symbol) a(1, [2, nil], "s").'
    )
    (row,) = program["a"].materialize()
    assert repr(row) == "a(from_=1, q_l=L(h=2, t=None), q_x='s')"
    again = pickle.loads(pickle.dumps(row))
    assert again == row and type(again) is type(row) and type(again.q_l) is type(row.q_l)


BITS = """
.decl n(x: number) .input n
.decl r(x: number, y: number) .output r
r(x * 1000000007, -2147483647 - x) :- n(x).
r(x bshl 31, x ^ 40 + bnot x) :- n(x).
r(-x bshl (x - 2), -x bshru (x * 32)) :- n(x).
r(x bshr (x + 31), -x bshru (x + 3)) :- n(x).
.decl s(x: number) .output s
s(t) :- t = sum y : { r(y, _) }.
"""


@pytest.mark.parametrize("bits", [None, 32, 64])
def test_numbers_wrap_round_where_they_have_a_width(bits: int | None) -> None:
    play(BITS, 1, bits=bits)
    play(BITS, 2, bits=bits)


def test_places_of_a_shift_wrap_round_as_numbers_do() -> None:
    text = """
        .decl n(x: number, by: number) n(-10, -1). n(-10, 1). n(1, -32). n(1, 37).
        .decl l(x: number, by: number, y: number) .output l
        l(x, by, x bshl by) :- n(x, by).
        .decl r(x: number, by: number, y: number) .output r
        r(x, by, x bshru by) :- n(x, by).
        .decl u(y: unsigned) .output u
        u(3u bshl 33u). u(as(7, unsigned) bshr 34u).
    """

    def found(bits: int | None) -> list[list[tuple[int, ...]]]:
        program = Database().datalog(text, bits=bits)
        return [sorted(map(tuple, program[name].materialize())) for name in "lru"]

    assert found(32) == [
        [(-10, -1, 0), (-10, 1, -20), (1, -32, 1), (1, 37, 32)],
        [(-10, -1, 1), (-10, 1, 2**31 - 5), (1, -32, 1), (1, 37, 0)],
        [(1,), (6,)],
    ]
    assert found(64)[0][-1] == (1, 37, 2**37) and found(64)[1][1] == (-10, 1, 2**63 - 5)
    assert found(None) == [[(-10, 1, -20)], [(-10, 1, 2**31 - 5)], [(1,), (6,)]]


def test_a_change_of_one_fact_touches_what_it_affects() -> None:
    def touched(count: int) -> int:
        program = Database().datalog("""
            .decl a(x: number, y: number) .input a
            .decl b(x: number, n: number) .output b
            b(x, n) :- a(x, y), n = count : { a(y, _) }, !a(y, x).
        """)
        view, row = program["b"].materialize(), program.row("a")
        program.tables["a"].add_all([row(i, i + 1) for i in range(count)])
        before = view.stats().touched
        program.tables["a"].add(row(5, 1000))
        return view.stats().touched - before

    assert touched(30) == touched(900)


def test_an_input_that_is_inline_is_read() -> None:
    program = Database().datalog(
        ".decl b(x: number) inline .input b .decl c(x: number) .output c c(x) :- b(x). b(7)."
    )
    rows = program["c"].materialize()
    program.tables["b"].add(program.row("b")(1))
    assert sorted(row.x for row in rows) == [1, 7]


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("[[:alpha:]_][[:alnum:]_]*", ["x", "_1", "aB3"], ["1", "", "é", ":"]),
        ("[^[:digit:]]+", ["a:", "["], ["1", ""]),
        ("[[:upper:][:digit:]-]+", ["A-1"], ["a"]),
        ("[[:space:]]", [" ", "\t", "\n"], ["s", "[[:space:]]"]),
        ("[[:punct:]]+", ["!-]`~"], ["a", " "]),
        ("[[:xdigit:]]{2}", ["aF"], ["g0"]),
        ("[[.-.][=a=]]+", ["-a"], ["."]),
        (r"\\[[:digit:]\\]", [], ["[1]"]),
        ("[[:no:]]", [], ["n", ":"]),
    ],
)
def test_a_pattern_has_named_classes(pattern: str, fits: list[str], fails: list[str]) -> None:
    program = Database().datalog(
        ".decl s(x: symbol) .input s .decl f(x: symbol) .output f "
        f'f(x) :- s(x), match("{pattern}", x).'
    )
    rows = program["f"].materialize()
    for text in (*fits, *fails):
        program.tables["s"].add(program.row("s")(text))
    assert sorted(row.x for row in rows) == sorted(fits)


def test_numbers_may_begin_with_zeros() -> None:
    program = Database().datalog(
        ".decl a(x: number) .output a a(007). a(092311). a(-010). a(0x0F). a(0b11). a(00)."
    )
    assert sorted(r.x for r in program["a"].materialize()) == [-10, 0, 3, 7, 15, 92311]


NAMES = {
    "type_in_a_component": (
        ".type node <: symbol .comp G { .decl node(n: node) .decl e(a: node, b: node) .input e "
        "node(x) :- e(x, _). } .init g = G .output g.node"
    ),
    "type_of_a_component": (
        ".comp G { .type node <: symbol .decl node(n: node) .decl e(a: node, b: node) .input e "
        "node(as(x, node)) :- e(x, _). } .init g = G .output g.node"
    ),
    "component": (
        ".comp e { .decl e(a: symbol, b: symbol) .input e .decl r(a: symbol) .output r "
        "r(x) :- e(x, _). } .init e = e"
    ),
    "parameter": (
        ".comp A<C> { .init conf = C .decl r(x: symbol) .output r r(x) :- conf.v(x). } "
        ".comp K { .decl v(x: symbol) .decl i(a: symbol, b: symbol) .input i v(a) :- i(a, _). } "
        ".init m = A<K>"
    ),
    "parameter_of_a_base": (
        ".comp A<C> { .init conf = C .decl r(x: symbol) .output r r(x) :- conf.v(x). } "
        ".comp B<D> : A<D> { } .comp M { "
        ".comp K { .decl v(x: symbol) .decl i(a: symbol, b: symbol) .input i v(a) :- i(a, _). } "
        ".init m = B<K> } .init outer = M"
    ),
    "parameter_handed_on": (
        ".comp A<C> { .init conf = C .decl r(x: symbol) .output r r(x) :- conf.v(x). } "
        ".comp B<D> { .init a = A<D> } "
        ".comp K { .decl v(x: symbol) .decl i(a: symbol, b: symbol) .input i v(a) :- i(a, _). } "
        ".init m = B<K>"
    ),
    "instance": (
        ".type W = [c: symbol, r: W] .decl e(a: symbol, b: symbol) .input e "
        ".comp V<T> { .decl len(l: T) len(nil). .decl k(s: symbol) .output k k(s) :- e(s, _), "
        "len(_). } .comp Au<X> { .init W = V<X> } .init N = Au<W>"
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_kinds_are_apart(name: str) -> None:
    program = Database().datalog(NAMES[name])
    rows = program[next(iter(program))].materialize()
    ((table, rows_in),) = program.tables.items()
    rows_in.add(program.row(table)("a", "b"))
    assert list(rows) == [("a",)]


KINDS_OF_VALUES: list[tuple[str, str, list[Any], list[Any]]] = [
    ("number", "int", [0, -1, 2**70, True], ["1", 1.5, None, b"1", (1,)]),
    ("unsigned", "int", [0, 2**70], ["1", 1.5, None]),
    ("float", "float", [1.5, 1, float("inf")], ["1.5", None, Decimal(1)]),
    ("symbol", "str", ["", "a"], [1, None, b"a", True]),
]


@pytest.mark.parametrize(("kind", "declared", "good", "bad"), KINDS_OF_VALUES)
@pytest.mark.parametrize("held", [1, 200])
def test_fields_of_tables_are_checked(
    kind: str, declared: str, good: list[Any], bad: list[Any], held: int
) -> None:
    text = f".decl edge(id: number, to: {kind}) .input edge .decl to(x: {kind}) .output to\n"
    db = Database()
    program = db.datalog(text + "to(x) :- edge(_, x).")
    edges, edge = program.tables["edge"], program.row("edge")
    view = program["to"].materialize()
    rows = [edge(n, value) for n in range(held) for value in good]
    edges.add_all(rows)
    edges.add(edge(-1, good[0]))
    before = Counter(edges)
    ways: list[Callable[[Any], object]] = [
        edges.add,
        lambda row: edges.add_all([edge(-2, good[0]), row]),
        lambda row: edges.add_all([*rows, row]),
        lambda row: edges.replace_all([row]),
        lambda row: edges.update(rows[0], row),
    ]
    for value in bad:
        for put in ways:
            with pytest.raises(TableError, match=f"'edge': field 'to' .* declared {declared}"):
                put(edge(-3, value))
    assert Counter(edges) == before
    assert set(view) == {(value,) for value in good}


@pytest.mark.parametrize("text", ["r(-1).", "r(x) :- x = -1.", "r(x) :- s(x), x = -1.", "r(-(1))."])
def test_a_constant_wraps_round_as_what_is_computed(text: str) -> None:
    decls = ".decl s(x: unsigned) .input s\n.decl r(x: unsigned) .output r\n"
    for bits, top in ((None, 2**32 - 1), (64, 2**64 - 1)):
        program = Database().datalog(decls + text, bits=bits)
        view = program["r"].materialize()
        program.tables["s"].add_all([program.row("s")(top), program.row("s")(1)])
        assert [tuple(row) for row in view] == [(top,)]
    signed = ".decl r(x: number) .output r\nr(4294967295)."
    assert [tuple(r) for r in Database().datalog(signed, bits=32)["r"].materialize()] == [(-1,)]
    assert [tuple(r) for r in Database().datalog(signed)["r"].materialize()] == [(2**32 - 1,)]


def test_groups_of_the_rows_around_an_aggregate_are_not_joined_with_them() -> None:
    program = Database().datalog("""
        .decl e(x: number, y: number)       .input e
        .decl n(x: number, n: number)       .output n
        .decl beside(x: number, y: number, n: number)   .output beside
        n(x, n) :- e(x, _), n = count : { e(x, _) }.
        beside(x, y, n) :- e(x, y), n = count : { e(x, _) }.
    """)
    assert "join" not in program["n"].explain()
    assert "join" in program["beside"].explain()
