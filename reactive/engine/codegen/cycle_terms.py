"""How many joined rows a pair of ends makes, in each place of a join of which no row is read.

    a: x -> y    b: y -> z    c: x -> z             (left, right) is a pair that comes

    as a    met += len(from right & from left)      each z
    as b    met += len(to left & to right)          each x
    as c    met += len(from left & to right)        each y

The pair is in the sets already. A join is linear in each place, so what it makes is

    d(A B C)  =  d B' C'  +  A d C'  +  A B d       where A', B', C' are without the pair

if it comes (and the contrary if it goes, when it is still there): of places of the same relation,
the earlier ones have the pair, the later ones do not. Values are bound one after the other, each by
the sets of all places that lead to it from what is bound: generic join.

Where pairs have other weights than one, or both ends are equal, the same is done with a product of
weights (`weighted`).

Source: Ngo, Re, Rudra, *Skew strikes back*, 2013; delta queries: Ammar, McSherry, Salihoglu,
        Joglekar, 2018.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from optimizer.record import record

NOTHING = -1
"""The variable that is bound to nothing: what rows with one end lead from."""

Line = tuple[int, str]
"""How deep it is, and its text."""


@record
class Occurrence:
    """A place of a join: whose pairs it has, and the variables of the ends of a pair."""

    of: int
    ends: tuple[int, int]


@record
class _Reading:
    """What a place leads to from an end that is bound; `without` if the pair is not there."""

    of: int
    symbol: str
    is_onward: bool
    without: bool

    @property
    def text(self) -> str:
        return f"find_{'right' if self.is_onward else 'left'}_{self.of}({self.symbol}, empty)"

    def pair(self, other: str) -> tuple[str, str]:
        return (self.symbol, other) if self.is_onward else (other, self.symbol)

    def excluded(self) -> tuple[str, str]:
        """Of which symbol it must be read to lead to the pair, and which end it then leads to."""
        if self.symbol == "nothing":
            return "nothing", "right"
        return ("left", "right") if self.is_onward else ("right", "left")


@dataclass
class CycleTerms:
    """Writes the terms of the places of one relation."""

    occurrences: Sequence[Occurrence]
    weighted: bool = False
    lines: list[Line] = field(default_factory=list)
    _hoisted: dict[_Reading, str] = field(default_factory=dict)
    _parts: int = 0

    def write(self, of: int) -> list[Line]:
        """The lines that add to `met` what the pair makes, in all places of a relation."""
        terms: Counter[tuple[Line, ...]] = Counter()
        for place, occurrence in enumerate(self.occurrences):
            if occurrence.of == of:
                self.lines, self._parts = [], 0
                self._term(place)
                terms[tuple(self.lines)] += 1
        hoisted = [(0, f"{name} = {reading.text}") for reading, name in self._hoisted.items()]
        return hoisted + [line for term, times in terms.items() for line in _times(term, times)]

    def _term(self, place: int) -> None:
        start, end = self.occurrences[place].ends
        bound = {start: "left", end: "right", NOTHING: "nothing"}
        tests: list[str] = []
        factors: list[str] = []
        for other, occurrence in enumerate(self.occurrences):
            if other != place and all(variable in bound for variable in occurrence.ends):
                one, two = (bound[variable] for variable in occurrence.ends)
                reading = self._reading(place, other, one, is_onward=True)
                is_pair = self._is_own(place, other) and (one, two) == (bound[start], "right")
                if self.weighted:
                    is_there = f"{two} in {self._set(reading)}"
                    factors.append(f"({self._weight(reading, two)} if {is_there} else 0)")
                elif is_pair and reading.without:
                    return
                elif not is_pair:
                    tests.append(f"{two} in {self._set(reading)}")
        depth = 0
        if tests:
            self.lines.append((0, f"if {' and '.join(tests)}:"))
            depth = 1
        self._begin(place, bound, factors, depth)

    def _begin(self, place: int, bound: dict[int, str], factors: list[str], depth: int) -> None:
        """What is bound first: where nothing is intersected, the one of which there are fewer."""
        found = self._nexts(place, bound)
        best = _best(found)
        others = [variable for variable in found if variable != best]
        if best is None or _rank(found[best]) > 1 or not others:
            self._follow(place, bound, factors, depth, best)
            return
        other = max(others, key=lambda variable: _rank(found[variable]))
        one, two = (self._sets(found[variable])[0] for variable in (best, other))
        self.lines.append((depth, f"if len({one}) <= len({two}):"))
        self._follow(place, bound, factors, depth + 1, best)
        self.lines.append((depth, "else:"))
        self._follow(place, bound, factors, depth + 1, other)

    def _follow(
        self, place: int, bound: dict[int, str], factors: list[str], depth: int, first: int | None
    ) -> None:
        found = self._nexts(place, bound)
        variable = _best(found) if first is None else first
        if variable is None:
            self.lines.append((depth, f"met += {' * '.join(factors) or '1'}"))
            return
        readings = found[variable]
        names = {v for occurrence in self.occurrences for v in occurrence.ends}
        if not self.weighted and names <= {*bound, variable}:
            self._count(readings, depth)
            return
        self._parts += 1
        part = f"part_{self._parts}"
        self.lines.append((depth, f"for {part} in {' & '.join(self._sets(readings))}:"))
        more = list(factors)
        if self.weighted:
            more += [self._weight(reading, part) for reading in readings]
        else:
            for end, asked in self._exclusions(readings):
                are = f" and {asked}" if asked else ""
                self.lines.append((depth + 1, f"if {part} == {end}{are}: continue"))
        self._follow(place, {**bound, variable: part}, more, depth + 1, None)

    def _count(self, readings: Sequence[_Reading], depth: int) -> None:
        """Of the last variable only the number of its values is wanted."""
        sets = self._sets(readings)
        self.lines.append((depth, f"met += len({' & '.join(sets)})"))
        for end, asked in self._exclusions(readings):
            tests = [asked] * bool(asked) + [f"{end} in {each}" for each in sets]
            self.lines.append((depth, f"if {' and '.join(tests)}: met -= 1"))

    def _exclusions(self, readings: Sequence[_Reading]) -> list[tuple[str, str]]:
        """The ends that are not there for places that do not have the pair, and if what holds.

        Both ends differ here.
        """
        found: dict[str, list[str]] = {}
        for reading in readings:
            of, end = reading.excluded()
            if not reading.without or reading.symbol in {"left", "right"} - {of}:
                continue
            found.setdefault(end, [])
            if reading.symbol != of:
                found[end].append(f"{reading.symbol} == {of}")
            else:
                found[end].append("")
        return [
            (end, "" if "" in tests else f"({' or '.join(tests)})") for end, tests in found.items()
        ]

    def _weight(self, reading: _Reading, other: str) -> str:
        """How many rows a pair has that is there."""
        one, two = reading.pair(other)
        weight = f"times_{reading.of}(({one}, {two}), 1)"
        if not reading.without:
            return weight
        return f"({weight} + (since if {one} == left and {two} == right else 0))"

    def _nexts(self, place: int, bound: dict[int, str]) -> dict[int, list[_Reading]]:
        """Each variable that places lead to from what is bound."""
        found: dict[int, list[_Reading]] = {}
        for other, occurrence in enumerate(self.occurrences):
            one, two = occurrence.ends
            if one in bound and two not in bound:
                reading = self._reading(place, other, bound[one], is_onward=True)
                found.setdefault(two, []).append(reading)
            elif two in bound and one not in bound:
                reading = self._reading(place, other, bound[two], is_onward=False)
                found.setdefault(one, []).append(reading)
        return found

    def _reading(self, place: int, other: int, symbol: str, *, is_onward: bool) -> _Reading:
        without = other > place and self._is_own(place, other)
        return _Reading(self.occurrences[other].of, symbol, is_onward, without)

    def _is_own(self, place: int, other: int) -> bool:
        return self.occurrences[place].of == self.occurrences[other].of

    def _sets(self, readings: Sequence[_Reading]) -> list[str]:
        """The sets of readings, each once; those of all rows last."""
        ordered = sorted(readings, key=lambda reading: reading.symbol == "nothing")
        return list(dict.fromkeys(map(self._set, ordered)))

    def _set(self, reading: _Reading) -> str:
        if reading.symbol not in ("left", "right", "nothing"):
            return reading.text
        key = _Reading(reading.of, reading.symbol, reading.is_onward, without=False)
        return self._hoisted.setdefault(key, f"group_{len(self._hoisted)}")


def _times(term: Iterable[Line], times: int) -> Iterator[Line]:
    """The lines of a term that several places have alike, as those of a circle do."""
    for depth, text in term:
        if times > 1:
            text = text.replace("met += ", f"met += {times} * ").replace("-= 1", f"-= {times}")
        yield depth, text


def _best(found: dict[int, list[_Reading]]) -> int | None:
    """The variable that most is known of."""
    return max(found, key=lambda variable: _rank(found[variable]), default=None)


def _rank(readings: Sequence[_Reading]) -> int:
    """How many sets are intersected, without those of all rows."""
    return sum(reading.symbol != "nothing" for reading in readings)
