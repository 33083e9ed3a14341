"""The parser agrees with an independent recogniser, after every edit of words and grammar."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.parser.grammar import Grammar
from examples.parser.grammars.figure import GRAMMAR, SENTENCE
from tests.budget import examples

from .grammars import any_form, cyclic, edits, normal_form, words
from .history import MOST_WORDS, Edited
from .oracles import Span, recognised

Edits = list[tuple[Any, ...]]
FORMS = {"normal form": normal_form, "any form": any_form, "cycles": cyclic}

"""Factor of the usual number of examples."""

sentences = st.lists(words, max_size=MOST_WORDS)
histories = st.lists(edits, max_size=6)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@examples(40)
@given(data=st.data(), sentence=sentences, history=histories)
def test_edges_after_every_edit(
    form: str, data: st.DataObject, sentence: list[str], history: Edits
) -> None:
    edited = Edited(data.draw(FORMS[form]), sentence)
    edited.check_edges()
    for edit in history:
        edited.edit(*edit)
        edited.check_edges()


@examples(20)
@given(grammar=any_form, sentence=sentences, history=histories)
def test_one_transaction_does_what_the_edits_do_one_by_one(
    grammar: Grammar, sentence: list[str], history: Edits
) -> None:
    edited = Edited(grammar, sentence)
    with edited.parser.transaction():
        for edit in history:
            edited.edit(*edit)
    edited.check_edges()


def test_the_recogniser_itself() -> None:
    grammar = Grammar("S", (), ())
    assert recognised(grammar, ["a"]) == set()
    found: set[Span] = recognised(GRAMMAR, SENTENCE.split())
    assert len(found) == 26
    assert {(i, j) for i, j, name in found if name == "S"} == {
        (start, end) for start in range(3) for end in (4, 5)
    }
