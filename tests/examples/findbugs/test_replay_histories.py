"""The views of the recorded histories: their known findings, and plain evaluation throughout."""

from __future__ import annotations

from itertools import pairwise

import pytest

from examples.findbugs import facts, plain
from examples.findbugs.facts import INSTRUCTIONS, ClassDecl
from examples.findbugs.program import Program
from examples.findbugs.relations import subtype
from examples.findbugs.replay.mirror import Mirror
from examples.findbugs.replay.steps import check, replay
from tests.budget import stride

from .histories import SIZES, course, known, revisions

LARGE = ("vespucci", "hibernate")
COUNTED = (
    facts.ClassDecl,
    facts.MethodDecl,
    facts.FieldDecl,
    facts.Invoke,
    facts.FieldAccess,
    facts.Handler,
    facts.InnerClass,
)


@pytest.mark.long
@pytest.mark.parametrize("name", SIZES)
def test_findings_are_the_known_ones_and_equal_plain_evaluation_after_every_revision(
    name: str,
) -> None:
    assert _courses(name, Program()) == known(name)


@pytest.mark.long
@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "as written"])
def test_stored_tables_give_the_same_findings_and_views_can_be_verified(optimize: bool) -> None:
    assert _courses("flashcards", Program(stored=True, optimize=optimize)) == known("flashcards")


@pytest.mark.parametrize("name", ["flashcards", "py4j"])
def test_queries_as_written_give_the_same_findings(name: str) -> None:
    assert _courses(name, Program(optimize=False)) == known(name)


@pytest.mark.long
@pytest.mark.parametrize("name", SIZES)
def test_histories_have_as_many_revisions_and_facts_as_they_say(name: str) -> None:
    assert (len(revisions(name)), sum(len(one.difference) for one in revisions(name))) == SIZES[
        name
    ]


def test_facts_of_vespucci_are_the_known_ones_at_first_and_at_last() -> None:
    first, *rest = revisions("vespucci")
    mirror = Mirror()
    mirror.apply(first.difference)
    assert _counts(mirror) == [381, 2_563, 900, 13_990, 3_895, 147, 458]
    assert _instructions(mirror) == 54_712
    assert len(mirror.facts[facts.Code]) == 2_502
    assert len(mirror.facts[facts.EnclosingMethod]) == 129
    assert sum(len(row.interfaces) for row in mirror.facts[ClassDecl]) == 205
    for revision in rest:
        mirror.apply(revision.difference)
    assert _counts(mirror) == [389, 2_615, 921, 14_139, 3_955, 147, 469]
    assert _instructions(mirror) == 55_359


@pytest.mark.long
@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "as written"])
def test_subtypes_of_vespucci_are_the_known_ones_after_every_revision(optimize: bool) -> None:
    program, mirror, found = Program((), stored=True, optimize=optimize), Mirror(), []
    view = subtype(program.tables).materialize()
    for revision in revisions("vespucci"):
        program.apply(revision.difference)
        mirror.apply(revision.difference)
        above = plain.subtype(mirror.facts)
        expected = {(sub, sup) for sub, supers in above.items() for sup in supers}
        assert set(view.zset().items()) == {(pair, 1) for pair in expected}
        found.append(set[object](expected))
    assert course(found) == (693, 706, 24)
    assert sum(len(before) != len(after) for before, after in pairwise(found)) == 20
    view.verify()


def _courses(name: str, program: Program) -> dict[str, tuple[int, int, int]]:
    """Plain evaluation of the large histories takes long: a sample of their revisions has it."""
    found: dict[str, list[set[object]]] = {letter: [] for letter in program.views}
    mirror, every = Mirror(), stride(1, share=12) if name in LARGE else 1
    for number, _ in enumerate(replay(program, mirror, revisions(name), verify=False)):
        if number % every == 0 or number == len(revisions(name)) - 1:
            check(program, mirror, f"after revision {number}")
        for letter, view in program.views.items():
            found[letter].append(set(view))
            if program.kinds is facts.KINDS:
                view.verify()
    return {letter: course(sets) for letter, sets in found.items()}


def _counts(mirror: Mirror) -> list[int]:
    return [len(mirror.facts[kind]) for kind in COUNTED]


def _instructions(mirror: Mirror) -> int:
    return sum(len(mirror.facts[kind]) for kind in INSTRUCTIONS)
