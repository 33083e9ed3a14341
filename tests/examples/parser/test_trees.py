"""Parse trees equal a plain enumeration, after every edit."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from examples.parser.grammar import Grammar, rules, terminals
from tests.budget import examples

from .grammars import any_form, cyclic, edits, words
from .history import Edited

sentences = st.lists(words, max_size=4)
histories = st.lists(edits, max_size=4)


@examples(25)
@given(grammar=any_form | cyclic, sentence=sentences, history=histories)
def test_trees_after_every_edit(
    grammar: Grammar, sentence: list[str], history: list[tuple[Any, ...]]
) -> None:
    edited = Edited(grammar, sentence)
    edited.check_trees()
    for edit in history:
        edited.edit(*edit)
        if len(edited.text.words) <= 4:
            edited.check_trees()


def test_all_trees_of_an_ambiguous_sentence() -> None:
    grammar = Grammar("S", rules("S -> S S"), terminals("S: a"))
    for length, expected in ((1, 1), (2, 1), (3, 2), (4, 5), (5, 14)):
        edited = Edited(grammar, ["a"] * length)
        assert len(list(edited.parser.trees())) == expected
        edited.check_trees()


def test_a_phrase_inside_itself_has_only_the_trees_that_end() -> None:
    grammar = Grammar("S", rules("S -> T\nT -> S\nS -> S T"), terminals("S: a b\nT: b"))
    edited = Edited(grammar, ["a", "b"])
    edited.check_trees()
    edited.edit("terminal", grammar.terminals[2])
    edited.check_trees()


def test_rules_that_end_alike_share_an_edge_but_not_their_trees() -> None:
    grammar = Grammar("S", rules("S -> A C\nS -> B C"), terminals("A: a\nB: a\nC: c"))
    edited = Edited(grammar, ["a", "c"])
    assert sum(bool(edge.needs) for edge in edited.parser.edges) == 1
    edited.check_trees()
    assert len(list(edited.parser.trees())) == 2
