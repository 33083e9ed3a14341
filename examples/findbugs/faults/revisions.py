"""A history of revisions with faults, and the expected findings after each of them.

It begins with the fixture. Every later revision puts another case into a slot or two: it inserts a
fault, removes one, nearly inserts one, removes all classes of the slot, or writes them once more.
The expected findings follow from the cases alone, without an analysis.

    slot     a   b   c  ...  o   several   clean
    case     2   0   -       7      1        0          the findings of all cases together
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from random import Random
from typing import TypeAlias

from examples.findbugs.faults.case import LETTERS, Case, Findings, cases, fixture

Placement: TypeAlias = tuple[str, Case | None]
"""A slot, and the case that it has from now on."""

FAULT_BEFORE, TWICE, TWO = 0.5, 0.05, 0.2
"""Probabilities of a fault before another case, a repeated change, and two in a revision."""


@dataclass(frozen=True, slots=True)
class FaultRevision:
    """Some class files change."""

    number: int
    what: str
    """The change of the findings of each changed slot, and its new case."""
    classes: Mapping[str, bytes | None]
    """The class files that are written, by the names of their classes; None: deleted."""
    expected: Findings
    """The expected findings in all classes afterwards, with an entry for each letter."""


def history(seed: int = 0, revisions: int = 500) -> Iterator[FaultRevision]:
    """Yield the same history for the same seed; by default long enough for each case.

    Parameters
    ----------
    revisions: their number, with the first one. A shorter history is a prefix of a longer one.
    """
    random = Random(seed)
    first = [(case.slot, case) for case in fixture()]
    placements = _placements(random)
    present: dict[str, Case] = {}
    for number in range(revisions):
        before = dict(present)
        made = first if number == 0 else list(islice(placements, 2 if random.random() < TWO else 1))
        what = "; ".join([_put(present, slot, case) for slot, case in made])
        classes = _written(before, present, [slot for slot, _ in made])
        yield FaultRevision(number, what if number else "the fixture", classes, _expected(present))


def _placements(random: Random) -> Iterator[Placement]:
    """Yield placements without end: each case once in random order, and so on."""
    slots = {slot: tuple(of) for slot, of in groupby(cases(), key=lambda case: case.slot)}
    deck: list[Placement] = [(case.slot, case) for case in cases()]
    deck += [(slot, None) for slot in slots] * 2
    while True:
        random.shuffle(deck)
        for slot, case in deck:
            faults = [case for case in slots[slot] if case.is_fault]
            if faults and random.random() < FAULT_BEFORE:
                yield slot, random.choice((faults[0], random.choice(faults)))
            yield from [(slot, case)] * (2 if random.random() < TWICE else 1)


def _put(present: dict[str, Case], slot: str, case: Case | None) -> str:
    """Change a slot; tells how."""
    old = present.pop(slot, None)
    if case is not None:
        present[slot] = case
    name = "no classes" if case is None else case.name
    return f"{slot} {_effect(_keys(old), _keys(case))}: {name}"


def _effect(before: frozenset[object], after: frozenset[object]) -> str:
    match bool(after - before), bool(before - after):
        case True, False:
            return "inserted"
        case False, True:
            return "removed"
        case True, True:
            return "replaced"
    return "still found" if after else "not found"


def _keys(case: Case | None) -> frozenset[object]:
    if case is None:
        return frozenset()
    return frozenset((letter, key) for letter, keys in case.expected.items() for key in keys)


def _written(
    before: Mapping[str, Case], after: Mapping[str, Case], slots: Iterable[str]
) -> dict[str, bytes | None]:
    """Return the files that differ; if none does, the files of the slots."""
    old, new = _files(before.values()), _files(after.values())
    written = {name: new.get(name) for name in old | new if old.get(name) != new.get(name)}
    return written or {**_files(after[slot] for slot in slots if slot in after)}


def _files(present: Iterable[Case]) -> dict[str, bytes]:
    return {name: data for case in present for name, data in case.classes.items()}


def _expected(present: Mapping[str, Case]) -> Findings:
    found = [case.expected for case in present.values()]
    nothing: frozenset[tuple[str, ...]] = frozenset()
    return {
        letter: nothing.union(*(findings.get(letter, nothing) for findings in found))
        for letter in LETTERS
    }
