"""Grammars, sentences and histories made at random."""

from __future__ import annotations

from hypothesis import strategies as st

from examples.parser.grammar import Grammar
from examples.parser.rows import Rule, Terminal

CATEGORIES, WORDS = "STUV", "abc"
UNKNOWN = "z"

categories = st.sampled_from(CATEGORIES)
words = st.sampled_from(WORDS + UNKNOWN)
terminals = st.builds(Terminal, st.sampled_from(WORDS), categories)
pairs = st.builds(Rule, categories, st.tuples(categories, categories))
units = st.builds(Rule, categories, st.tuples(categories))
longs = st.builds(Rule, categories, st.lists(categories, min_size=3, max_size=4).map(tuple))


def grammars(rules: st.SearchStrategy[Rule]) -> st.SearchStrategy[Grammar]:
    """Grammars of such rules."""
    return st.builds(
        lambda rules, terminals: Grammar("S", tuple(rules), tuple(terminals)),
        st.sets(rules, min_size=1, max_size=7),
        st.sets(terminals, min_size=1, max_size=6),
    )


normal_form = grammars(pairs)
"""Grammars in Chomsky's normal form: two categories or a word."""
any_form = grammars(pairs | units | longs)
cyclic = grammars(pairs | units)
"""Grammars with many rules of one category, so that most have cycles."""

PLACES = st.integers(0, 6)
edits = st.one_of(
    st.tuples(st.just("replace"), PLACES, words),
    st.tuples(st.just("insert"), PLACES, words),
    st.tuples(st.just("remove"), PLACES, words),
    st.tuples(st.just("rule"), pairs | units | longs),
    st.tuples(st.just("terminal"), terminals),
)
"""Edits of a word, or of the grammar: a rule or a terminal is added, or removed if present."""
