"""Regular expressions of users, matched in time linear in the text.

    (a|b)*c     ->  states of an automaton  ->  sets of states, one step for each letter

Python's `re` tries one way after the other. A pattern such as `(a*)*b` has exponentially many of
them, so that thirty letters stop a program. `Expression` bounds the ways before it matches:

    few ways for a text of this length      `re` matches
    many, for a test                        an automaton follows all ways in one pass
    many, for the place of the match        `re`, up to a limit; then `TooManyWays`, an error row

References to groups, atomic groups and looks further than one letter have no automaton; with many
ways these raise as well.

State:  of a pattern at most `KNOWN` steps of its automaton.
Cost:   at most about `MOST` steps of `re`, or O(text * pattern); O(text) where steps are known.
Source: Thompson, "Regular Expression Search Algorithm" (1968).
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cached_property
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

MOST = 5_000_000
"""The most ways through a pattern, times letters, for which `re` tests for a match."""
MOST_PLACES = 500_000_000
"""The most for the places of matches: seconds at worst."""
SCAN = 200
"""Letters that `re` skips, within one repetition of a class, in the time of one way."""
STATES = 10_000
"""The most states of an automaton."""
KNOWN = 5_000
"""The most steps of an automaton that are remembered."""
LETTERS = 1 << 40
"""More letters than a text has."""
END = -1
"""The state after the whole pattern has matched."""
ONE = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY}
REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT}
LOOKS = {_constants.ASSERT, _constants.ASSERT_NOT}


class TooManyWays(ValueError):
    """A text is too long for a regular expression."""


class _Unknown(Exception):
    """A part of a pattern has no automaton."""


class Expression:
    """A compiled regular expression that never takes long.

    >>> made = Expression(re.compile("(a*)*b"))
    >>> made.fullmatch("a" * 10_000), made.fullmatch("a" * 10_000 + "b"), made.search("cab")
    (False, True, True)
    """

    def __init__(self, compiled: re.Pattern[str]) -> None:
        self._compiled = compiled
        self._tree: Any = _parser.parse(compiled.pattern, compiled.flags)
        self._longest = {
            is_search: _longest(self._tree, compiled.flags, is_search, MOST)
            for is_search in (True, False)
        }
        self._automata: dict[bool, _Automaton | None] = {}

    def search(self, text: str) -> bool:
        """Return True if a match is somewhere in the text."""
        if len(text) <= self._longest[True]:
            return self._compiled.search(text) is not None
        return self._automaton(text, is_search=True).is_match(text)

    def fullmatch(self, text: str) -> bool:
        """Return True if all of the text is a match."""
        if len(text) <= self._longest[False]:
            return self._compiled.fullmatch(text) is not None
        return self._automaton(text, is_search=False).is_match(text)

    def finder(self, text: str) -> re.Pattern[str]:
        """Return the pattern of `re`, which finds the places of matches in a text.

        Raises
        ------
        TooManyWays: the search may take long.
        """
        if len(text) > self._longest[True] and len(text) > self._longest_with_places:
            raise self._make_refusal(text, self._longest_with_places)
        return self._compiled

    @cached_property
    def _longest_with_places(self) -> float:
        return _longest(self._tree, self._compiled.flags, True, MOST_PLACES)

    def _automaton(self, text: str, *, is_search: bool) -> _Automaton:
        """Return the cached automaton; raise `TooManyWays` if the pattern has none."""
        if is_search not in self._automata:
            made = None
            with suppress(_Unknown, RecursionError):
                made = _Automaton(self._tree, self._compiled.flags, is_search)
            self._automata[is_search] = made
        found = self._automata[is_search]
        if found is None:
            raise self._make_refusal(text, self._longest[is_search])
        return found

    def _make_refusal(self, text: str, longest: float) -> TooManyWays:
        """Return the error of a text with more than `longest` letters."""
        pattern = self._compiled.pattern
        shown = pattern if len(pattern) <= 60 else f"{pattern[:60]}..."
        return TooManyWays(
            f"cannot match the regular expression {shown!r} against a text of {len(text):,} "
            f"letters: its repetitions can be combined in too many ways; at most "
            f"{int(longest):,} letters\n"
            "  write one repetition after another so that the letter behind it is none of its own"
        )


# How many ways there are.


def _longest(tree: Any, flags: int, is_search: bool, most: int) -> float:
    """Return the letters of the longest text that `re` may match."""
    is_long = tree.getwidth()[1] >= LETTERS or tree.getwidth()[1] >= int(_constants.MAXREPEAT)

    def is_few(letters: int) -> bool:
        ways = _ways(tree, None, letters, tree.state, flags)
        if is_search and is_long:
            ways = max(ways, letters / SCAN)
        return ways * (letters if is_search and ways > 1 else 1) <= most

    if is_few(LETTERS):
        return float("inf")
    low, high = 0, LETTERS
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_few(middle) else (low, middle - 1)
    return low


def _ways(items: Any, behind: Any, letters: int, state: Any, flags: int) -> float:
    """Return the number of ways that `re` may try through some items; `behind` is the next item."""
    ways, items = 1.0, [*items]
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else behind
        ways *= _ways_of(item, following, letters, state, flags)
    return ways


def _ways_of(item: Any, behind: Any, letters: int, state: Any, flags: int) -> float:
    """Return a bound of the ways in which `re` may try an item; infinity for an unknown item."""
    op, of = item
    if op is _constants.SUBPATTERN:
        return _ways(of[3], behind, letters, state, flags)
    if op is _constants.ATOMIC_GROUP:
        return _ways(of, None, letters, state, flags)
    if op in LOOKS:
        return _ways(of[1], None, letters, state, flags)
    if op is _constants.BRANCH:
        each = [_ways(branch, behind, letters, state, flags) for branch in of[1]]
        firsts = [branch[0] if len(branch) else None for branch in of[1]]
        apart = all(
            _are_apart(one, other, state, flags)
            for place, one in enumerate(firsts)
            for other in firsts[:place]
        )
        return max(each) if apart else sum(each)
    if op in REPEATS or op is _constants.POSSESSIVE_REPEAT:
        least, most, inner = of
        inside = _ways(inner, inner[0] if len(inner) else None, letters, state, flags)
        most = min(int(most), max(letters, least))
        if inside > 1:
            return _power_or_infinity(inside, most)
        is_plain = len(inner) and not _are_apart(inner[0], behind, state, flags)
        return most - least + 1 if is_plain and op in REPEATS else 1
    if op in ONE or op is _constants.AT or op is _constants.GROUPREF:
        return 1
    return float("inf")


def _power_or_infinity(base: float, exponent: int) -> float:
    """Return a power; infinity if it overflows."""
    try:
        return base**exponent
    except OverflowError:
        return float("inf")


def _are_apart(one: Any, other: Any, state: Any, flags: int) -> bool:
    """Return True if no letter begins both items; False if that is not known."""
    if one is None or other is None:
        return False
    first, second = _first_letter_part(one), _first_letter_part(other)
    if first is None or second is None:
        return False
    letters = {*map(chr, range(256)), *_edges(first), *_edges(second)}
    a, b = (_compile([each], state, flags) for each in (first, second))
    return not any(a.match(letter) and b.match(letter) for letter in letters)


def _first_letter_part(item: Any) -> Any:
    """Return the part of an item that matches its first letter; None if that may be none."""
    op, of = item
    while op is _constants.SUBPATTERN or op in REPEATS:
        inner = of[3] if op is _constants.SUBPATTERN else of[2]
        if not len(inner) or (op in REPEATS and of[0] == 0):
            return None
        op, of = item = inner[0]
    return item if op in ONE else None


def _edges(item: Any) -> set[str]:
    """Return the letters that an item names, and those beside them."""
    op, of = item
    codes = set[int]()
    for name, value in of if op is _constants.IN else [item]:
        if name is _constants.RANGE:
            codes |= {*value}
        elif isinstance(value, int) and name is not _constants.CATEGORY:
            codes.add(value)
    near = {code + step for code in codes for step in (-1, 0, 1)}
    return {chr(code) for code in near if 0 <= code <= 0x10FFFF}


def _compile(items: list[Any], state: Any, flags: int) -> re.Pattern[str]:
    found: re.Pattern[str] = _compiler.compile(_parser.SubPattern(state, items), flags)
    return found


# The automaton.


class _Set:
    """A set of states, and the steps from it that are known."""

    __slots__ = ("is_end", "states", "steps")

    def __init__(self, states: frozenset[int], is_end: bool) -> None:
        self.states = states
        self.is_end = is_end
        self.steps: dict[Any, _Set] = {}


class _Automaton:
    """States of a pattern.

    _leaves: state -> what matches one letter, and the state after it.
    _splits: state -> the states that it is as well.
    _looks:  state -> what the letters around a place have to be, and the state after it.
    """

    def __init__(self, tree: Any, flags: int, is_search: bool) -> None:
        self._state, self._flags, self._is_search = tree.state, flags, is_search
        self._leaves: dict[int, tuple[re.Pattern[str], int]] = {}
        self._splits: dict[int, list[int]] = {}
        self._looks: dict[int, tuple[re.Pattern[str], int]] = {}
        self._count = 0
        self._start = self._sequence(tree, END)
        self._sets: dict[Any, _Set] = {}
        self._known = 0

    # Built from its end to its beginning.

    def _new(self) -> int:
        """Return the number of a new state; raise `_Unknown` if there are too many."""
        self._count += 1
        if self._count > STATES:
            raise _Unknown
        return self._count

    def _sequence(self, items: Any, behind: int) -> int:
        """Return the first state of some items in a row that `behind` follows."""
        for item in reversed([*items]):
            behind = self._item(item, behind)
        return behind

    def _item(self, item: Any, behind: int) -> int:
        """Return the first state of an item that `behind` follows; raise `_Unknown` without one."""
        op, of = item
        if op in ONE:
            made = self._new()
            self._leaves[made] = (_compile([item], self._state, self._flags), behind)
            return made
        if op is _constants.SUBPATTERN and not of[1] and not of[2]:
            return self._sequence(of[3], behind)
        if op is _constants.BRANCH:
            made = self._new()
            self._splits[made] = [self._sequence(branch, behind) for branch in of[1]]
            return made
        if op in REPEATS:
            least, most, inner = of
            return self._repeat(least, most, inner, behind)
        if op is _constants.AT or (op in LOOKS and of[1].getwidth()[1] <= 1):
            made = self._new()
            self._looks[made] = (_compile([item], self._state, self._flags), behind)
            return made
        raise _Unknown

    def _repeat(self, least: int, most: Any, inner: Any, behind: int) -> int:
        """Return the first state of a repetition that the state `behind` follows."""
        made = behind
        if most is _constants.MAXREPEAT:
            made = self._new()
            self._splits[made] = [self._sequence(inner, made), behind]
        else:
            for _ in range(int(most) - least):
                split = self._new()
                self._splits[split] = [self._sequence(inner, made), behind]
                made = split
        for _ in range(least):
            made = self._sequence(inner, made)
        return made

    # Run.

    def is_match(self, text: str) -> bool:
        """Return True if the pattern matches: all of a text, or some of it in a search."""
        if self._looks:
            return self._is_match_with_looks(text)
        found, is_search = self._set([self._start], ""), self._is_search
        for letter in text:
            if is_search and found.is_end:
                return True
            found = found.steps.get(letter) or self._step(found, letter, letter, "")
            if not found.states and not found.is_end:
                return False
        return found.is_end

    def _is_match_with_looks(self, text: str) -> bool:
        """Match; which states a state is depends on the letters around a place."""
        found = self._set([self._start], ("", text[:2]))
        for place, letter in enumerate(text):
            if self._is_search and found.is_end:
                return True
            around = (letter, text[place + 1 : place + 3])
            found = found.steps.get(around) or self._step(found, letter, around, around)
        return found.is_end

    def _step(self, before: _Set, letter: str, key: Any, around: Any) -> _Set:
        """Compute the set behind a letter, and remember it; forget all sets beyond `KNOWN`."""
        after = {
            state
            for leaf, state in map(self._leaves.__getitem__, before.states)
            if leaf.match(letter)
        }
        if self._is_search:
            after.add(self._start)
        found = self._set(after, around)
        self._known += 1
        if self._known > KNOWN:
            for each in self._sets.values():
                each.steps.clear()
            self._sets.clear()
            self._known = 0
        before.steps[key] = found
        return found

    def _set(self, states: Any, around: Any) -> _Set:
        """Return the set of the leaves that some states are, and of the end."""
        leaves, seen, todo = set[int](), {*states}, [*states]
        while todo:
            state = todo.pop()
            if state in self._leaves:
                leaves.add(state)
                continue
            further = self._splits.get(state, [])
            if state in self._looks:
                look, behind = self._looks[state]
                further = [behind] if look.match("".join(around), len(around[0])) else []
            new = {*further} - seen
            seen |= new
            todo += new
        frozen = frozenset(leaves)
        key = (frozen, END in seen)
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = _Set(frozen, END in seen)
        return found
