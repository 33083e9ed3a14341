"""Benchmarks of the FindBugs example measure the right thing, and their sides agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asv_benchmarks.findbugs import bases, figures, held, replays
from asv_benchmarks.findbugs.alone import alone_figures, published_figures
from asv_benchmarks.findbugs.bases import (
    CLASS,
    HEADER,
    METHOD,
    base_figures,
    copies,
    edits_of,
    last_classes,
)
from asv_benchmarks.findbugs.figures import Replayed
from asv_benchmarks.findbugs.measure import BASES, HELD, READING, REPLAY, findbugs_figures
from asv_benchmarks.findbugs.published import PUBLISHED
from asv_benchmarks.findbugs.reading import edited_file, reading_figures
from asv_benchmarks.findbugs.replays import HISTORIES, PASSING, STORED, changes_of, replay_figures
from asv_benchmarks.findbugs.report import findbugs
from asv_benchmarks.measure import AS_WRITTEN, ENGINE
from examples.findbugs.analyses import ANALYSES
from examples.findbugs.classfile import read
from examples.findbugs.difference import Difference, difference
from examples.findbugs.facts import ClassDecl, Facts, Invoke, MethodDecl
from examples.findbugs.faults import cases, fixture
from examples.findbugs.inputs import class_files, installed_jars
from examples.findbugs.plain import PLAIN, subtype
from examples.findbugs.program import Program
from examples.findbugs.recorded import Revision
from reactive import Database

SMALL = "py4j"
FEW = 5


def py4j() -> dict[str, bytes]:
    """The class files of the jar that py4j brings."""
    return {file.place: file.read() for jar in installed_jars(SMALL) for file in class_files(jar)}


def small_classes() -> dict[str, Facts]:
    return {name: read(data, name) for case in fixture() for name, data in case.classes.items()}


@pytest.mark.long
@pytest.mark.parametrize("mode", [PASSING, STORED])
def test_a_history_is_replayed_and_every_revision_has_its_times(mode: str) -> None:
    changes = changes_of(SMALL)
    times = replay_figures(changes, mode, repeat=2)
    assert {side: len(ones) for side, ones in times.items()} == dict.fromkeys(times, len(changes))
    assert times["facts"] == [len(change.difference) for change in changes]
    assert min(times["engine"] + times["scratch"]) > 0


def test_a_replay_whose_views_differ_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLAIN, "L", lambda base: set())
    with pytest.raises(AssertionError, match="the views differ"):
        replay_figures(changes_of(SMALL), PASSING, repeat=1)


def test_copies_refer_to_each_other_by_their_new_names() -> None:
    classes: dict[str, Facts] = {
        "a/A": {ClassDecl: [ClassDecl("a/A", 52, 1, "a/B", ("a/I", "x/X"))]},
        "a/B": {Invoke: [Invoke("a/B", "f()V", 0, 182, 3, "a/A", "g", ("La/A;",), "V")]},
    }
    made = copies(classes)
    assert [next(made) for _ in range(2)] == [*classes.items()]
    assert next(made) == (
        "copy1/a/A",
        {ClassDecl: [ClassDecl("copy1/a/A", 52, 1, "copy1/a/B", ("a/I", "x/X"))]},
    )
    name, facts = next(made)
    call: Any = facts[Invoke][0]
    assert (name, call.cls, call.receiver) == ("copy1/a/B", "copy1/a/B", "copy1/a/A")
    assert next(made)[0] == "copy2/a/A"


def test_edits_are_of_a_method_of_a_header_and_of_a_whole_class() -> None:
    classes = small_classes()
    edits = edits_of(classes, FEW)
    assert [(kind, len(ones)) for kind, ones in edits.items()] == [
        (METHOD, FEW),
        (HEADER, FEW),
        (CLASS, FEW),
    ]
    for edit in edits[METHOD]:
        assert len(edit.removed[Invoke]) == len(edit.added[Invoke]) > 0
        assert len({row.method for row in [*edit.removed[Invoke], *edit.added[Invoke]]}) == 1
    for edit in edits[HEADER]:
        assert {*edit.removed} == {*edit.added} == {ClassDecl}
        above = [subtype(part) for part in (edit.removed, edit.added)]
        assert above[0] != above[1]
    for edit in edits[CLASS]:
        [name] = [row.name for row in edit.removed[ClassDecl]]
        assert (len(edit), edit.added) == (sum(map(len, classes[name].values())), {})


def test_edits_are_timed_on_programs_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a history that is read in a tenth of the time."""
    monkeypatch.setattr(bases, "last_classes", lambda name: last_classes(SMALL))
    times = base_figures(sizes=(20, 40), edited=FEW)
    assert {kind: {size: len(ones) for size, ones in by.items()} for kind, by in times.items()} == {
        kind: {"20": 2 * FEW, "40": 2 * FEW} for kind in (METHOD, HEADER, CLASS)
    }


def test_an_edited_class_file_calls_another_method() -> None:
    changed = 0
    for name, data in py4j().items():
        new = edited_file(data)
        before, after = read(data, name), read(new, name)
        assert (new == data) or len(new) == len(data)
        assert before[ClassDecl] == after[ClassDecl]
        changed += before != after
    assert changed > 20


def test_class_files_are_read_and_edited_and_the_edits_are_taken_back() -> None:
    times = reading_figures(py4j(), FEW)
    assert {what: len(ones) for what, ones in times.items()} == {
        "reading": 1,
        "evaluating": 1,
        "edits": 2 * FEW,
    }


def test_without_a_jdk_reading_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert reading_figures() == {}
    assert "Not measured" in "\n".join(figures.reading([{}]))


@pytest.mark.long
def test_every_analysis_is_timed_alone_on_both_sides() -> None:
    times = alone_figures(changes_of(SMALL))
    assert [*times] == [*ANALYSES]
    assert all([*sides] == [ENGINE, AS_WRITTEN] for sides in times.values())


@pytest.mark.long
@pytest.mark.parametrize("letter", PUBLISHED)
@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "as written"])
def test_a_published_query_finds_what_the_one_of_the_example_finds(
    letter: str, optimize: bool
) -> None:
    db = Database(optimize=optimize)
    program = Program([letter])
    tables = type(program.tables)(db)
    view = PUBLISHED[letter](tables).materialize()
    found = set()
    for case in cases():
        facts = {name: read(data, name, program.kinds) for name, data in case.classes.items()}
        program.put(facts)
        change = difference({}, facts)
        for kind in program.kinds:
            tables.of(kind).add_all(change.added.get(kind, ()))
        assert set(view) == set(program.views[letter])
        found |= set(view)
        program.put({name: {} for name in facts})
        for kind in program.kinds:
            tables.of(kind).clear()
    assert found


def test_published_queries_are_timed_over_a_few_classes() -> None:
    times = published_figures(changes_of(SMALL), classes=8)
    assert times["A"][AS_WRITTEN] > times["A"][ENGINE] > 0


@pytest.mark.long
def test_a_side_that_differs_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLAIN, "H", lambda base: {1})
    with pytest.raises(AssertionError, match="H: engine differs"):
        alone_figures(changes_of("flashcards"))


@pytest.mark.long
def test_facts_of_instructions_that_only_an_index_holds_are_counted() -> None:
    unboxing: list[Any] = [
        Invoke("a/A", "f()V", pc, 182, pc + 3, "java/lang/Integer", "intValue", (), "I")
        for pc in range(1_000)
    ]
    others = [row._replace(name="other") for row in unboxing]
    added: dict[Any, list[Any]] = {
        ClassDecl: [ClassDecl("a/A", 52, 1, None, ())],
        Invoke: [*unboxing, *others],
    }
    found = held.held([Revision("0", 1, Difference({}, added))])
    assert found["E"]["instructions"] == found["K"]["instructions"] == 0
    assert found["A"]["instructions"] == found[held.ALL]["instructions"] == 1_000
    assert found["A"]["rows"] >= 1_000 > found["E"]["rows"] == 0
    assert found["A"]["bytes"] > 1_000 * unboxing[0].__sizeof__() > found["E"]["bytes"]
    assert found[held.ALL]["of"] == 2_000


@pytest.mark.long
def test_findings_are_counted_with_the_bytes_of_their_facts() -> None:
    finalize: list[Any] = [
        MethodDecl(f"a/A{number}", "finalize()V", 1, "finalize", (), "V") for number in range(500)
    ]
    found = held.held([Revision("0", 1, Difference({}, {MethodDecl: finalize}))])
    assert found["I"]["bytes"] > 500 * finalize[0].__sizeof__() > found["H"]["bytes"]


def made_up(*, engine: float, scratch: float) -> dict[str, Any]:
    """Figures of all measurements, of these seconds; the second of two sizes is the engine's."""
    times = {"facts": [9, 0, 1, 2, 3], "engine": [engine] * 5, "scratch": [scratch] * 5}
    sides = {ENGINE: engine, AS_WRITTEN: scratch}
    per_letter = {"bytes": 1_024, "rows": engine, "instructions": 0, "peak": 2_048, "of": scratch}
    return {
        "replay": times,
        "bases": {METHOD: {"1000": [1.0], "10000": [engine]}},
        "reading": {"reading": [scratch], "evaluating": [0.0], "edits": [engine]},
        "alone": dict.fromkeys(ANALYSES, sides),
        "published": dict.fromkeys(PUBLISHED, sides),
        "held": dict.fromkeys([*ANALYSES, "all"], per_letter),
    }


@pytest.mark.parametrize(
    ("engine", "scratch", "missed"), [(1.0, 1_000.0, 0), (1.4, 1_000.0, 2), (1.4, 1.4, 13)]
)
def test_what_misses_its_target_is_marked(engine: float, scratch: float, missed: int) -> None:
    text = findbugs(lambda *words: made_up(engine=engine, scratch=scratch)[words[1]], runs=2)
    assert text.count("**missed**") == missed
    assert text.count("met") - text.count("method") >= 13 - missed


def test_the_section_has_all_its_parts_and_measures_each_history(tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []

    def in_process(*words: str) -> dict[str, Any]:
        asked.append(words)
        return made_up(engine=1.0, scratch=2.0)[words[1]]  # type: ignore[no-any-return]

    text = findbugs(in_process, runs=2)
    titles = [line for line in text.splitlines() if line.startswith("##")]
    assert titles == [
        "## FindBugs",
        "### Histories",
        "### Time over the facts that differ",
        "### One class among few and among many",
        "### One class file of 5,000",
        "### Each analysis alone",
        "### Memory",
    ]
    replayed = [words[2:] for words in asked if words[:2] == ("findbugs", REPLAY)]
    assert replayed == [(name, mode) for name in HISTORIES for mode in (PASSING, STORED)] * 2
    assert asked.count(("findbugs", BASES)) == asked.count(("findbugs", READING)) == 2
    assert asked[-1] == ("findbugs", HELD, "hibernate")


def test_gains_are_of_medians_and_of_changes_with_facts() -> None:
    runs: list[dict[str, list[float]]] = [
        {"facts": [9, 0, 4], "engine": [1.0, 1.0, 2.0], "scratch": [4.0, 6.0, 8.0]},
        {"facts": [9, 0, 4], "engine": [3.0, 3.0, 4.0], "scratch": [4.0, 6.0, 8.0]},
    ]
    row, targeted = figures.histories(
        [Replayed(name, PASSING, runs) for name in ("shop", "vespucci")]
    )[-2:]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] == ["shop, passing", "2", "1"]
    assert cells[3:7] == ["2,000.0", "4,000.0", "2,500,000.0", "7,000.00"]
    assert cells[7:] == ["2.80", "2.67", "", "2.57", ""]
    assert targeted.count("missed") == 2


@pytest.mark.parametrize("words", [["nothing"], ["replay"], ["held"], ["bases", "more"]])
def test_an_unknown_measurement_is_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match=f"no measurement: {words[0]}"):
        findbugs_figures(*words)


def test_measurements_are_found_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    found = findbugs_figures("replay", SMALL, PASSING)
    assert len(found["engine"]) == 23  # type: ignore[arg-type]
    assert replays.REPEAT == 5
