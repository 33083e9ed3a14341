"""Measurements of a replay, and detection of wrong views."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest

from examples.findbugs.difference import Difference, difference
from examples.findbugs.facts import ClassDecl, FieldDecl, MethodDecl, Throws
from examples.findbugs.faults import history
from examples.findbugs.plain import PLAIN
from examples.findbugs.program import Program
from examples.findbugs.recorded import HistoryError, Revision
from examples.findbugs.replay.mirror import Mirror, differing, without_plain
from examples.findbugs.replay.steps import NotVerifiedError, Step, check, memory, replay
from examples.findbugs.replay.summary import Fit, fit, summary

from .fixtures import facts_of
from .histories import revisions

FINALIZE = MethodDecl("a/A", "finalize()V", 1, "finalize", (), "V")
OTHER = FINALIZE._replace(cls="b/B")
COMES = Revision("1", 1, Difference({}, {MethodDecl: [FINALIZE]}))
MOVES = Revision("2", 2, Difference({MethodDecl: [FINALIZE]}, {MethodDecl: [OTHER]}))


def fixture_revision() -> Revision:
    classes = next(history()).classes
    return Revision("0", 16, difference({}, {n: facts_of(n, data) for n, data in classes.items()}))


def steps_of(*made: Revision, repeat: int = 1, verify: bool = True) -> list[Step]:
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
        [*replay(program, Mirror(), revisions("flashcards"), verify=True)]


def test_a_row_that_a_view_has_twice_is_noticed() -> None:
    program = Program(["I"])
    program.tables.method_decl.add_all([FINALIZE, FINALIZE])
    assert differing(program, {"I": {FINALIZE}}) == {"I": {FINALIZE}}
    mirror = Mirror()
    mirror.apply(COMES.difference)
    with pytest.raises(NotVerifiedError, match=r"I: 2 in the view: MethodDecl\(cls='a/A'"):
        check(program, mirror, "now")


def test_a_fact_that_comes_twice_is_there_until_it_has_gone_twice() -> None:
    mirror = Mirror()
    for change in (COMES.difference, COMES.difference, COMES.back):
        mirror.apply(change)
    assert mirror.facts[MethodDecl] == {FINALIZE: 1}
    mirror.apply(COMES.back)
    assert not mirror.facts[MethodDecl]


def test_a_fact_that_goes_without_having_been_there_is_an_error() -> None:
    with pytest.raises(HistoryError, match=r"taken away that is not there: MethodDecl\(cls='a/A'"):
        Mirror().apply(MOVES.difference)


def test_memory_of_a_change_grows_with_its_facts() -> None:
    def many(count: int) -> Revision:
        rows: list[Any] = [FINALIZE._replace(cls=f"c/C{number}") for number in range(count)]
        return Revision("", count, Difference({}, {MethodDecl: rows}))

    first = many(3)  # the first batch also writes the loops over batches
    used = memory(Program(), [COMES, first, many(20), many(2_000)])
    assert used.peaks[2] * 10 < used.peaks[3]
    assert used.peaks[3] > used.held / 2 > 0


def test_memory_of_a_change_does_not_grow_with_the_facts_that_no_analysis_reads() -> None:
    unread: list[Any] = [Throws("a/A", "run()V", f"e/E{number}") for number in range(1_000)]
    change = Revision("", 1, Difference({}, {MethodDecl: [FINALIZE], Throws: unread}))
    assert memory(Program(), [change]).peaks[0] < 2 * memory(Program(), [COMES]).peaks[0]


def test_a_summary_is_of_the_changes_and_of_the_first_revision_apart() -> None:
    def step(seconds: float, facts: int) -> Step:
        rows: list[Any] = [FINALIZE._replace(cls=str(number)) for number in range(facts)]
        revision = Revision(str(facts), 1, Difference({}, {MethodDecl: rows}))
        return Step(revision, facts, seconds, {}, {}, 0, scratch=10.0)

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


def test_views_that_miss_a_kind_of_facts_are_noticed() -> None:
    program = Program(["M"])
    program.kinds = (ClassDecl,)
    with pytest.raises(NotVerifiedError, match="the views of M differ"):
        [*replay(program, Mirror(), [fixture_revision()], verify=True)]


def test_facts_are_counted_of_all_kinds_and_of_those_that_analyses_read() -> None:
    [step] = replay(Program(["B"]), Mirror(), [fixture_revision()], verify=True)
    known = step.revision.difference.added
    assert step.facts_read == len(known[ClassDecl]) + len(known[FieldDecl])
    assert len(step.revision.difference) > 2 * step.facts_read
    [stored] = replay(Program(["B"], stored=True), Mirror(), [fixture_revision()], verify=True)
    assert stored.facts_read == len(step.revision.difference)


def test_an_analysis_without_plain_evaluation_is_left_out_and_others_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(PLAIN, "I")
    assert without_plain("HIJ") == ["I"]
    mirror, program = Mirror(), Program(["I"])
    assert [step.scratch for step in replay(program, mirror, [COMES], verify=True)] == [None]
    monkeypatch.setitem(PLAIN, "H", lambda base: {FINALIZE})
    with pytest.raises(NotVerifiedError, match="the views of H differ"):
        [*replay(Program(["H", "I"]), Mirror(), [COMES], verify=True)]


def test_taking_back_a_change_undoes_it() -> None:
    assert MOVES.back == Difference({MethodDecl: [OTHER]}, {MethodDecl: [FINALIZE]})
