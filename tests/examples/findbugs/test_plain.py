"""The plain evaluation, the oracle of all views, has the expected findings by itself."""

from __future__ import annotations

from typing import Any

import pytest

from examples.findbugs import facts
from examples.findbugs.analyses import ANALYSES, kinds_read
from examples.findbugs.facts import KINDS, ClassDecl, Fact
from examples.findbugs.faults import cases
from examples.findbugs.plain import PLAIN, subtype

from .fixtures import KEYS, facts_of

OBJECT = "java/lang/Object"


def base_of(classes: dict[str, bytes]) -> dict[type[Fact], list[Any]]:
    """The facts of class files, by kind."""
    base: dict[type[Fact], list[Any]] = {kind: [] for kind in KINDS}
    for name, data in classes.items():
        for kind, rows in facts_of(name, data).items():
            base[kind] += rows
    return base


READ = {letter: kinds_read(letter) for letter in ANALYSES}


def test_all_analyses_have_a_plain_evaluation() -> None:
    assert list(PLAIN) == list(ANALYSES)


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.slot}-{case.name}")
def test_a_case_by_itself_is_judged_as_it_says(case: Any) -> None:
    base = base_of(case.classes)
    for letter, evaluate in PLAIN.items():
        read = {kind: base[kind] for kind in READ[letter]}
        found = evaluate(read)
        assert {KEYS[letter](row) for row in found} == {*case.expected.get(letter, ())}, letter


def test_an_analysis_of_no_facts_finds_nothing() -> None:
    assert not any(evaluate(dict.fromkeys(KINDS, ())) for evaluate in PLAIN.values())


def test_what_is_above_a_class_goes_through_classes_and_interfaces() -> None:
    base: dict[type[Fact], list[Any]] = {
        ClassDecl: [
            ClassDecl("A", 52, 1, OBJECT, ("I", "J")),
            ClassDecl("B", 52, 1, "A", ("J",)),
            ClassDecl("I", 52, 0x201, OBJECT, ("K",)),
            ClassDecl(OBJECT, 52, 1, None, ()),
        ]
    }
    assert subtype(base) == {
        "A": {OBJECT, "I", "J", "K"},
        "B": {"A", OBJECT, "I", "J", "K"},
        "I": {OBJECT, "K"},
        OBJECT: set(),
    }


def test_classes_above_one_another_are_above_themselves() -> None:
    base: dict[type[Fact], list[Any]] = {
        facts.ClassDecl: [ClassDecl("A", 52, 1, "B", ()), ClassDecl("B", 52, 1, "A", ())]
    }
    assert subtype(base) == {"A": {"A", "B"}, "B": {"A", "B"}}
