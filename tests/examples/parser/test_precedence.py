"""Operators bind as their table says, and as Python's do with Python's table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.parser.grammars.statements import OPERATORS
from examples.parser.parser import Parser
from examples.parser.rows import Operator
from examples.parser.scratch import parse
from examples.parser.text import Text
from tests.budget import examples

from .expressions import NAMES, by_python, is_beyond, of_operators, shown, written
from .parsing import made

PYTHON = of_operators(o for o in OPERATORS if o.word not in ("!=", "<=", ">", ">=", "/"))
EDITED = Parser(PYTHON)
"""One parser for all examples: each is an edit of the one before."""
INFIXES = sorted({o.word for o in PYTHON.operators if o.side != "prefix"})
PREFIXES = ["-", "not"]

operands = st.tuples(st.lists(st.sampled_from(PREFIXES), max_size=2), st.sampled_from(NAMES))
rests = st.lists(st.tuples(st.sampled_from(INFIXES), operands), max_size=4)


@examples(200)
@given(first=operands, rest=rests)
def test_expressions_bind_as_in_python(
    first: tuple[list[str], str], rest: list[tuple[str, tuple[list[str], str]]]
) -> None:
    words = [*first[0], first[1]]
    for infix, (prefixes, name) in rest:
        words += [infix, *prefixes, name]
    EDITED.tables.sentence.replace_all(Text(words).tokens())
    if not is_beyond(words):
        expected = by_python(words)
        assert shown(EDITED) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((1, "left"), (1, "left"), ["((a + b) * c)"]),
        ((1, "right"), (1, "right"), ["(a + (b * c))"]),
        ((1, "none"), (1, "none"), []),
        ((1, "left"), (2, "none"), ["(a + (b * c))"]),
        ((2, "right"), (1, "left"), ["((a + b) * c)"]),
        ((1, "left"), (1, "right"), []),
        ((1, "right"), (1, "left"), ["((a + b) * c)", "(a + (b * c))"]),
    ],
)
def test_level_and_side(left: tuple[int, str], right: tuple[int, str], expected: list[str]) -> None:
    operators = [Operator("Expression", "+", *left), Operator("Expression", "*", *right)]
    assert sorted(written(of_operators(operators), ["a", "+", "b", "*", "c"])) == sorted(expected)


def test_an_edit_of_the_table_is_an_edit_of_the_trees() -> None:
    plus, times = Operator("Expression", "+", 1, "left"), Operator("Expression", "*", 3, "left")
    parser, text = made(of_operators([plus, times]), ["a", "+", "b", "*", "c"])
    table = parser.tables.operators
    assert shown(parser) == ["(a + (b * c))"]
    for level, expected in ((4, "((a + b) * c)"), (3, "((a + b) * c)"), (2, "(a + (b * c))")):
        tighter = plus._replace(level=level)
        table.update(plus, tighter)
        plus = tighter
        assert shown(parser) == [expected]
        assert set(parser.edges) == parse(of_operators([plus, times]), text.tokens())
    table.remove(plus)
    assert shown(parser) == []
    table.add(plus._replace(side="right"))
    assert shown(parser) == ["(a + (b * c))"]


def test_operators_join_phrases_of_their_category_only() -> None:
    operators = [Operator("Other", "+", 1, "left"), Operator("Other", "-", 1, "prefix")]
    assert written(of_operators(operators), ["a", "+", "b"]) == []
    assert written(of_operators(operators), ["-", "a"]) == []
