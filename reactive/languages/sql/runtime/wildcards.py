"""Patterns with wildcards (LIKE, ILIKE, GLOB, the simple ones of SIMILAR TO), matched in one pass.

    %error%time_out     segments  ""  "error"  "time_out"

The text between two `%` is a segment: each of its letters stands for one letter of the text. The
first segment has to be at the beginning and the last one at the end. Each of the others is searched
from the end of the one before, and its leftmost place is taken. No other place need be tried: a
place further to the right only leaves less text for the segments that follow.

State:  the last 4096 compiled patterns that are not long.
Cost:   O(text) for segments of plain letters, O(text * segment) at most for others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

Letter: TypeAlias = tuple[str, str | None]
"""A regular expression of one letter; the letter, if it is the only one that matches."""
ANY: Letter = (".", None)
Matcher: TypeAlias = Callable[[str], bool]
KEPT = 512
"""Letters of the longest pattern that is kept compiled."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Letters of a pattern between two wildcards of any length.

    skipped: letters at its beginning that match anything, of a segment that is searched.
    size: all letters.
    """

    skipped: int
    size: int
    plain: str | None
    expression: re.Pattern[str]

    def find(self, text: str, start: int, end: int) -> int:
        """Return the end of the leftmost place in `text[start:end]`, or -1."""
        if end - start < self.size:
            return -1
        start += self.skipped
        if self.plain is not None:
            place = text.find(self.plain, start, end)
        else:
            found = self.expression.search(text, start, end)
            place = -1 if found is None else found.start()
        place = place if place < 0 else place - self.skipped + self.size
        return place if place <= end else -1

    def is_at(self, text: str, start: int) -> bool:
        """Return True if the segment, with no letter skipped, matches from `start`."""
        if self.plain is not None:
            return text.startswith(self.plain, start)
        return self.expression.match(text, start) is not None


class Wildcards:
    """A pattern as segments.

    >>> a, b = ("a", "a"), ("b", "b")
    >>> pattern = Wildcards([[a], [ANY, b], []])
    >>> pattern.is_match("a-xb-"), pattern.is_match("ab"), pattern.shortest("a-xb-")
    (True, False, 4)
    """

    __slots__ = ("_first", "_last", "_least", "_middle", "is_match")

    def __init__(self, segments: Sequence[Sequence[Letter]], flags: int = 0) -> None:
        self._first = _segment(segments[0], flags)
        self._middle = [_make_search(each, flags) for each in segments[1:-1] if each]
        self._last = _segment(segments[-1], flags) if len(segments) > 1 else None
        self._least = sum(map(len, segments))
        self.is_match: Matcher = self._special() or self._is_match
        """True if the pattern matches all of a text."""

    def _special(self) -> Matcher | None:
        """Return a method of `str` that does the same, if there is one."""
        first = self._first.plain
        if first is None:
            return None
        if self._last is None:
            return first.__eq__
        last = self._last.plain
        if last is None:
            return None
        if not self._middle and not last:
            return lambda text: text.startswith(first)
        if not self._middle and not first:
            return lambda text: text.endswith(last)
        if first or last or len(self._middle) != 1:
            return None
        wanted, size = self._middle[0].plain, self._middle[0].size
        if wanted is None or size != len(wanted):
            return None
        return lambda text: wanted in text

    def _is_match(self, text: str) -> bool:
        """Return True if a text has all segments in order, the first and last at its ends."""
        if self._last is None:
            return len(text) == self._least and self._first.is_at(text, 0)
        end = len(text) - self._last.size
        if len(text) < self._least or not self._last.is_at(text, end):
            return False
        return self._end(text, end) >= 0

    def shortest(self, text: str) -> int:
        """Return the end of the shortest beginning of a text that the pattern matches, or -1."""
        end = self._end(text, len(text))
        if end < 0 or not self._last or not self._last.size:
            return end
        return self._last.find(text, end, len(text))

    def _end(self, text: str, end: int) -> int:
        """Return where the last segment before `end` ends at the leftmost, or -1."""
        place = self._first.size
        if place > end or not self._first.is_at(text, 0):
            return -1
        for segment in self._middle:
            place = segment.find(text, place, end)
            if place < 0:
                return -1
        return place


def _segment(letters: Sequence[Letter], flags: int) -> Segment:
    """Return the segment of some letters, as plain text if each matches one letter only."""
    made = [letter for _, letter in letters]
    plain = None if flags & re.IGNORECASE or None in made else "".join(map(str, made))
    if not letters:
        plain = ""
    expression = "" if plain is not None else "".join(one for one, _ in letters)
    return Segment(0, len(letters), plain, re.compile(expression, flags | re.DOTALL))


def _make_search(letters: Sequence[Letter], flags: int) -> Segment:
    """Return a segment that is searched; letters at its ends that match anything are counted."""
    start, end = 0, len(letters)
    while start < end and letters[start] == ANY:
        start += 1
    while end > start and letters[end - 1] == ANY:
        end -= 1
    inner = _segment(letters[start:end], flags)
    return Segment(start, len(letters), inner.plain, inner.expression)


def plain_letter(letter: str) -> Letter:
    """Return a letter of a pattern that stands for itself."""
    return re.escape(letter), letter


@dataclass(frozen=True, slots=True)
class Like:
    """A pattern of LIKE.

    is_open: it ends with its escape, which no letter follows.
    """

    wildcards: Wildcards
    is_open: bool


def like_pattern(pattern: str, escape: str = "", flags: int = 0) -> Like:
    """Compile a LIKE pattern: `%` matches any text and `_` any letter.

    >>> like_pattern("gr%n").wildcards.is_match("green")
    True
    """
    return (_kept_like if len(pattern) <= KEPT else _like)(pattern, escape, flags)


def _like(pattern: str, escape: str, flags: int) -> Like:
    """Return the compiled LIKE pattern; `is_open` if it ends with its escape."""
    segments: list[list[Letter]] = [[]]
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            escaped = next(letters, None)
            if escaped is None:
                return Like(Wildcards(segments, flags), is_open=True)
            segments[-1].append(plain_letter(escaped))
        elif letter == "%":
            segments.append([])
        else:
            segments[-1].append(ANY if letter == "_" else plain_letter(letter))
    return Like(Wildcards(segments, flags), is_open=False)


_kept_like = lru_cache(4096)(_like)


def wildcards_of(parts: Iterable[Letter | None]) -> Wildcards:
    """Compile letters, between which None is any text."""
    segments: list[list[Letter]] = [[]]
    for part in parts:
        if part is None:
            segments.append([])
        else:
            segments[-1].append(part)
    return Wildcards(segments)
