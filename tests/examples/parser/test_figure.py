"""The grammar and the sentence of the paper have the published results.

Source: [i3ql] section 5, figures 8 and 9.
"""

from __future__ import annotations

import pytest

from examples.parser.figure_demo import CYCLE, LONG, Figure
from examples.parser.grammars.figure import GRAMMAR, SENTENCE
from examples.parser.parser import Parser
from examples.parser.rows import Terminal, Token
from reactive import TableError

from .parsing import made

WORDS = SENTENCE.split()


def counts(parser: Parser) -> tuple[int, int, int]:
    """All edges, passive ones, active ones."""
    parser.edges.verify()
    passive = sum(not edge.needs for edge in parser.edges)
    return len(parser.edges), passive, len(parser.edges) - passive


def sentences(parser: Parser) -> list[tuple[int, int]]:
    """The first and the last word of each S."""
    found = (e for e in parser.edges if e.category == "S" and not e.needs)
    return sorted((e.start, e.end - 1) for e in found)


def test_edges_after_edits_of_words() -> None:
    parser, text = made(GRAMMAR, WORDS)
    assert counts(parser) == (39, 26, 13)
    assert sentences(parser) == [(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4)]
    assert parser.is_accepted
    parser.apply(text.insert(5, "ideas"))
    assert counts(parser) == (42, 28, 14)
    assert not parser.is_accepted
    parser.apply(text.replace(3, "green"))
    assert counts(parser) == (46, 30, 16)
    parser.apply(text.remove(0))
    assert counts(parser) == (34, 23, 11)
    assert not parser.is_accepted


def test_edges_after_edits_of_the_grammar() -> None:
    parser, _ = made(GRAMMAR, WORDS)
    rules = parser.tables.rules
    rules.remove(LONG)
    assert counts(parser) == (31, 22, 9)
    assert not parser.is_accepted
    rules.add(LONG)
    assert counts(parser) == (39, 26, 13)
    rules.add_all(CYCLE)
    assert counts(parser) == (45, 32, 13)
    rules.remove_all(CYCLE)
    assert counts(parser) == (39, 26, 13)
    assert parser.is_accepted


def test_a_cycle_does_not_keep_its_edges_alive() -> None:
    parser, text = made(GRAMMAR, WORDS)
    parser.tables.rules.add_all(CYCLE)
    parser.apply(text.remove(2))
    without, _ = made(GRAMMAR, text.words)
    categories = [edge.category for edge in parser.edges if not edge.needs]
    assert categories.count("X") == categories.count("NP")
    assert len(parser.edges) - categories.count("X") == len(without.edges)


@pytest.mark.parametrize("category", ["Noun", "Verb"])
def test_what_a_word_may_be_is_edited_too(category: str) -> None:
    parser, _ = made(GRAMMAR, WORDS)
    parser.tables.terminals.remove(Terminal("sleep", category))
    assert parser.is_accepted == (category == "Noun")
    parser.tables.terminals.add(Terminal("sleep", category))
    assert counts(parser) == (39, 26, 13)


def test_trees_of_the_sentence() -> None:
    parser, _ = made(GRAMMAR, WORDS)
    assert [str(tree) for tree in parser.trees()] == [
        "(S (NP (AdjP (Adj colorless) (AdjP (Adj green))) (Noun ideas)) "
        "(VP (Verb sleep) (Adv furiously)))"
    ]


def test_trees_of_an_ambiguous_sentence() -> None:
    parser, text = made(GRAMMAR, ["green", "ideas", "sleep"])
    assert len(list(parser.trees())) == 1
    parser.tables.terminals.add(Terminal("ideas", "Adj"))
    parser.tables.terminals.add(Terminal("sleep", "Adv"))
    parser.tables.terminals.add(Terminal("ideas", "Verb"))
    assert sorted(map(str, parser.trees())) == [
        "(S (NP (AdjP (Adj green)) (Noun ideas)) (VP (Verb sleep)))",
        "(S (NP (Noun green)) (VP (Verb ideas) (Adv sleep)))",
    ]
    parser.apply(text.replace(2, "furiously"))
    assert len(list(parser.trees())) == 1


def test_a_sentence_with_a_hole_is_not_accepted() -> None:
    parser, _ = made(GRAMMAR, [])
    parser.tables.sentence.add_all([Token(0, 1, "ideas"), Token(1, 2, "sleep")])
    assert parser.is_accepted
    parser.tables.sentence.add(Token(3, 4, "furiously"))
    assert not parser.is_accepted
    parser.tables.sentence.remove(Token(3, 4, "furiously"))
    assert parser.is_accepted
    parser.tables.sentence.clear()
    assert not parser.is_accepted
    assert len(parser.edges) == len(parser.ways) == 0


def test_a_word_can_be_in_its_place_only_once() -> None:
    parser, text = made(GRAMMAR, WORDS)
    with pytest.raises(TableError):
        parser.tables.sentence.add(text.tokens()[3])
    assert counts(parser) == (39, 26, 13)


def test_the_demonstration_goes_through_the_known_counts() -> None:
    steps = list(Figure().steps())
    assert [step.edges for step in steps] == [39, 42, 46, 34, 39, 31, 39, 45, 39]
    assert [len(step.removed) for step in steps][-1] == 6
