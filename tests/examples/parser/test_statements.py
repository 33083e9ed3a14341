"""A language of statements: programs parse, and edits agree with a parse from scratch."""

from __future__ import annotations

import os
from itertools import islice

import pytest

from examples.parser.edits import edits
from examples.parser.grammar import Grammar
from examples.parser.grammars.statements import GRAMMAR
from examples.parser.parser import Parser
from examples.parser.programs import SHORTEST, program
from examples.parser.rows import Rule, Token
from examples.parser.scratch import parse
from examples.parser.steps import NotVerifiedError, verify
from examples.parser.text import Text

from .parsing import made

TOKENS = int(os.environ.get("PARSER_TOKENS", "120"))
EDITS = int(os.environ.get("PARSER_EDITS", "40"))
"""Numbers of edits; a longer run uses 2000 and 500."""


def wrapped(statement: str) -> list[str]:
    """A program with this statement alone."""
    return ["program", "a", "{", "function", "f", "(", ")", "{", *statement.split(), "}", "}"]


def test_the_grammar_is_of_some_size() -> None:
    assert len(GRAMMAR.rules) >= 40
    assert len(set(GRAMMAR.rules)) == len(GRAMMAR.rules)
    assert len({operator.level for operator in GRAMMAR.operators}) >= 6


@pytest.mark.long
def test_random_programs_have_their_length_and_one_tree() -> None:
    for seed, length in enumerate([SHORTEST, SHORTEST + 1, 50, 120, 250]):
        words = program(length, seed)
        assert len(words) == length
        parser, _ = made(GRAMMAR, words)
        assert parser.is_accepted, words
        assert len(list(parser.trees())) == 1


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_edges_after_every_random_edit(seed: int) -> None:
    parser, text = made(GRAMMAR, program(TOKENS, seed))
    verdicts = []
    for edit in islice(edits(text, GRAMMAR, seed), EDITS):
        parser.apply(edit.apply(text))
        verify(parser, text, GRAMMAR)
        assert len(list(parser.trees())) == parser.is_accepted
        verdicts.append(parser.is_accepted)
    assert set(verdicts) == {True, False}


def test_views_equal_their_queries() -> None:
    parser, text = made(GRAMMAR, program(25, 1))
    for edit in islice(edits(text, GRAMMAR, 1), 4):
        parser.apply(edit.apply(text))
        for view in parser.edges, parser.accepted, parser.ways:
            view.verify()


def test_emptying_the_sentence_word_by_word_leaves_nothing() -> None:
    parser, text = made(GRAMMAR, program(25, 3))
    while text.words:
        parser.apply(text.remove(len(text.words) // 2))
    assert len(parser.edges) == len(parser.ways) == len(parser.accepted) == 0


def test_a_wrong_edge_is_noticed() -> None:
    parser, text = made(GRAMMAR, program(60, 3))
    verify(parser, text, GRAMMAR)
    text.replace(4, "?")
    with pytest.raises(NotVerifiedError, match="edges differ"):
        verify(parser, text, GRAMMAR)


@pytest.mark.long
@pytest.mark.parametrize(
    "statement",
    [
        "x = 1 ;",
        "x += a [ 1 ] . b ( 2 , c ) ;",
        "let x = [ ] ;",
        "const x = [ 1 , [ 2 ] ] ;",
        "if ( a < b and not c ) { ; } else if ( true ) { } else { return ; }",
        "for ( x = 0 ; x < 9 ; x += 1 ) { print ( ) ; }",
        "for x in y { break ; }",
        "do { continue ; } while ( null ) ;",
        "x = ( a == b ? 1 : 2 ) ;",
        "assert - - a ** 2 > 0 or not not b ;",
    ],
)
def test_statements_have_one_tree(statement: str) -> None:
    parser, _ = made(GRAMMAR, wrapped(statement))
    assert len(list(parser.trees())) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "statement",
    ["x = ;", "x 1 ;", "x = 1", "a < b < c ;", "x = a < b == c ;", "else { }", "f ( , ) ;", "} {"],
)
def test_what_is_no_statement_is_not_accepted(statement: str) -> None:
    parser, _ = made(GRAMMAR, wrapped(statement))
    assert not parser.is_accepted


def touched(grammar: Grammar, words: list[str], at: int, word: str) -> int:
    """The rows touched by another word in a place."""
    parser, text = made(grammar, words)
    parser.apply(text.replace(at, word))
    assert set(parser.edges) == parse(grammar, text.tokens())
    return parser.work()


EDITED = wrapped("let x = a + b * c ; return x ;")


@pytest.mark.long
@pytest.mark.parametrize("word", ["%", "/"])
def test_the_work_of_a_harmless_edit_does_not_grow_with_the_text(word: str) -> None:
    place = EDITED.index("*")
    longer = [*EDITED[:-1], *program(1000, 1)[3:-1], "}"]
    assert touched(GRAMMAR, longer, place, word) == touched(GRAMMAR, EDITED, place, word)


@pytest.mark.long
def test_the_work_of_an_edit_does_not_grow_with_the_other_functions() -> None:
    def around(length: int) -> list[str]:
        body = wrapped("x = 1 ; " * length)[3:-1]
        return [*EDITED[:3], *body, *EDITED[3:-1], *body, "}"]

    def work(length: int, word: str) -> int:
        words = around(length)
        return touched(GRAMMAR, words, words.index("+"), word)

    for word in ["-", "*", "or", ";", "?"]:
        assert work(2, word) == work(50, word), word


def test_an_operator_of_the_same_level_changes_no_edge() -> None:
    parser, text = made(GRAMMAR, EDITED)
    before = set(parser.edges)
    parser.apply(text.replace(EDITED.index("*"), "%"))
    assert set(parser.edges) == before


def test_a_rule_without_a_body_is_refused_and_nothing_changes() -> None:
    parser = Parser(GRAMMAR, Text(EDITED).tokens())
    with pytest.raises(IndexError):
        parser.tables.rules.add(Rule("Statement", ()))
    assert parser.is_accepted
    assert parser.tables.sentence.count(Token(0, 1, "program")) == 1
