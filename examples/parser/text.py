"""A text as words between gaps, and what an edit of one word changes of its tokens.

    gaps    0     1     2     3             0     4     1     2     3
            | the | old | man |      ->     | the | big | old | man |

A new word brings one new gap. The word before it is the only one that changes with it: it ends at
the new gap now. When a word goes, the word before it ends where that one ended. All other words,
and whatever was found among them, stay as they are. At the two ends no other word changes.

The word before changes, not the one after, because more edges begin at a gap than end there: an
opening bracket begins all phrases inside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from examples.parser.rows import Token


@dataclass(frozen=True, slots=True)
class Change:
    """Tokens that go, and tokens that come."""

    removed: frozenset[Token]
    added: frozenset[Token]


class Text:
    """Words in their order.

    >>> text = Text(["the", "old", "man"])
    >>> change = text.insert(1, "big")
    >>> sorted(change.removed), sorted(change.added)
    ([Token(start=0, end=1, word='the')], \
[Token(start=0, end=4, word='the'), Token(start=4, end=1, word='big')])
    >>> text.words
    ['the', 'big', 'old', 'man']
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = list(words)
        self._gaps = list(range(len(self.words) + 1))
        self._next_gap = len(self._gaps)

    def tokens(self, start: int = 0, stop: int | None = None) -> list[Token]:
        """Return the words with their gaps, all or from one place to another."""
        stop = len(self.words) if stop is None else stop
        gaps = self._gaps[start : stop + 1]
        return list(map(Token, gaps, gaps[1:], self.words[start:stop]))

    def places(self) -> dict[int, int]:
        """Return the gaps, with the number of words before each."""
        return {gap: at for at, gap in enumerate(self._gaps)}

    def replace(self, at: int, word: str) -> Change:
        """Another word at this place."""
        before = self.tokens(at, at + 1)
        self.words[at] = word
        return _change(before, self.tokens(at, at + 1))

    def insert(self, at: int, word: str) -> Change:
        """Return a word before the one at this place, or at the end."""
        first, is_last = max(at - 1, 0), at == len(self.words)
        before = self.tokens(first, at)
        self._gaps.insert(at + is_last, self._next_gap)
        self._next_gap += 1
        self.words.insert(at, word)
        return _change(before, self.tokens(first, at + 1))

    def remove(self, at: int) -> Change:
        """Delete the word at a place."""
        first, is_last = max(at - 1, 0), at == len(self.words) - 1
        before = self.tokens(first, at + 1)
        del self._gaps[at + is_last]
        del self.words[at]
        return _change(before, self.tokens(first, at))


def _change(before: list[Token], after: list[Token]) -> Change:
    old, new = frozenset(before), frozenset(after)
    return Change(old - new, new - old)
