"""A text is its words, however it is edited, and an edit changes two words at most."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from examples.parser.rows import Token
from examples.parser.text import Text

edits = st.tuples(st.sampled_from(["insert", "remove", "replace"]), st.integers(0, 9))


@given(st.lists(st.sampled_from("ab"), max_size=5), st.lists(edits, max_size=12))
def test_tokens_follow_the_words(words: list[str], history: list[tuple[str, int]]) -> None:
    text, tokens = Text(words), set(Text(words).tokens())
    for what, place in history:
        length = len(words)
        if what == "insert":
            at = place % (length + 1)
            words.insert(at, "c")
            change = text.insert(at, "c")
        elif not length:
            continue
        elif what == "remove":
            del words[place % length]
            change = text.remove(place % length)
        else:
            words[place % length] = "d"
            change = text.replace(place % length, "d")
        assert change.removed <= tokens
        assert not change.added & tokens
        assert len(change.removed) <= 2
        assert len(change.added) <= 2
        tokens = (tokens - change.removed) | change.added
        assert tokens == set(text.tokens())
        assert text.words == words == _read(text, tokens)


def _read(text: Text, tokens: set[Token]) -> list[str]:
    """The words, found by going from gap to gap."""
    by_start = {token.start: token for token in tokens}
    places = text.places()
    assert len(by_start) == len(tokens) == len(places) - 1
    gap = next(iter(places))
    words = []
    while gap in by_start:
        words.append(by_start[gap].word)
        gap = by_start[gap].end
    assert places[gap] == len(tokens)
    return words


def test_an_edit_at_an_end_changes_no_other_word() -> None:
    text = Text(["a", "b"])
    assert not text.insert(2, "c").removed
    assert not text.insert(0, "d").removed
    assert len(text.remove(0).removed) == len(text.remove(2).removed) == 1
    assert text.words == ["a", "b"]
