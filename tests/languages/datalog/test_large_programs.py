"""Programs that programs write: thousands of terms, a thousand levels, many alternatives."""

from __future__ import annotations

import pytest

from reactive import Database, PlanError
from reactive.languages.datalog import rules

LEVELS = 1_000
DECLARED = """
.decl e(x: number, y: number)
.decl p(x: number)
.output p
e(1, 2). e(2, 3).
"""
NAMED = """
.decl e(x: symbol, y: symbol)
.decl p(x: symbol)
.output p
e("a", "b").
"""


def nested(before: str, inner: str, after: str) -> str:
    return before * LEVELS + inner + after * LEVELS


PROGRAMS = {
    "a sum": (f"p({' + '.join(['x'] * 3_000)}) :- e(x, _).", {3_000, 6_000}),
    "brackets": (f"p({nested('(', 'x', ')')}) :- e(x, _).", {1, 2}),
    "sums in sums": (f"p({nested('(1 + ', 'x', ')')}) :- e(x, _).", {1_001, 1_002}),
    "signs": (f"p({nested('-', 'x', '')}) :- e(x, _).", {1, 2}),
    "functors": (f"p({nested('max(1, ', 'x', ')')}) :- e(x, _).", {1, 2}),
    "a long body": (f"p(x) :- e(x, _){''.join(f', x != {n + 9}' for n in range(500))}.", {1, 2}),
    "alternatives": (f"p(x) :- e(x, _), ({'; '.join(f'x = {n}' for n in range(600))}).", {1, 2}),
    "not not": (f"p(x) :- e(x, _), {'!(' * 301}x = 1{')' * 301}.", {2}),
    "many facts": (
        "\n".join(f"e({n}, {n})." for n in range(9, 3_000)) + "p(x) :- e(x, _), x < 3.",
        {1, 2},
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_large_program_is_read(name: str) -> None:
    text, wanted = PROGRAMS[name]
    view = Database().datalog(DECLARED + text)["p"].materialize()
    assert {row.x for row in view} == wanted
    view.verify()


RECORDS = """
.type R = [head: number, tail: R]
.decl e(x: number)
.decl p(r: R)
.output p
e(1).
"""


def test_the_kinds_of_a_nested_record_are_told_in_one_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records were compared with one another, each as deep as it is: 500 levels took 14 s."""
    compared: list[object] = []

    def compare(one: object, other: object) -> bool:
        compared.append(one)
        return one is other

    monkeypatch.setattr(rules.RecordTerm, "__eq__", compare)
    levels = 500
    Database().datalog(f"{RECORDS}p({'[x, ' * levels}nil{']' * levels}) :- e(x).")
    assert len(compared) < 10 * levels


@pytest.mark.long
def test_what_is_too_deep_is_shown_at_its_place() -> None:
    text = f"{DECLARED}p({'(' * 100_000}x{')' * 100_000}) :- e(x, _)."
    with pytest.raises(PlanError) as caught:
        Database().datalog(text)
    said = str(caught.value)
    assert said.startswith("line 6, column 100002: the program is nested too deeply\n  ((((")
    assert len(said) < 1_000 and "write it in parts" in said


def test_texts_in_texts() -> None:
    program = Database().datalog(f"{NAMED}p({nested('cat(x, ', 'x', ')')}) :- e(x, _).")
    assert [row.x for row in program["p"].materialize()] == ["a" * (LEVELS + 1)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "said"),
    (
        (f"p({'(' * 100_000}x{')' * 100_000}) :- e(x, _).", "nested too deeply"),
        ("p(x) :- e(x, _), " + ", ".join(["(x = 1; x = 2)"] * 20) + ".", "alternatives"),
        ("p(x) :- e(x, _), !(" + "; ".join(["(x = 1, x = 2)"] * 20) + ").", "alternatives"),
    ),
)
def test_what_is_too_large_is_refused(text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Database().datalog(DECLARED + text)
