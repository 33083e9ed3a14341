"""Loops over joins in a cycle: the joined rows of a changed pair of ends, or their number.

`CycleRows` writes the loops over the joined rows, for each place of the join where the pair is.

    a: x -> y    b: y -> z    c: x -> z             row leads from left to right

    as a    for part in from_right.keys() & from_left.keys():       each z
                row1, row2 = from_right[part], from_left[part]
    as b    for part in to_left.keys() & to_right.keys():           each x
    as c    for part in from_left.keys() & to_right.keys():         each y

The row is already in the dictionaries. A join is linear in each place, so an inserted row makes

    d(A B C)  =  d B' C'  +  A d C'  +  A B d       where A', B', C' are without the row

and a deleted row, while it is still there, the negative of that: of the places of one relation, the
earlier ones have the row, the later ones do not. Values are bound one by one, each by the
dictionaries of all places that lead to it from bound values: generic join.

If ends have several rows (`crowded`), each row of a place is joined with each row of the others.

Source: Ngo, Re, Rudra, *Skew strikes back*, 2013; delta queries: Ammar, McSherry, Salihoglu,
        Joglekar, 2018.

`CycleTerms` writes the number of joined rows, for a join whose rows are not read.

    a: x -> y    b: y -> z    c: x -> z             (left, right) is the inserted pair

    as a    met += len(from right & from left)      each z
    as b    met += len(to left & to right)          each x
    as c    met += len(from left & to right)        each y

The law and the binding order are as in `CycleRows`, with sets of ends. If pairs have weights other
than one, or both ends are equal, weights are multiplied instead (`weighted`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from optimizer.record import record
from reactive.engine.codegen.emitter import Emitter

Then = Callable[[Emitter, str], None]
"""Writes the code for the joined rows; the second argument is the text of their weight."""


@record
class _CycleReads:
    """A read of a place: its dictionary for one bound end."""

    place: int
    of: int
    symbol: str
    is_onward: bool

    @property
    def text(self) -> str:
        return f"find_{'right' if self.is_onward else 'left'}_{self.of}({self.symbol}, empty)"

    def pair(self, other: str) -> tuple[str, str]:
        return (self.symbol, other) if self.is_onward else (other, self.symbol)


Bound = dict[int, str]
"""The symbols of variables."""


@dataclass(slots=True)
class CycleRows:
    """Writes the loops of all places of one relation, one after the other."""

    occurrences: Sequence[Occurrence]
    names: Sequence[str]
    then: Then
    crowded: frozenset[int]
    """The relations whose pairs of ends may have several rows."""
    is_whole: bool = False
    """True if all places have the row, as in a pass over all rows."""
    _hoisted: dict[str, str] = field(default_factory=dict)
    _parts: int = 0

    def write(self, emitter: Emitter, place: int) -> None:
        """Write the loops over the joined rows of a row in a place, inside the loop over rows."""
        start, end = self.occurrences[place].ends
        bound = {start: "left", end: "right", NOTHING: "nothing"}
        self._parts = 0
        known = {**bound}
        for reading in self._all_from(place, bound):
            if reading.text not in self._hoisted:
                name = self._hoisted[reading.text] = f"group_{len(self._hoisted)}"
                emitter.line(f"{name} = {reading.text}")
        closed = [
            other
            for other, occurrence in enumerate(self.occurrences)
            if other != place and all(variable in bound for variable in occurrence.ends)
        ]
        for other in closed:
            one, two = (bound[variable] for variable in self.occurrences[other].ends)
            reading = self._reading(other, one, is_onward=True)
            name = self._entry_variable(other)
            emitter.line(f"{name} = {self._dictionary(reading)}.get({two}, NOTHING)")
            emitter = emitter.block(f"if {name} is not NOTHING{self._and_there(place, other)}:")
        self._begin(emitter, place, known)

    def _begin(self, emitter: Emitter, place: int, bound: Bound) -> None:
        """Bind the first variable: without an intersection, the one with fewer values."""
        found = self._nexts(place, bound)
        best = _find_best_variable(found)
        others = [variable for variable in found if variable != best]
        if best is None or _rank(found[best]) > 1 or not others:
            self._follow(emitter, place, bound, best)
            return
        other = max(others, key=lambda variable: _rank(found[variable]))
        one, two = (self._dictionaries(found[variable])[0] for variable in (best, other))
        parts = self._parts
        self._follow(emitter.block(f"if len({one}) <= len({two}):"), place, bound, best)
        self._parts = parts
        self._follow(emitter.block("else:"), place, bound, other)

    def _follow(self, emitter: Emitter, place: int, bound: Bound, first: int | None) -> None:
        """Write the loops that bind the remaining variables, then the use of the joined rows.

        `first` is the variable to bind first; None chooses the best one.
        """
        found = self._nexts(place, bound)
        variable = _find_best_variable(found) if first is None else first
        if variable is None:
            self._consume(emitter, place, bound)
            return
        self._parts += 1
        part, readings = f"part_{self._parts}", found[variable]
        emitter = self._loop(emitter, place, part, readings)
        self._follow(emitter, place, {**bound, variable: part}, None)

    def _loop(
        self, emitter: Emitter, place: int, part: str, readings: Sequence[_CycleReads]
    ) -> Emitter:
        """Write the loop over the values in which the reads agree, and their rows."""
        asked = [reading for reading in readings if reading.symbol != "nothing"]
        below = {reading: self._dictionary_variable(emitter, reading) for reading in readings}
        sets = list(dict.fromkeys(below[reading] for reading in asked or readings))
        if len(sets) == 1:
            first = self._entry_variable((asked or readings)[0].place)
            inner = emitter.loop(f"for {part}, {first} in {sets[0]}.items():")
        else:
            inner = emitter.loop(f"for {part} in {' & '.join(f'{s}.keys()' for s in sets)}:")
        for number, reading in enumerate([*asked, *(r for r in readings if r not in asked)]):
            name = self._entry_variable(reading.place)
            if len(sets) > 1 or number:
                is_sure = reading in asked or not asked
                look_up = f"[{part}]" if is_sure else f".get({part}, NOTHING)"
                inner.line(f"{name} = {below[reading]}{look_up}")
                if not is_sure:
                    inner.line(f"if {name} is NOTHING: continue")
            if self._is_alone(reading.place) and self._is_without(place, reading.place):
                inner.line(f"if {name} is {self.names[place]}: continue")
        return inner

    def _consume(self, emitter: Emitter, place: int, bound: Bound) -> None:
        """Write the code for fully bound values: their rows, or each combination of several."""
        inner = emitter if self._parts else emitter.loop("for times in (1,):")
        weights = ["weight"]
        for other in range(len(self.occurrences)):
            if other != place and not self._is_alone(other):
                times = f"times_{other}"
                rows = self._several(place, other, bound)
                inner = inner.loop(f"for {self.names[other]}, {times} in {rows}:")
                weights.append(times)
        self.then(inner, " * ".join(weights))

    def _several(self, place: int, other: int, bound: Bound) -> str:
        """Return the text of the rows of input `other` at its bound ends, with their weights.

        In a later input over the same rows, the changed row itself is left out.
        """
        held = self._entry_variable(other)
        if not self._is_without(place, other):
            return f"rows_of({held}) if {held}.__class__ in SEVERAL else (({held}, 1),)"
        one, two = (bound[variable] for variable in self.occurrences[other].ends)
        are_it = f"{one} == left and {two} == right"
        return f"without({held}, {self.names[place]}, weight) if {are_it} else rows_of({held})"

    def _is_alone(self, place: int) -> bool:
        """Return True if a pair of ends has at most one row."""
        return self.occurrences[place].of not in self.crowded

    def _entry_variable(self, place: int) -> str:
        """Return the variable of the entry for the ends of a place: a row, or several."""
        return self.names[place] if self._is_alone(place) else f"found_{place}"

    def _and_there(self, place: int, other: int) -> str:
        """Return the text of the test that the row of a place is not the changed row."""
        if not self._is_alone(other) or not self._is_without(place, other):
            return ""
        return f" and {self.names[other]} is not {self.names[place]}"

    def _is_without(self, place: int, other: int) -> bool:
        """Return True if `other` is a later place of the same rows, without the changed pair."""
        is_own = self.occurrences[place].of == self.occurrences[other].of
        return is_own and other > place and not self.is_whole

    def _all_from(self, place: int, bound: Bound) -> list[_CycleReads]:
        """Return the reads from the ends of the row."""
        found = [reading for some in self._nexts(place, bound).values() for reading in some]
        for other, occurrence in enumerate(self.occurrences):
            if other != place and all(variable in bound for variable in occurrence.ends):
                found.append(self._reading(other, bound[occurrence.ends[0]], is_onward=True))
        return found

    def _nexts(self, place: int, bound: Bound) -> dict[int, list[_CycleReads]]:
        """Return the reads from bound variables, by the variable that they lead to."""
        found: dict[int, list[_CycleReads]] = {}
        for other, occurrence in enumerate(self.occurrences):
            one, two = occurrence.ends
            if other == place:
                continue
            if one in bound and two not in bound:
                reading = self._reading(other, bound[one], is_onward=True)
                found.setdefault(two, []).append(reading)
            elif two in bound and one not in bound:
                reading = self._reading(other, bound[two], is_onward=False)
                found.setdefault(one, []).append(reading)
        return found

    def _reading(self, other: int, symbol: str, *, is_onward: bool) -> _CycleReads:
        return _CycleReads(other, self.occurrences[other].of, symbol, is_onward)

    def _dictionary_variable(self, emitter: Emitter, reading: _CycleReads) -> str:
        """Return the variable of a dictionary; set it here if it is new."""
        if reading.text in self._hoisted:
            return self._hoisted[reading.text]
        name = f"below_{self._parts}_{reading.place}"
        emitter.line(f"{name} = {reading.text}")
        return name

    def _dictionary(self, reading: _CycleReads) -> str:
        return self._hoisted.get(reading.text, reading.text)

    def _dictionaries(self, readings: Sequence[_CycleReads]) -> list[str]:
        """Return the texts of the dictionaries that are read; reads from `nothing` come last."""
        ordered = sorted(readings, key=lambda reading: reading.symbol == "nothing")
        return [self._dictionary(reading) for reading in ordered]


def _find_best_variable(found: dict[int, list[_CycleReads]]) -> int | None:
    """Return the variable with the most reads; None if there is none."""
    return max(found, key=lambda variable: _rank(found[variable]), default=None)


def _rank(readings: Sequence[_CycleReads]) -> int:
    """Return the number of intersected dictionaries, except dictionaries of all rows."""
    return sum(reading.symbol != "nothing" for reading in readings)


NOTHING = -1
"""The variable that is bound to nothing: rows with one end start there."""

Line = tuple[int, str]
"""The depth and the text of a line."""


@record
class Occurrence:
    """A place of a join: its relation, and the variables of the ends of a pair."""

    of: int
    ends: tuple[int, int]


@record
class _CountedReading:
    """A read of a place from a bound end; `without` if the place does not have the pair."""

    of: int
    symbol: str
    is_onward: bool
    without: bool

    @property
    def text(self) -> str:
        return f"find_{'right' if self.is_onward else 'left'}_{self.of}({self.symbol}, empty)"

    def pair(self, other: str) -> tuple[str, str]:
        return (self.symbol, other) if self.is_onward else (other, self.symbol)

    def excluded_end(self) -> tuple[str, str]:
        """Return the symbol whose read would lead to the pair, and the end that it leads to."""
        if self.symbol == "nothing":
            return "nothing", "right"
        return ("left", "right") if self.is_onward else ("right", "left")


@dataclass
class CycleTerms:
    """Writes the terms of the places of one relation."""

    occurrences: Sequence[Occurrence]
    weighted: bool = False
    lines: list[Line] = field(default_factory=list)
    _hoisted: dict[_CountedReading, str] = field(default_factory=dict)
    _parts: int = 0

    def write(self, of: int) -> list[Line]:
        """Return the lines that add the joined rows of a pair to `met`, for all its places."""
        terms: Counter[tuple[Line, ...]] = Counter()
        for place, occurrence in enumerate(self.occurrences):
            if occurrence.of == of:
                self.lines, self._parts = [], 0
                self._term(place)
                terms[tuple(self.lines)] += 1
        hoisted = [(0, f"{name} = {reading.text}") for reading, name in self._hoisted.items()]
        return hoisted + [
            line for term, times in terms.items() for line in _multiply_lines(term, times)
        ]

    def _term(self, place: int) -> None:
        """Write the lines that count the joined rows in which the pair is at `place`."""
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
        """Bind the first variable: without an intersection, the one with fewer values."""
        found = self._nexts(place, bound)
        best = _best_counted(found)
        others = [variable for variable in found if variable != best]
        if best is None or _count_sets(found[best]) > 1 or not others:
            self._follow(place, bound, factors, depth, best)
            return
        other = max(others, key=lambda variable: _count_sets(found[variable]))
        one, two = (self._sets(found[variable])[0] for variable in (best, other))
        self.lines.append((depth, f"if len({one}) <= len({two}):"))
        self._follow(place, bound, factors, depth + 1, best)
        self.lines.append((depth, "else:"))
        self._follow(place, bound, factors, depth + 1, other)

    def _follow(
        self, place: int, bound: dict[int, str], factors: list[str], depth: int, first: int | None
    ) -> None:
        """Write the lines that count along the remaining variables.

        `first` is the variable to bind first; None chooses the best one.
        """
        found = self._nexts(place, bound)
        variable = _best_counted(found) if first is None else first
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

    def _count(self, readings: Sequence[_CountedReading], depth: int) -> None:
        """Write the code for the last variable, which only counts its values."""
        sets = self._sets(readings)
        self.lines.append((depth, f"met += len({' & '.join(sets)})"))
        for end, asked in self._exclusions(readings):
            tests = [asked] * bool(asked) + [f"{end} in {each}" for each in sets]
            self.lines.append((depth, f"if {' and '.join(tests)}: met -= 1"))

    def _exclusions(self, readings: Sequence[_CountedReading]) -> list[tuple[str, str]]:
        """Return the ends that places without the pair must skip, each with its condition.

        The condition is empty if the end is always skipped. The two ends are different
        here.
        """
        found: dict[str, list[str]] = {}
        for reading in readings:
            of, end = reading.excluded_end()
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

    def _weight(self, reading: _CountedReading, other: str) -> str:
        """Return the text of the weight of a pair."""
        one, two = reading.pair(other)
        weight = f"times_{reading.of}(({one}, {two}), 1)"
        if not reading.without:
            return weight
        return f"({weight} + (since if {one} == left and {two} == right else 0))"

    def _nexts(self, place: int, bound: dict[int, str]) -> dict[int, list[_CountedReading]]:
        """Return the reads from bound variables, by the variable that they lead to."""
        found: dict[int, list[_CountedReading]] = {}
        for other, occurrence in enumerate(self.occurrences):
            one, two = occurrence.ends
            if one in bound and two not in bound:
                reading = self._reading(place, other, bound[one], is_onward=True)
                found.setdefault(two, []).append(reading)
            elif two in bound and one not in bound:
                reading = self._reading(place, other, bound[two], is_onward=False)
                found.setdefault(one, []).append(reading)
        return found

    def _reading(self, place: int, other: int, symbol: str, *, is_onward: bool) -> _CountedReading:
        without = other > place and self._is_own(place, other)
        return _CountedReading(self.occurrences[other].of, symbol, is_onward, without)

    def _is_own(self, place: int, other: int) -> bool:
        return self.occurrences[place].of == self.occurrences[other].of

    def _sets(self, readings: Sequence[_CountedReading]) -> list[str]:
        """Return the sets of reads, each once; sets of all rows last."""
        ordered = sorted(readings, key=lambda reading: reading.symbol == "nothing")
        return list(dict.fromkeys(map(self._set, ordered)))

    def _set(self, reading: _CountedReading) -> str:
        """Return the text of a set of ends; a set that no loop changes gets a variable."""
        if reading.symbol not in ("left", "right", "nothing"):
            return reading.text
        key = _CountedReading(reading.of, reading.symbol, reading.is_onward, without=False)
        return self._hoisted.setdefault(key, f"group_{len(self._hoisted)}")


def _multiply_lines(term: Iterable[Line], times: int) -> Iterator[Line]:
    """Yield the lines of a term that `times` places have, with its counts multiplied by `times`."""
    for depth, text in term:
        if times > 1:
            text = text.replace("met += ", f"met += {times} * ").replace("-= 1", f"-= {times}")
        yield depth, text


def _best_counted(found: dict[int, list[_CountedReading]]) -> int | None:
    """Return the variable with the most reads; None if there is none."""
    return max(found, key=lambda variable: _count_sets(found[variable]), default=None)


def _count_sets(readings: Sequence[_CountedReading]) -> int:
    """Return the number of intersected sets, except sets of all rows."""
    return sum(reading.symbol != "nothing" for reading in readings)
