"""Errors in a text show its line, a caret, and a remedy."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database, FixpointError, PlanError, StratificationError
from reactive.languages.datalog import functors
from reactive.languages.datalog.functors import SIGNATURES
from reactive.languages.datalog.tokens import suggest_name
from reactive.languages.sql.terms.errors import nearest
from tests.errors.golden import told

HEAD = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n.decl word(s: symbol)\n"

WRONG = {
    "path(x, z) :- pth(x, y), edge(y, z).": """
        line 4, column 15: there is no relation 'pth'
          path(x, z) :- pth(x, y), edge(y, z).
                        ^^^
          did you mean 'path'?
    """,
    "path(x) :- edge(x, _).": """
        line 4, column 1: relation 'path' has 2 columns, not 1
          path(x) :- edge(x, _).
          ^^^^^^^
          they are x, y
    """,
    "path(x, z) :- edge(x, y).": """
        line 4, column 9: variable 'z' is not bound
          path(x, z) :- edge(x, y).
                  ^
          an atom that is not negated, or an equation, gives it a value
    """,
    "path(x, x) :- edge(x, _), !edge(x, w), w > 1.": """
        line 4, column 36: variable 'w' is not bound
          path(x, x) :- edge(x, _), !edge(x, w), w > 1.
                                             ^
          an atom that is not negated, or an equation, gives it a value
    """,
    "path(1, x).": """
        line 4, column 9: variable 'x' is not bound
          path(1, x).
                  ^
          a fact has no variables
    """,
    'path(x, 1) :- edge(x, y), y = "a".': """
        line 4, column 27: y = "a" is of type 'number' and of type 'symbol'
          path(x, 1) :- edge(x, y), y = "a".
                                    ^^^^^^^
          to_string(), to_number(), itof() and the like make one of the other
    """,
    "path(x, x) :- word(x).": """
        line 4, column 20: x is of type 'number' and of type 'symbol'
          path(x, x) :- word(x).
                             ^
          to_string(), to_number(), itof() and the like make one of the other
    """,
    "path(x, 1.5) :- edge(x, _).": """
        line 4, column 9: 1.5 is of type 'float' and of type 'number'
          path(x, 1.5) :- edge(x, _).
                  ^^^
          to_string(), to_number(), itof() and the like make one of the other
    """,
    "path(x, n) :- edge(x, _), n = count : { edge(x, z) }, z > 1.": """
        line 4, column 49: variable 'z' is used outside the aggregate, and not bound there
          path(x, n) :- edge(x, _), n = count : { edge(x, z) }, z > 1.
                                                          ^
          only min and max of one body have witnesses
    """,
    "path(x, strln(s)) :- word(s), edge(x, _).": """
        line 4, column 9: there is no functor 'strln'
          path(x, strln(s)) :- word(s), edge(x, _).
                  ^^^^^
          did you mean 'strlen'?
    """,
    "path(x, substr(s)) :- word(s), edge(x, _).": """
        line 4, column 9: substr takes 3 arguments, not 1
          path(x, substr(s)) :- word(s), edge(x, _).
                  ^^^^^^^^^
    """,
    "path(x, _) :- edge(x, _).": """
        line 4, column 9: '_' has no value here
          path(x, _) :- edge(x, _).
                  ^
          name a variable that has one
    """,
    "path(x, y) :- edge(x, y)": """
        line 4, column 25: '.' is missing before the end of the text
          path(x, y) :- edge(x, y)
                                  ^
          a clause ends with a point
    """,
    "path(x, y) :- edge(x, y), x.": """
        line 4, column 28: a comparison is missing before '.'
          path(x, y) :- edge(x, y), x.
                                     ^
          x by itself is no condition
    """,
    "path(x, y) :- edge(x, y), x ~ y.": """
        line 4, column 29: '~' is no part of the language
          path(x, y) :- edge(x, y), x ~ y.
                                      ^
    """,
    'path(x, y) :- edge(x, y), !word("a).': """
        line 4, column 33: this text does not end on its line
          path(x, y) :- edge(x, y), !word("a).
                                          ^
          close it with "
    """,
    ".decl more(x: numbr)": """
        line 4, column 12: there is no type 'numbr'
          .decl more(x: numbr)
                     ^^^^^^^^
          did you mean 'number'?
    """,
    ".decl edge(x: number)": """
        line 4, column 1: there is a relation 'edge' already
          .decl edge(x: number)
          ^^^^^^^^^^^^^^^^^^^^^
    """,
    ".output pathes": """
        line 4, column 1: there is no relation 'pathes'
          .output pathes
          ^^^^^^^^^^^^^^
          did you mean 'path'?
    """,
    ".type T = number | symbol": """
        line 4, column 1: type 'T' is of number and symbol, which differ
          .type T = number | symbol
          ^^^^^^^^^^^^^^^^^^^^^^^^^
    """,
    ".type T = U\n.type U = T": """
        line 4, column 1: type 'T' is made of itself
          .type T = U
          ^^^^^^^^^^^
    """,
    "path(x, y) <= edge(x, z) :- y < z.": """
        line 4, column 15: a row of 'path' is dominated by a row of 'path'
          path(x, y) <= edge(x, z) :- y < z.
                        ^^^^^^^^^^
    """,
    ".decl tree(v: number, u: number) choice-domain w": """
        line 4, column 1: relation 'tree' has no column 'w'
          .decl tree(v: number, u: number) choice-domain w
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          they are v, u
    """,
    ".init g = Graph": """
        line 4, column 11: there is no component 'Graph'
          .init g = Graph
                    ^^^^^
    """,
    ".comp C { .init again = C }\n.init c = C": """
        line 4, column 11: component 'C' is inside itself
          .comp C { .init again = C }
                    ^^^^^^^^^^^^^^^
    """,
    ".decl i(x: number) inline\ni(x) :- i(x), x > 1.\npath(x, x) :- i(x).": """
        line 5, column 9: relation 'i' is inline, and depends on itself
          i(x) :- i(x), x > 1.
                  ^^^^
          leave out inline
    """,
    "path(x, x) :- edge(x, x). #define N 3": """
        line 4, column 27: '#' begins a line of the preprocessor
          path(x, x) :- edge(x, x). #define N 3
                                    ^
          put it at the beginning
    """,
    "#ifdef N\npath(1, 1).": """
        line 5, column 12: a condition does not end
          path(1, 1).
                     ^
          close it with #endif
    """,
    "#endif": """
        line 4, column 1: there is no #if before #endif
          #endif
          ^^^^^^
    """,
    "#define F(x) x\npath(F(1, 2), 1).": """
        line 5, column 6: macro 'F' takes 1 arguments, not 2
          path(F(1, 2), 1).
               ^
    """,
    "#define F(x) x\npath(F(1, 1.": """
        line 5, column 7: the arguments of a macro do not end
          path(F(1, 1.
                ^
          close them with )
    """,
    "#define NODE nod\npath(x, y) :- NODE(x, y).": """
        line 4, column 14: there is no relation 'nod'
          #define NODE nod
                       ^^^
          there are edge, path, word
    """,
    '#if __import__("os")': """
        line 4, column 4: this condition of the preprocessor cannot be read
          #if __import__("os")
             ^^^^^^^^^^^^^^^^^
    """,
    "#error give a size": """
        line 4, column 1: give a size
          #error give a size
          ^^^^^^^^^^^^^^^^^^
    """,
    ".decl q(x: number) brie eqrel": """
        line 4, column 25: qualifier 'eqrel' stands beside 'brie'
          .decl q(x: number) brie eqrel
                                  ^^^^^
          leave one out
    """,
    ".type L = [h: number, t: L]\npath(x, y) :- edge(x, y), [x, y] = [y, x].": """
        line 5, column 27: of which type this record is cannot be told
          path(x, y) :- edge(x, y), [x, y] = [y, x].
                                    ^^^^^^
          an atom with such a column, or as(..., type), says it
    """,
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_is_told_where_it_is(text: str) -> None:
    with pytest.raises(PlanError) as caught:
        Database().datalog(HEAD + text)
    lines = [line.removeprefix("        ") for line in WRONG[text].strip("\n").splitlines()[:-1]]
    assert told(caught.value) == "PlanError: " + "\n".join(lines)


def test_a_relation_that_depends_on_its_negation_is_told_with_the_way() -> None:
    with pytest.raises(StratificationError) as caught:
        Database().datalog(
            HEAD + "path(x, y) :- edge(x, y), !other(y).\n.decl other(x: number)\n"
            "other(x) :- path(x, _).\n"
        )
    assert told(caught.value) == (
        "StratificationError: line 4, column 28: relation 'path' depends on its own negation\n"
        "  path(x, y) :- edge(x, y), !other(y).\n"
        "                             ^^^^^^^^\n"
        "  path -> !other -> path\n"
        "  it has no meaning: negate or aggregate what does not depend on it"
    )


def test_a_relation_that_depends_on_its_aggregate_is_refused() -> None:
    with pytest.raises(StratificationError, match="depends on its own aggregate"):
        Database().datalog(HEAD + "path(x, n) :- edge(x, _), n = count : { path(x, _) }.")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"egde": None}, "inputs: the program has no relation 'egde'\n  did you mean 'edge'?"),
        ({"edge": 3}, "inputs: 'edge' is no relation of this database"),
    ],
)
def test_what_is_given_has_to_fit(inputs: Any, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        Database().datalog(HEAD, inputs=inputs)
    assert str(caught.value) == message


def test_a_table_has_to_have_the_columns() -> None:
    db = Database()
    db.table(str, name="edge")
    with pytest.raises(PlanError, match="relation 'edge' has columns, and nothing is known"):
        db.datalog(".decl edge(x: number, y: number) .input edge")


@pytest.mark.parametrize("bits", [16, "32"])
def test_bits_are_32_or_64(bits: Any) -> None:
    with pytest.raises(PlanError, match="bits is 32, 64 or None"):
        Database().datalog(HEAD, bits=bits)


def test_nothing_is_made_of_a_text_that_is_wrong() -> None:
    db = Database()
    with pytest.raises(PlanError):
        db.datalog(HEAD + ".input edge\npath(x, z) :- edge(x, y).")
    assert db.tables() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".decl a(x: number)\n.input a(colums=1)", "there is no option 'colums'"),
        (".decl a(x: number, y: number) choice-domain x, z", "has no column 'z'"),
        (".decl a(x: number) choice-domain x\n.input a", "and cannot be an input"),
        (
            ".decl a(x: number) choice-domain x\n.decl b(x: number)\na(x) :- b(x). b(x) :- a(x)."
            "b(x) <= b(y) :- x > y.",
            "relation 'b' depends on a choice that depends on it",
        ),
        (".decl a(x: number)\na(1) <= a(2).", "':-' is missing before '.'"),
        (".decl a(x: number)\na(1), a(3) <= a(2) :- true.", "one row is dominated by another"),
        (".decl a(x: number)\n.limitsize a(n=3)", "a limit depends on the order"),
        (".decl a(x: number) btree_sum", "a sum depends on the order in which rows are derived"),
        (".decl a(x: number)\na(x) :- a(x), __ITERATION__ < 3.", "rounds depend on the order"),
        (
            ".decl a(x: number)\na(x) :- a(x), recursive_iteration_cnt() < 3.",
            "rounds depend on the order",
        ),
        (".decl a(x: number)\na(autoinc(1)).", "autoinc takes no arguments"),
        (".decl a(x: number)\na(autoinc()) :- a(_).", "cannot stand in a recursive rule"),
        (".decl a(x: number)\na(1.2.3.256).", "256 is no byte of an address"),
        (".decl a(x: number) @[doc(a]", "this annotation does not end"),
        (".decl a(x: number)\na(@f(1)).", "there is no functor '@f'"),
        (".functor f(number): number\n.decl a(x: number)\na(@f(1)).", "'@f' has no callable"),
        (".functor f(number): number\n.decl a(x: number)\na(@f()).", "has 1 arguments, not 0"),
        (".functor f(symbol): number\n.decl a(x: number)\na(@f(1)).", "'number'"),
        (".functor f(): number .functor f(): number", "there is a functor 'f' already"),
        ('.include "rules.dl"', "there is no folder to look for 'rules.dl' in"),
    ],
)
def test_words_that_have_no_meaning_here_are_refused(text: str, said: str) -> None:
    with pytest.raises(PlanError) as found:
        Database().datalog(text)
    assert said in str(found.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("min", "column 17: min needs a value\n.*\n.*\n  write min x : { ... }"),
        ("count x", "column 19: count takes no value\n.*\n.*\n  write count : { ... }"),
    ],
)
def test_an_aggregate_says_what_it_needs(value: str, message: str) -> None:
    text = f"b(n) :- n = {value} : {{ edge(x, _) }}."
    with pytest.raises(PlanError, match=message):
        Database().datalog(HEAD + ".decl b(n: number)\n" + text)


def test_no_name_is_meant_that_is_what_was_written() -> None:
    assert suggest_name("path", ["path", "paths"]) == "did you mean 'paths'?"
    assert nearest("date", ["date", "dates"]) == "; did you mean 'dates'?"


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_a_functor_without_arguments_is_refused(name: str) -> None:
    if name == "autoinc":  # it has none
        return
    called = f"{name}()" if name.isidentifier() else f"1 {name}"
    with pytest.raises(PlanError):
        Database().datalog(f"{HEAD}edge(x, 1) :- edge(x, _), x = {called}.")


@pytest.mark.parametrize(
    ("declared", "named", "said"),
    [
        ("", "r", "relation 'r' is not overridable"),
        ("inline", "r", "relation 'r' is not overridable"),
        ("overridable", "s", "no base declares the relation 's'"),
        ("overridable", "own", "no base declares the relation 'own'"),
    ],
)
def test_what_is_not_overridable_is_not_overridden(declared: str, named: str, said: str) -> None:
    text = f"""
        .comp Base {{ .decl r(x: number) {declared}
          r(1). }}
        .comp Derived : Base {{ .decl own(x: number) .override {named}
          r(2). own(1). }}
        .init d = Derived
    """
    with pytest.raises(PlanError, match=said):
        Database().datalog(text)
    kept = Database().datalog(
        text.replace(f"r(x: number) {declared}", "r(x: number) overridable").replace(
            f".override {named}", ".override r"
        )
    )
    assert set(kept["d.r"].materialize()) == {(2,)}


@pytest.mark.parametrize("call", ["range(-1, 2)", "range(0, 4294967295)"])
def test_a_range_of_unsigned_numbers_has_an_end(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functors, "MOST_NUMBERS", 1_000)
    text = f".decl r(x: unsigned) .output r\nr(x) :- x = {call}."
    with pytest.raises(FixpointError, match="has more than 1,000 numbers"):
        Database().datalog(text)["r"].materialize()


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("number", "range(0, 10000)"),
        ("float", "range(100000000000000000.0, 200000000000000000.0)"),
        ("float", "range(0.0, 1.0, 0.0001)"),
    ],
)
def test_a_range_of_too_many_numbers_is_told(
    kind: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functors, "MOST_NUMBERS", 1_000)
    text = f".decl r(x: {kind}) .output r\nr(x) :- x = {call}."
    with pytest.raises(FixpointError, match="has more than 1,000 numbers"):
        Database().datalog(text)["r"].materialize()
