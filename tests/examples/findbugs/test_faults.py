"""After every revision of a history the analyses find the expected faults."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise

import pytest

from examples.findbugs.facts import ClassDecl
from examples.findbugs.faults import FaultRevision, cases, fixture, history
from examples.findbugs.faults.case import LETTERS, Findings
from examples.findbugs.program import Program
from tests import budget

from .fixtures import change, facts_of, listed, live, plain


@pytest.mark.long
@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "as written"])
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "passing"])
@pytest.mark.parametrize("seed", budget.cases(*range(3)))
def test_findings_are_the_expected_ones_after_every_revision(
    seed: int, stored: bool, optimize: bool
) -> None:
    program = Program(stored=stored, optimize=optimize)
    for revision in history(seed):
        change(program, revision.classes)
        expected = listed(revision.expected)
        assert live(program) == expected, f"{revision.number}: {revision.what}"
        assert plain(program) == expected, f"{revision.number}: {revision.what}"


def test_views_equal_their_queries_along_the_way() -> None:
    program = Program(stored=True)
    for revision in history(3, 60):
        change(program, revision.classes)
        if revision.number % 20 == 0:
            for view in program.views.values():
                view.verify()


def test_history_begins_with_the_fixture() -> None:
    first = next(history())
    assert first.what == "the fixture"
    assert len(first.classes) == 16
    assert first.expected == {
        letter: case.expected[letter] for letter, case in zip(LETTERS, fixture(), strict=True)
    }


def test_same_seed_gives_the_same_history_and_another_seed_another() -> None:
    assert list(history(4, 50)) == list(history(4, 50)) == list(islice(history(4, 90), 50))
    assert list(history(4, 50)) != list(history(5, 50))


@pytest.mark.parametrize("revisions", [0, 1, 7])
def test_history_has_as_many_revisions_as_asked_for(revisions: int) -> None:
    assert [r.number for r in history(0, revisions)] == list(range(revisions))


@pytest.mark.parametrize("seed", range(3))
def test_every_case_has_its_turn_by_default(seed: int) -> None:
    shown = {change for revision in history(seed) for change in _changes(revision)}
    first = {(case.slot, case.name) for case in fixture()}
    assert {(case.slot, case.name) for case in cases()} <= shown | first


def test_every_analysis_finds_something_new_and_loses_it_several_times() -> None:
    gained: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    before: Findings = dict.fromkeys(LETTERS, frozenset())
    for revision in history():
        for letter, keys in revision.expected.items():
            gained[letter] += bool(keys - before[letter])
            lost[letter] += bool(before[letter] - keys)
        before = revision.expected
    assert min(gained[letter] for letter in LETTERS) >= 5
    assert min(lost[letter] for letter in LETTERS) >= 5


def test_classes_are_deleted_only_if_they_are_there_and_come_back() -> None:
    present: set[str] = set()
    gone: set[str] = set()
    again: set[str] = set()
    for revision in history():
        deleted = {name for name, data in revision.classes.items() if data is None}
        assert deleted <= present
        again |= gone & (set(revision.classes) - deleted)
        gone |= deleted
        present = (present | set(revision.classes)) - deleted
    assert len(again) > 16


@pytest.mark.parametrize("letter", "KM")
def test_findings_change_where_no_file_changed(letter: str) -> None:
    elsewhere = 0
    before: Findings = {}
    for revision in history():
        differing = revision.expected[letter] ^ before.get(letter, frozenset())
        elsewhere += any(not set(key) & set(revision.classes) for key in differing)
        before = revision.expected
    assert elsewhere


def test_findings_change_by_headers_alone() -> None:
    letters: set[str] = set()
    before: Findings = {}
    files: dict[str, bytes] = {}
    for revision in history():
        if before and len(revision.classes) == 1 and _is_only_header(files, revision):
            letters |= {x for x in LETTERS if before[x] != revision.expected[x]}
        files |= {name: data for name, data in revision.classes.items() if data is not None}
        before = revision.expected
    assert letters >= {"B", "C", "G"}


def test_some_revisions_change_no_finding_and_some_no_file() -> None:
    revisions = list(history())
    pairs = list(pairwise(revisions))
    assert len([b for a, b in pairs if a.expected == b.expected]) > 50
    assert [b for _, b in pairs if not b.classes]


def test_some_revisions_write_files_as_they_were() -> None:
    files: dict[str, bytes | None] = {}
    same = 0
    for revision in history():
        same += any(
            data is not None and files.get(x) == data for x, data in revision.classes.items()
        )
        files |= revision.classes
    assert same > 5


def test_revision_tells_what_happens_to_the_findings() -> None:
    faults = {(case.slot, case.name) for case in cases() if case.is_fault}
    told: dict[str, set[tuple[bool, bool, bool]]] = {}
    for before, after in pairwise(history()):
        old, new = _keys(before), _keys(after)
        if len(_changes(after)) == 1:
            effect = after.what.partition(":")[0].partition(" ")[2]
            is_fault = _changes(after)[0] in faults
            told.setdefault(effect, set()).add((bool(new - old), bool(old - new), is_fault))
    assert told.pop("removed") >= {(False, True, False)}
    assert told == {
        "inserted": {(True, False, True)},
        "replaced": {(True, True, True)},
        "still found": {(False, False, True)},
        "not found": {(False, False, False)},
    }


def _keys(revision: FaultRevision) -> set[tuple[str, ...]]:
    return {(letter, *key) for letter, keys in revision.expected.items() for key in keys}


def _changes(revision: FaultRevision) -> list[tuple[str, str]]:
    changes = [change.partition(": ") for change in revision.what.split("; ")]
    return [(how.partition(" ")[0], name) for how, _, name in changes]


def _is_only_header(files: dict[str, bytes], revision: FaultRevision) -> bool:
    ((name, new),) = revision.classes.items()
    old, now = facts_of(name, files.get(name)), facts_of(name, new)
    kinds = {kind for kind in old.keys() | now.keys() if old.get(kind) != now.get(kind)}
    return bool(old) and bool(now) and kinds == {ClassDecl}
