"""Recorded histories are read as they were written, and other files are refused."""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples.findbugs import facts
from examples.findbugs.difference import Difference
from examples.findbugs.recorded import HistoryError, revisions

AT = ("a/A", "run()V", 4)
LINES: list[tuple[list[Any], facts.Fact]] = [
    (
        ["class_decl", "a/A", 50, 33, "java/lang/Object", ["a/I", "a/J"]],
        facts.ClassDecl("a/A", 50, 33, "java/lang/Object", ("a/I", "a/J")),
    ),
    (["class_decl", "o/O", 50, 33, None, []], facts.ClassDecl("o/O", 50, 33, None, ())),
    (
        ["method_decl", "a/A", 1, "add", ["I", "[J"], "V"],
        facts.MethodDecl("a/A", "add(I[J)V", 1, "add", ("I", "[J"), "V"),
    ),
    (["field_decl", "a/A", 9, "MAX", "I", 7], facts.FieldDecl("a/A", 9, "MAX", "I", 7)),
    (["code", "a/A", "run()V", 9, 2, 1], facts.Code("a/A", "run()V", 9, 2, 1)),
    (
        ["handler", "a/A", "run()V", 0, 4, 6, None],
        facts.Handler("a/A", "run()V", 0, 4, 6, None),
    ),
    (
        ["inner_class", "a/A", "a/A$1", None, None, 8],
        facts.InnerClass("a/A", "a/A$1", None, None, 8),
    ),
    (
        ["enclosing_method", "a/A$1", "a/A", ["run", "()V"]],
        facts.EnclosingMethod("a/A$1", "a/A", "run()V"),
    ),
    (["enclosing_method", "a/A$2", "a/A", None], facts.EnclosingMethod("a/A$2", "a/A", None)),
    (["throws", "a/A", "run()V", "a/E"], facts.Throws("a/A", "run()V", "a/E")),
    (
        ["insn", *AT, 182, 7, ["a/B", "get", ["I"], "J"]],
        facts.Invoke(*AT, 182, 7, "a/B", "get", ("I",), "J"),
    ),
    (
        ["insn", *AT, 186, 9, ["indy", "run", "(I[La/B;)V"]],
        facts.Invoke(*AT, 186, 9, None, "run", ("I", "[La/B;"), "V"),
    ),
    (
        ["insn", *AT, 180, 7, ["a/B", "size", "I"]],
        facts.FieldAccess(*AT, 180, 7, "a/B", "size", "I"),
    ),
    (["insn", *AT, 187, 7, "a/B"], facts.TypeInsn(*AT, 187, 7, "a/B")),
    (["insn", *AT, 189, 7, "a/B"], facts.NewArray(*AT, 189, 7, "a/B", None)),
    (["insn", *AT, 18, 6, None], facts.ConstInsn(*AT, 18, 6, None, None)),
    (["insn", *AT, 25, 6, None], facts.LocalLoad(*AT, 25, 6, None)),
    (["insn", *AT, 58, 6, None], facts.LocalStore(*AT, 58, 6, None)),
    (["insn", *AT, 132, 7, None], facts.Iinc(*AT, 132, 7, None, None)),
    (["insn", *AT, 169, 6, None], facts.Ret(*AT, 169, 6, None)),
    (["insn", *AT, 153, 7, None], facts.CondJump(*AT, 153, 7, None)),
    (["insn", *AT, 200, 9, None], facts.Goto(*AT, 200, 9, None)),
    (["insn", *AT, 168, 7, None], facts.Jsr(*AT, 168, 7, None)),
    (["insn", *AT, 170, 30, None], facts.TableSwitch(*AT, 170, 30, None, None, ())),
    (["insn", *AT, 171, 30, None], facts.LookupSwitch(*AT, 171, 30, None, (), ())),
    (["insn", *AT, 177, 5, None], facts.Basic(*AT, 177, 5)),
]


def written(path: Path, *lines: Any) -> Path:
    opened: Callable[..., Any] = lzma.open if path.suffix == ".xz" else open
    with opened(path, "wt", encoding="utf-8") as out:
        out.writelines(f"{json.dumps(line)}\n" for line in lines)
    return path


@pytest.mark.parametrize(("columns", "fact"), LINES, ids=[f"{type(f).__name__}" for _, f in LINES])
def test_a_line_states_a_fact(columns: list[Any], fact: facts.Fact, tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", ["revision", 0, 1, 0, 1], ["+", *columns])
    [revision] = revisions(path)
    assert revision.difference == Difference({}, {type(fact): [fact]})
    assert type(revision.difference.added[type(fact)][0]) is type(fact)


def test_every_kind_of_fact_has_a_line() -> None:
    assert {type(fact) for _, fact in LINES} == {*facts.KINDS}


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.xz"])
def test_revisions_have_their_numbers_or_names_their_files_and_facts(
    name: str, tmp_path: Path
) -> None:
    path = written(
        tmp_path / name,
        ["revision", 0, 5, 0, 1],
        ["+", "throws", "a/A", "run()V", "a/E"],
        ["revision", 1, 2, 0, 0],
        ["revision", 2, 1, 1, 1, "0.9.1"],
        ["-", "throws", "a/A", "run()V", "a/E"],
        ["+", "throws", "a/A", "run()V", "a/F"],
    )
    first, second, third = revisions(path)
    assert [(one.name, one.files, len(one.difference)) for one in (first, second, third)] == [
        ("0", 5, 1),
        ("1", 2, 0),
        ("0.9.1", 1, 2),
    ]
    assert third.difference.removed == first.difference.added
    assert third.difference.added == {facts.Throws: [facts.Throws("a/A", "run()V", "a/F")]}


def test_a_constant_that_is_no_number_goes_as_it_came(tmp_path: Path) -> None:
    nan = ["field_decl", "a/A", 9, "NAN", "D", math.nan]
    path = written(
        tmp_path / "x",
        ["revision", 0, 1, 0, 1],
        ["+", *nan],
        ["revision", 1, 1, 1, 0],
        ["-", *nan],
    )
    came, went = (one.difference for one in revisions(path))
    assert came.added[facts.FieldDecl] == went.removed[facts.FieldDecl]
    assert set(came.added[facts.FieldDecl]) == set(went.removed[facts.FieldDecl])


def test_equal_names_and_parameters_are_one_object(tmp_path: Path) -> None:
    method = ["+", "method_decl", "a/A", 1, "add", ["I", "J"], "V"]
    call = ["+", "insn", *AT, 182, 7, ["a/A", "add", ["I", "J"], "V"]]
    path = written(tmp_path / "x", ["revision", 0, 1, 0, 2], method, call)
    [revision] = revisions(path)
    [declared], [called] = (
        revision.difference.added[facts.MethodDecl],
        revision.difference.added[facts.Invoke],
    )
    assert declared.params is called.params
    assert declared.cls is called.receiver


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        "[]",
        "7",
        '["?", "throws", "a/A", "run()V", "a/E"]',
        '["+", "nothing", "a/A"]',
        '["+", "throws", "a/A"]',
        '["+", "insn", "a/A", "run()V", 0, 300, 1, null]',
        '["+", "insn", "a/A", "run()V", 0, 182, 3, ["a/B"]]',
        '["revision", 1]',
        '["revision", 1, "2", 0, 0]',
        '["+", "field_decl", "a/A", 9, "MAX", "I", {"": 7}]',
    ],
)
def test_a_line_that_states_nothing_is_refused_with_its_number(line: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f'["revision", 0, 1, 0, 1]\n{line}\n')
    with pytest.raises(HistoryError) as error:
        [*revisions(path)]
    assert str(error.value).rstrip() == f"{path}:2: no line of a history: {line}"


def test_a_fact_before_the_first_revision_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", ["+", "throws", "a/A", "run()V", "a/E"])
    with pytest.raises(HistoryError, match=":1: "):
        [*revisions(path)]


def test_a_line_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("[" * 100_000)
    with pytest.raises(HistoryError, match=":1: no line of a history"):
        [*revisions(path)]


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"\xca\xfe\xba\xbe")
    with pytest.raises(HistoryError, match=r"x\.bin: no history: it is no text"):
        [*revisions(path)]


@pytest.mark.parametrize("cut", [0, 7, 40, -1])
def test_a_compressed_file_that_is_cut_is_refused(cut: int, tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl.xz", *(["revision", n, 1, 0, 0] for n in range(50)))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(HistoryError, match=r"x\.jsonl\.xz: no history"):
        [*revisions(path)]


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        [*revisions(tmp_path / "nowhere")]
