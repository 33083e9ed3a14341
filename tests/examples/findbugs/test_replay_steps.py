"""What a replay measures, and that it notices wrong views."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from examples.findbugs.classfile import ClassFileError
from examples.findbugs.difference import Difference
from examples.findbugs.facts import KINDS, ClassDecl, MethodDecl, Throws
from examples.findbugs.faults import history
from examples.findbugs.inputs import Unreadable
from examples.findbugs.plain import PLAIN
from examples.findbugs.program import Program
from examples.findbugs.recorded import HistoryError
from examples.findbugs.replay.changes import Change, of_jars
from examples.findbugs.replay.mirror import Mirror, differing
from examples.findbugs.replay.steps import NotVerifiedError, Step, check, memory, replay
from examples.findbugs.replay.summary import Fit, fit, summary

from .histories import changes
from .jars import jar, jars_of

FINALIZE = MethodDecl("a/A", "finalize()V", 1, "finalize", (), "V")
OTHER = FINALIZE._replace(cls="b/B")
COMES = Change("1", 1, 2, Difference({}, {MethodDecl: [FINALIZE]}))
MOVES = Change("2", 2, 2, Difference({MethodDecl: [FINALIZE]}, {MethodDecl: [OTHER]}))


def steps_of(*made: Change, repeat: int = 1, verify: bool = True) -> list[Step]:
    return [*replay(Program(), Mirror(), made, repeat=repeat, verify=verify)]


def test_findings_that_came_and_went_are_told() -> None:
    first, second = steps_of(COMES, MOVES)
    assert (first.came, first.went) == ({"I": [FINALIZE]}, {})
    assert (second.came, second.went) == ({"I": [OTHER]}, {"I": [FINALIZE]})


@pytest.mark.parametrize("repeat", [1, 2, 5])
def test_a_change_that_is_repeated_is_there_once(repeat: int) -> None:
    program = Program()
    for step in replay(program, Mirror(), [COMES, MOVES], repeat=repeat, verify=True):
        assert step.updating > 0
    assert program.views["I"].items() == [(OTHER, 1)]


def test_plain_evaluation_is_timed_only_where_it_is_asked_for() -> None:
    assert [step.scratch for step in steps_of(COMES, verify=False)] == [None]
    assert all(step.scratch for step in steps_of(COMES))


@pytest.mark.parametrize("letter", "DEKL")
def test_every_fault_in_plain_evaluation_is_noticed(
    letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = PLAIN[letter]

    def wrong(base: Any) -> set[Any]:
        return set(sorted(right(base), key=repr)[1:])

    monkeypatch.setitem(PLAIN, letter, wrong)
    program = Program()
    with pytest.raises(NotVerifiedError, match=f"after revision .* the views of {letter} differ"):
        [*replay(program, Mirror(), changes("flashcards"), verify=True)]


def test_a_row_that_a_view_has_twice_is_noticed() -> None:
    program = Program(["I"])
    program.tables.method_decl.add_all([FINALIZE, FINALIZE])
    assert differing(program, {"I": {FINALIZE}}) == {"I": {FINALIZE}}
    mirror = Mirror()
    mirror.apply(COMES.difference)
    with pytest.raises(NotVerifiedError, match=r"I: 2 in the view: MethodDecl\(cls='a/A'"):
        check(program, mirror, "now")


def test_a_fact_that_goes_without_having_been_there_is_an_error() -> None:
    with pytest.raises(HistoryError, match=r"taken away that is not there: MethodDecl\(cls='a/A'"):
        Mirror().apply(MOVES.difference)


def test_memory_of_a_change_grows_with_its_facts() -> None:
    def many(count: int) -> Change:
        rows: list[Any] = [FINALIZE._replace(cls=f"c/C{number}") for number in range(count)]
        return Change("", count, count, Difference({}, {MethodDecl: rows}))

    used = memory(Program(), [COMES, many(20), many(2_000)])
    assert used.peaks[1] * 10 < used.peaks[2]
    assert used.peaks[2] > used.held / 2 > 0


def test_memory_of_a_change_does_not_grow_with_the_facts_that_no_analysis_reads() -> None:
    unread: list[Any] = [Throws("a/A", "run()V", f"e/E{number}") for number in range(1_000)]
    change = Change("", 1, 1_001, Difference({}, {MethodDecl: [FINALIZE], Throws: unread}))
    assert memory(Program(), [change]).peaks[0] < 2 * memory(Program(), [COMES]).peaks[0]


def test_a_summary_is_of_the_changes_and_of_the_first_revision_apart() -> None:
    def step(seconds: float, facts: int) -> Step:
        rows: list[Any] = [FINALIZE._replace(cls=str(number)) for number in range(facts)]
        change = Change(str(facts), 1, facts, Difference({}, {MethodDecl: rows}))
        return Step(change, seconds, {}, {}, scratch=10.0)

    steps = [step(9.0, 100), step(1.5, 0), step(2.0, 10), step(3.0, 20), step(4.0, 30)]
    of = summary(steps)
    assert (of.first, of.whole, of.median, of.longest, of.scratch) == (9.0, 19.5, 2.5, steps[4], 10)
    assert of.fit is not None
    assert astuple(of.fit) == pytest.approx((1.0, 0.1, 1.0))


def test_a_summary_of_one_revision_has_no_changes() -> None:
    of = summary(steps_of(COMES))
    assert (of.median, of.longest, of.fit) == (None, None, None)


@pytest.mark.parametrize("points", [[], [(1, 1.0)], [(1, 1.0), (2, 2.0), (2, 3.0)]])
def test_there_is_no_line_through_fewer_than_three_sizes(points: list[tuple[int, float]]) -> None:
    assert fit(points) is None


def test_a_line_through_scattered_points_explains_a_part() -> None:
    found = fit([(0, 0.0), (1, 2.0), (2, 1.0), (3, 3.0)])
    assert found is not None
    assert found.r_squared == pytest.approx(0.64)
    flat = fit([(0, 1.0), (1, 1.0), (2, 1.0)])
    assert flat == Fit(1.0, 0.0, 1.0)


def test_jars_of_a_history_give_its_findings(tmp_path: Path) -> None:
    revisions = [*history(seed=1, revisions=12)]
    jars = jars_of(tmp_path, (revision.classes for revision in revisions))
    program = Program()
    steps = replay(program, Mirror(), of_jars(jars, program.kinds), verify=True)
    for step, revision in zip(steps, revisions, strict=True):
        found = {letter: len(view) for letter, view in program.views.items()}
        assert found == {letter: len(keys) for letter, keys in revision.expected.items()}
        assert step.change.name == f"r{revision.number}"


def test_only_class_files_that_differ_are_read_again(tmp_path: Path) -> None:
    data = next(history()).classes
    name, *others = data
    jars = [
        jar(tmp_path / "1.jar", data),
        jar(tmp_path / "2.jar", {other: data[other] for other in others}),
        jar(tmp_path / "3.jar", {name: b"broken", **{other: data[other] for other in others}}),
    ]
    first, second = of_jars(jars[:2], KINDS)
    assert (first.files, second.files) == (16, 1)
    assert second.facts == len(second.difference) > 0
    assert [row.name for row in second.difference.removed[ClassDecl]] == [name]
    assert not second.difference.added
    with pytest.raises(ClassFileError, match=name):
        [*of_jars(jars, KINDS)]


def test_facts_that_nobody_reads_are_counted_and_not_kept(tmp_path: Path) -> None:
    [change] = of_jars([jar(tmp_path / "1.jar", next(history()).classes)], [ClassDecl])
    assert len(change.difference.added[ClassDecl]) == len(change.difference) == 16
    assert change.facts > 100


def test_a_broken_jar_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.jar"
    path.write_bytes(b"no jar")
    with pytest.raises(Unreadable, match=r"broken\.jar"):
        [*of_jars([path], KINDS)]


def test_taking_back_a_change_undoes_it() -> None:
    assert MOVES.back == Difference({MethodDecl: [OTHER]}, {MethodDecl: [FINALIZE]})
