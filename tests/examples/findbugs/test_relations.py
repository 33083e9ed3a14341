"""Relations shared by several analyses, against plain Python over py4j's history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from examples.findbugs import plain, relations
from examples.findbugs.classfile import read
from examples.findbugs.facts import INSTRUCTIONS, ClassDecl, Facts, MethodDecl
from examples.findbugs.faults import cases
from examples.findbugs.program import Program
from reactive import Relation


def expected_subtypes(base: Facts) -> list[Any]:
    return [(sub, sup) for sub, above in plain.subtype(base).items() for sup in above]


def expected_inh(base: Facts) -> list[Any]:
    classes: Any = base[ClassDecl]
    supers = [(c.name, c.super) for c in classes if c.super is not None]
    return [*supers, *((c.name, i) for c in classes for i in c.interfaces)]


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (relations.inh, expected_inh),
        (relations.subtype, expected_subtypes),
        (relations.insn, lambda base: [row for kind in INSTRUCTIONS for row in base[kind]]),
        (
            relations.constructors,
            lambda base: [m for m in base[MethodDecl] if m.name == "<init>"],
        ),
    ],
)
def test_they_follow_classes_that_come_and_go(
    relation: Callable[[Any], Relation[Any]], expected: Callable[[Facts], list[Any]]
) -> None:
    program = Program(stored=True)
    view = relation(program.tables).materialize()
    some = [*cases()][::7]
    for case in some:
        program.put({name: read(data, name) for name, data in case.classes.items()})
    assert Counter(view) == Counter(map(tuple, expected(program.all_facts())))
    assert len(view) > 10
    for case in some[::2]:
        program.put({name: {} for name in case.classes})
    assert Counter(view) == Counter(map(tuple, expected(program.all_facts())))
