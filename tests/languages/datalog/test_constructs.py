"""Constructs of Soufflé beyond plain rules, with the outputs that its documentation gives."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactive import Database, FixpointError, PlanError
from tests.budget import seeds


def outputs(text: str, **options: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each output, sorted."""
    program = Database().datalog(text, **options)
    return {name: sorted(map(tuple, program[name].materialize())) for name in program}


def test_ord_numbers_texts_in_the_order_of_the_program() -> None:
    assert outputs("""
        .decl n(x: symbol)
        n("Homer"). n("Marge"). n("Bart"). n("Lisa"). n("Maggie").
        .decl r(x: number) .output r
        r(1) :- n(x), n(y), ord(x) < ord(y), x = "Homer", y = "Bart".
        r(2) :- n(x), n(y), ord(x) > ord(y), x = "Maggie", y = "Homer".
        r(3) :- n(x), n(y), ord(x) > ord(y), x = "Marge", y = "Bart".
        .type L = [h: number, t: L]
        .decl same(x: number, y: number, z: number) .output same
        same(ord(7), ord(-3), ord(x)) :- x = nil, [1, x] = l, list(l).
        .decl list(l: L)  list([1, nil]).
    """) == {"r": [(1,), (2,)], "same": [(7, -3, 0)]}


def test_ord_is_a_number_of_its_own_for_each_value_while_rows_come_and_go() -> None:
    program = Database().datalog("""
        .decl a(x: symbol, y: float) .input a
        .decl b(x: symbol, n: number, m: number) .output b
        b(x, ord(x), ord(y)) :- a(x, y).
    """)
    view, table, row = program["b"].materialize(), program.tables["a"], program.row("a")
    rows = [row(text, float(n)) for n, text in enumerate("cab")]
    table.add_all(rows)
    before = sorted(view)
    assert len({each[1] for each in before}) == len({each[2] for each in before}) == 3
    for each in rows:
        table.remove(each)
        view.verify()
        table.add(each)
    assert sorted(view) == before


@pytest.mark.parametrize("seed", seeds(10))
def test_autoinc_numbers_each_assignment_once(seed: int) -> None:
    random = Random(seed)
    program = Database().datalog("""
        .decl a(x: number, y: number) .input a
        .decl b(n: number, x: number) .output b
        b(autoinc(), x) :- a(x, _).
        .decl c(n: number, m: number, z: number) .output c
        c(n, autoinc(), z) :- a(x, y), n = autoinc(), a(y, z), x < 3.
        .decl f(n: number, x: symbol) .output f
        f(autoinc(), "p"). f(autoinc(), "q").
    """)
    views = {name: program[name].materialize() for name in program}
    table, row = program.tables["a"], program.row("a")
    rows: set[Any] = set()
    numbers: dict[Any, int] = {}
    for _ in range(20):
        pair = row(random.randrange(4), random.randrange(4))
        if pair in rows:
            rows.remove(pair)
            table.remove(pair)
        else:
            rows.add(pair)
            table.add(pair)
        assert sorted(x for _, x in views["b"]) == sorted(x for x, _ in rows)
        joined = sorted(v for x, y in rows for u, v in rows if y == u and x < 3)
        assert sorted(z for _, _, z in views["c"]) == joined
        used = [each[0] for each in views["b"]]
        used += [number for each in views["c"] for number in each[:2]]
        used += [each[0] for each in views["f"]]
        assert len(used) == len(set(used))
        for n, x in views["b"]:
            assert numbers.setdefault(n, x) == x  # a number keeps its meaning
        for view in views.values():
            view.verify()
    assert sorted(map(tuple, views["f"])) == [(0, "p"), (1, "q")]


def test_texts_are_added_and_have_the_escapes_of_c() -> None:
    assert outputs(r"""
        .decl s(x: symbol)  s("(a)").
        .decl add(x: symbol) .output add
        add("pre-" + "-post").  add("pre-" + x + "!") :- s(x).
        add("\a\b\f\v\t\r\n\"\\\'").
        .decl found(x: symbol) .output found
        found(x) :- s(x), match("\\([a-z]\\)", x).
        found("tab") :- match("\t\\t\\w", "\t\ta").
    """) == {
        "add": sorted([("pre--post",), ("pre-(a)!",), ("\a\b\f\v\t\r\n\"\\'",)]),
        "found": [("(a)",), ("tab",)],
    }


FUNCTIONS = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log"),
    *("sin", "sinh", "sqrt", "tan", "tanh"),
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mathematical_function_has_values_where_it_is_defined(name: str) -> None:
    program = Database().datalog(f"""
        .decl a(x: float) .input a
        .decl b(x: float, y: float) .output b
        b(x, {name}(x)) :- a(x).
        .decl {name}(x: float, y: float) .output {name}
        {name}(x, y) :- b(x, y), y = {name}(x).
        .decl c(x: float) .output c
        c(x) :- a(x), {name}(x) > 0.0.
        .decl d(x: float) .output d
        d(x) :- {name}(x, _), !{name}(_, x).
    """)
    views = {each: program[each].materialize() for each in program}
    table, row = program.tables["a"], program.row("a")
    values = [-1000.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0, 1e6]
    table.add_all(map(row, values))
    table.remove(row(0.25))
    expected: dict[float, float] = {}
    for x in values:
        try:
            expected[x] = getattr(math, name)(x)
        except (ValueError, OverflowError):
            continue
    expected.pop(0.25, None)
    assert set(map(tuple, views["b"])) == set(expected.items()) == set(map(tuple, views[name]))
    assert {x for (x,) in views["c"]} == {x for x, y in expected.items() if y > 0}
    assert {x for (x,) in views["d"]} == set(expected) - set(expected.values())


def test_addresses_annotations_and_debugging_are_read() -> None:
    assert outputs("""
        @[xdecl { q(x) :- y. }]
        .decl a(@[x] x: number)  btree_delete .output a
        .debug_delta a()
        a(192.168.0.1). @[x(M)] @[y()] a(x) :- @![doc = "a"] x = 1.0.0.2.
    """) == {"a": [(16777218,), (3232235521,)]}


def test_the_type_of_a_record_is_the_only_one_that_fits() -> None:
    assert outputs("""
        .type P = [a: number, b: symbol]
        .type Q = [a: number, b: number]
        .decl e(x: number, y: symbol)  e(1, "a"). e(2, "b").
        .decl r(x: number) .output r
        r(x) :- e(x, y), [x, y] = [1, z], z = "a".
    """) == {"r": [(1,)]}


# Functors of the user.


OWN = """
.functor twice(n: number): number
.functor shout(symbol, number): symbol
.functor half(float): float stateful
.type List = [x: number, y: List]
.functor more(l: List): List stateful
.decl a(x: number, s: symbol) .input a
.decl b(x: number, s: symbol) .output b
b(@twice(x), @shout(s, x)) :- a(x, s), @twice(x) < 7.
.decl c(x: float) .output c
c(@half(1)). c(@half(@half(3.0))).
.decl l(x: List) .output l
l([1, nil]). l(@more(x)) :- l(x), x = [n, _], n < 3.
"""


def twice(n: int) -> int:
    return 2 * n


def shout(text: str, times: int) -> str:
    return text + "!" * times


FUNCTORS: dict[str, Any] = {
    "twice": twice,
    "shout": shout,
    "half": lambda x: x / 2,
    "more": lambda of: (of.x + 1, of),
}


@pytest.mark.parametrize("bits", [None, 32])
def test_a_functor_is_a_callable(bits: int | None) -> None:
    program = Database().datalog(OWN, functors=FUNCTORS, bits=bits)
    views = {name: program[name].materialize() for name in program}
    table, row = program.tables["a"], program.row("a")
    table.add_all([row(n, text) for n in range(5) for text in "xy"])
    table.remove(row(1, "x"))
    rest = {(n, text) for n in range(4) for text in "xy"} - {(1, "x")}
    assert set(map(tuple, views["b"])) == {(2 * n, shout(t, n)) for n, t in rest}
    assert sorted(map(tuple, views["c"])) == [(0.5,), (0.75,)]
    lists = program.row("l")
    assert [each.x.x for each in sorted(views["l"], key=repr)] == [1, 2, 3] and lists
    for view in views.values():
        view.verify()


def test_results_of_functors_wrap_round() -> None:
    text = ".functor big(): {}\n.decl a(x: {}) .output a\na(@big())."
    for kind, bits, value in (
        ("number", 32, -(2**31)),
        ("number", None, 2**31),
        ("unsigned", None, 2**31),
        ("unsigned", 32, 2**31),
    ):
        found = outputs(text.format(kind, kind), functors={"big": lambda: 2**31}, bits=bits)
        assert found == {"a": [(value,)]}
    with pytest.raises(TypeError, match="functor 'big' is declared number, and gave '2'"):
        outputs(text.format("number", "number"), functors={"big": lambda: "2"})


def float_of(n: int) -> float:
    return float(n)


@pytest.mark.parametrize(
    ("functors", "said"),
    [
        ({"twize": twice}, "the program declares no functor 'twize'\n  did you mean 'twice'?"),
        ({"twice": 3}, "'twice' is no callable, but 3"),
        ({"twice": shout}, "'twice' is declared with 1 arguments, and takes"),
        ({"twice": float_of}, "the result of 'twice' is annotated float, and declared number"),
        ({"half": twice}, "the argument 'n' of 'half' is annotated int, and declared float"),
    ],
)
def test_a_callable_has_to_fit_its_declaration(functors: Any, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        Database().datalog(OWN, functors=FUNCTORS | functors)
    assert said in str(caught.value)


def test_numbers_of_a_process_are_not_pickled() -> None:
    from reactive.languages.datalog.functors import Ordinals

    with pytest.raises(TypeError, match="of this process"):
        pickle.dumps(Ordinals().autoinc)


# Files of a program.


def test_files_are_included(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "main.dl").write_text('.include "lib/rules.dl"\n.include "lib/edges.dl"\n.output p')
    (tmp_path / "lib" / "rules.dl").write_text(
        '.include "edges.dl"\n.decl p(x: number, y: number)\n'
        "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."
    )
    (tmp_path / "lib" / "edges.dl").write_text(
        ".once\n.decl e(x: number, y: number)\ne(1, 2). e(2, 3)."
    )
    expected = {"p": [(1, 2), (1, 3), (2, 3)]}
    assert outputs(tmp_path / "main.dl") == expected  # type: ignore[arg-type]
    text = '.include "main.dl"'
    assert outputs(text, folder=tmp_path) == outputs(text, folder=str(tmp_path)) == expected


def test_an_error_in_an_included_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "rules.dl").write_text(".decl p(x: number)\np(x) :- q(x).")
    with pytest.raises(PlanError, match=r"rules\.dl, line 2, column 9: there is no relation 'q'"):
        Database().datalog('.include "rules.dl"\n', folder=tmp_path)
    with pytest.raises(PlanError, match=r"line 1, column 10: there is no file 'rule\.dl'"):
        Database().datalog('.include "rule.dl"\n', folder=tmp_path)
    with pytest.raises(PlanError, match="line 1, column 9: the name of a file is missing"):
        Database().datalog(".include", folder=tmp_path)
    (tmp_path / "own.dl").write_text('.include "own.dl"\n')
    with pytest.raises(PlanError, match=r"own\.dl, line 1, column 1: 'own\.dl' includes itself"):
        Database().datalog(tmp_path / "own.dl")


# The preprocessor.


def test_lines_of_the_preprocessor_are_read(tmp_path: Path) -> None:
    (tmp_path / "pair.dl").write_text(
        "#ifndef PAIR\n#define PAIR(a, b) a##_##b(a, b)\n"
        "#define LIBRARY\n.decl from_library(x: symbol)\n#endif"
    )
    text = """
        #define TWO (1 + ONE)
        #if defined(ONE) && ONE >= 1 /* not */ || !VERSION
        .decl n(x: number) .output n
        #elif defined ONE
        no program
        #else
        no program
        #endif
        #if 0
        #ifdef LIBRARY
        no program
        #else
        no program
        #endif
        no program
        #endif
        n(TWO), n(ONE). n(TWO * 2).
        #define LONG(text, name) \\
            t(text), \\
            t(#name)
        .decl t(x: symbol) .output t
        LONG("(,", [LONG]). LONG("#define", ONE).   // #endif
        #undef ONE
        #define ONE again
        #define again ONE
        .decl ONE(x: symbol) .output ONE
        # include "pair.dl"
        # include <pair.dl>
        #ifdef LIBRARY
        .decl v_w(v: number, w: number) .output v_w
        PAIR(v, w) :- v = 1, w = 2.
        #pragma once
        #endif
    """
    found = outputs(text, folder=tmp_path, macros={"ONE": "1", "again": "never"})
    texts = [("#define",), ("(,",), ("ONE",), ("[ LONG ]",)]
    assert found == {"n": [(1,), (2,), (4,)], "t": texts, "ONE": [], "v_w": [(1, 2)]}


@pytest.mark.parametrize("macros", [{"a b": "1"}, {"": "1"}, {"a": 1}, {"a": '"'}])
def test_a_macro_is_a_name_and_a_text(macros: Any) -> None:
    with pytest.raises(PlanError):
        Database().datalog(".decl p(x: number)", macros=macros)


# Bounds that are inputs.


FACTORIAL = """
.decl stop(n: number) .input stop
.decl fact(n: number, f: number) .output fact
fact(0, 1).
fact(n + 1, f * (n + 1)) :- fact(n, f), !stop(n).
"""


def test_a_relation_that_counts_without_a_bound_is_told() -> None:
    db = Database()
    program = db.datalog(FACTORIAL, max_rounds=100)
    with pytest.raises(FixpointError, match="has not come to an end after 100 rounds"):
        program["fact"].materialize()
    program.tables["stop"].add(program.row("stop")(5))
    view = program["fact"].materialize()
    assert sorted(view)[-1] == (5, 120)
    with pytest.raises(FixpointError):
        program.tables["stop"].remove(program.row("stop")(5))
    assert len(view) == 6 and len(program.tables["stop"]) == 1
    with pytest.raises(FixpointError, match="after 10000 rounds"):
        db.datalog(FACTORIAL.replace("stop", "halt"))["fact"].materialize()


def test_a_relation_of_values_that_exist_has_no_limit() -> None:
    program = Database().datalog(
        """
        .decl next(x: number, y: number) .input next
        .decl path(x: number) .output path
        path(0). path(y) :- path(x), next(x, y).
        """,
        max_rounds=10,
    )
    view = program["path"].materialize()
    program.tables["next"].add_all([program.row("next")(n, n + 1) for n in range(100)])
    assert len(view) == 101


def up_to(most: int) -> set[Any]:
    return set(range(most + 1))


BOUNDED: dict[str, tuple[str, Any]] = {
    "factorial": (
        ".decl f(n: number, v: number) .output f\n"
        "f(0, 1). f(n + 1, v * (n + 1)) :- f(n, v), limit(m), n < m.",
        lambda limits: up_to(max(limits, default=0)),
    ),
    "a limit before the recursion": (
        ".decl f(n: number, v: number) .output f\n"
        "f(0, 1). f(n + 1, v * (n + 1)) :- limit(m), f(n, v), n + 1 <= m.",
        lambda limits: up_to(max(limits, default=0)),
    ),
    "a start that is an input": (
        ".decl f(n: number) .output f\nf(0) :- limit(_). f(n + 1) :- f(n), !limit(n).",
        lambda limits: up_to(min(limits)) if limits else set(),
    ),
    "an aggregate": (
        ".decl f(n: number) .output f\nf(0). f(n + 1) :- f(n), n < max m : { limit(m) }.",
        lambda limits: up_to(max(limits, default=0)),
    ),
    "a count": (
        ".decl f(n: number) .output f\nf(0). f(n + 1) :- f(n), n < count : { limit(_) }.",
        lambda limits: up_to(len(limits)),
    ),
    "downwards": (
        ".decl f(n: number) .output f\nf(n) :- limit(n). f(n - 1) :- f(n), n > 0.",
        lambda limits: up_to(max(limits, default=-1)),
    ),
    "a range": (
        ".decl f(n: number) .output f\nf(i) :- limit(n), i = range(0, n + 1).",
        lambda limits: up_to(max(limits, default=-1)),
    ),
    "texts": (
        '.decl f(n: number, t: symbol) .output f\nf(0, "").\n'
        'f(n + 1, cat(t, "a")) :- f(n, t), limit(m), strlen(t) < m.',
        lambda limits: up_to(max(limits, default=0)),
    ),
    "records": (
        ".type L = [h: number, t: L]\n.decl f(n: number, l: L) .output f\n"
        "f(0, nil). f(n + 1, [n, l]) :- f(n, l), limit(m), n < m.",
        lambda limits: up_to(max(limits, default=0)),
    ),
    "a component": (
        ".comp Up<T> { .decl most(n: T) .decl f(n: T) f(0). f(n + 1) :- f(n), most(m), n < m. }\n"
        ".init up = Up<number>\nup.most(n) :- limit(n).\n"
        ".decl f(n: number) .output f\nf(n) :- up.f(n).",
        lambda limits: up_to(max(limits, default=0)),
    ),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_a_bound_that_is_an_input_may_come_later(name: str) -> None:
    text, expected = BOUNDED[name]
    program = Database().datalog(".decl limit(n: number) .input limit\n" + text)
    view, table, row = program["f"].materialize(), program.tables["limit"], program.row("limit")
    limits: set[int] = set()
    for limit in (None, 5, 2, 7, 5, 7, 2, 3):
        if limit is not None:
            (table.remove if limit in limits else table.add)(row(limit))
            limits ^= {limit}
        assert {each[0] for each in view} == expected(limits)
        view.verify()


UNBOUNDED = {
    "f(n + 1) :- f(n), !limit(n).": "after 10000 rounds",
    "f(n * n) :- f(n), !limit(n).": "with rows of more than 50,000 bytes",
    "f(n ^ n) :- f(n), !limit(n).": "cannot compute a power: it has more than 8,000,000 bits",
    "f(2 * n), f(2 * n + 1) :- f(n), !limit(n).": "with [0-9,]+ rows",
    "f(n + m) :- f(n), f(m), !limit(n).": "with [0-9,]+ rows",
}


@pytest.mark.parametrize("rule", UNBOUNDED)
def test_without_a_bound_a_program_ends_with_an_error(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactive.engine.operators.fixpoint.growth.ROWS_PER_GIVEN", 20_000)
    monkeypatch.setattr("reactive.engine.operators.fixpoint.growth.MOST_BYTES", 50_000)
    program = Database().datalog(
        f".decl limit(n: number) .input limit\n.decl f(n: number) .output f\nf(3). {rule}"
    )
    with pytest.raises(FixpointError, match=UNBOUNDED[rule]):
        program["f"].materialize()


def test_powers_wrap_without_their_high_bits() -> None:
    text = ".decl p(n: number, u: unsigned) .output p\np(3 ^ 1000000007, as(3, unsigned) ^ 99)."
    assert outputs(text, bits=32) == {"p": [(577888395, 3**99 % 2**32)]}
    assert outputs(".decl p(n: number) .output p\np(-3 ^ 1001).", bits=32) == {
        "p": [((-(3**1001) + 2**31) % 2**32 - 2**31,)]
    }
