"""A recorded history has the facts of the class files, and so the same findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import pytest

from examples.findbugs import facts, recorded
from examples.findbugs.facts import INSTRUCTIONS, Fact, Facts
from examples.findbugs.faults import history
from examples.findbugs.faults.__main__ import main
from examples.findbugs.faults.recording import record
from examples.findbugs.program import Program

from .fixtures import change, listed, live

Pair: TypeAlias = tuple[type[Fact], Fact]

CUT = {*INSTRUCTIONS} - {facts.Invoke, facts.FieldAccess, facts.TypeInsn, facts.Basic}
"""Kinds of instructions that a recorded history stores without some operands."""


@pytest.mark.long
def test_recorded_history_has_the_expected_findings(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl.xz"
    record(history(), path)
    program = Program()
    for read, revision in zip(recorded.revisions(path), history(), strict=True):
        program.apply(read.difference)
        assert live(program) == listed(revision.expected), revision.what
        assert (read.name, read.files) == (str(revision.number), len(revision.classes))


@pytest.mark.long
def test_recorded_facts_are_those_of_the_class_files(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl.xz"
    record(history(1), path)
    program, known = Program(stored=True), Counter[Pair]()
    for read, revision in zip(recorded.revisions(path), history(1), strict=True):
        known.subtract(_pairs(read.difference.removed))
        known.update(_pairs(read.difference.added))
        change(program, revision.classes)
        assert _whole(known.elements()) == _whole(_pairs(program.all_facts()))
    assert {kind for kind, _ in known} >= {*facts.KINDS} - {*INSTRUCTIONS} | {facts.LookupSwitch}


def test_command_shows_every_revision(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--revisions", "3", "--seed", "1"])
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "   0 16 classes  1 1 1 1 2 1 1 1 1 1 1 1 1 1 1  the fixture"
    assert [line.split("  ")[-1] for line in shown[1:]] == [r.what for r in history(1, 3)][1:]


def test_command_records(tmp_path: Path) -> None:
    main([str(tmp_path / "x.xz"), "--revisions", "3"])
    record(history(0, 3), tmp_path / "y.xz")
    assert (tmp_path / "x.xz").read_bytes() == (tmp_path / "y.xz").read_bytes()


def _pairs(of: Facts) -> list[Pair]:
    return [(kind, row) for kind, rows in of.items() for row in rows]


def _whole(pairs: Iterable[Pair]) -> Counter[Pair]:
    return Counter(pair for pair in pairs if pair[0] not in CUT)
