"""The findings of every case equal its text: faults are found, near misses are not."""

from __future__ import annotations

from itertools import combinations, groupby

import pytest

from examples.findbugs.analyses import ANALYSES
from examples.findbugs.faults import Case, cases, fixture
from examples.findbugs.faults.case import LETTERS
from examples.findbugs.program import Program

from .fixtures import become, change, listed, live, plain

IDS = [f"{case.slot}: {case.name}" for case in cases()]


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(stored=True)


@pytest.mark.long
@pytest.mark.parametrize("case", cases(), ids=IDS)
def test_case_has_the_stated_findings(program: Program, case: Case) -> None:
    become(program, case.classes)
    assert live(program) == plain(program) == listed(case.expected)


def test_fixture_has_sixteen_classes_and_one_finding_of_each_analysis_but_two_of_e() -> None:
    program = Program()
    classes = {name: data for case in fixture() for name, data in case.classes.items()}
    become(program, classes)
    assert len(classes) == 16
    found = live(program)
    assert {letter: len(keys) for letter, keys in found.items()} == {
        letter: 2 if letter == "E" else 1 for letter in ANALYSES
    }
    assert found == listed({key: of for case in fixture() for key, of in case.expected.items()})


def test_nothing_is_found_when_all_classes_are_gone(program: Program) -> None:
    for case in fixture():
        change(program, case.classes)
    become(program, {})
    assert live(program) == listed({})
    assert not any(map(len, program.db.tables()))


def test_all_cases_together_have_the_findings_of_each() -> None:
    slots = [tuple(of) for _, of in groupby(cases(), key=lambda case: case.slot)]
    last = [slot[-1] for slot in slots]
    program = Program()
    change(program, {name: data for case in last for name, data in case.classes.items()})
    letters = {letter: [case.expected.get(letter, ()) for case in last] for letter in LETTERS}
    assert live(program) == {
        letter: sorted(key for keys in found for key in keys) for letter, found in letters.items()
    }


@pytest.mark.parametrize("letter", LETTERS)
def test_analysis_has_two_faults_and_two_near_misses_at_least(letter: str) -> None:
    own = [case for case in cases() if case.slot == letter.lower()]
    assert len([case for case in own if letter in case.expected]) >= 2
    assert len([case for case in own if not case.is_fault]) >= 2


def test_first_case_of_a_letter_is_a_fault_of_that_letter_alone() -> None:
    assert [set(case.expected) for case in fixture()] == [{letter} for letter in LETTERS]


def test_slots_share_no_class() -> None:
    names: dict[str, set[str]] = {}
    for case in cases():
        names.setdefault(case.slot, set()).update(case.classes)
    assert not [(a, b) for a, b in combinations(names, 2) if names[a] & names[b]]


def test_cases_of_a_slot_have_different_names() -> None:
    assert len({(case.slot, case.name) for case in cases()}) == len(cases())


def test_classes_have_their_names() -> None:
    program = Program(stored=True)
    for case in cases():
        become(program, case.classes)
        assert {row.name for row in program.tables.class_decl} == set(case.classes)
