"""The classes in the archive equal the compiled texts of the cases."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from examples.findbugs.faults import case, cases
from examples.findbugs.faults.build import BuildError, compile_all, pack
from examples.findbugs.faults.case import compiled_from
from examples.findbugs.faults.patches import class_name, members, number, patched
from examples.findbugs.faults.texts import Directive, Text, TextError, digest, texts, texts_of
from tests.budget import stride

from .fixtures import facts_of, javac

STEP = stride(4, share=3)
"""One case in `STEP` is compiled, because compiling takes long."""


def test_archive_is_made_from_the_texts() -> None:
    assert compiled_from() == digest(texts()), "run python -m examples.findbugs.faults.build"


@pytest.mark.long
def test_compiler_gives_the_same_facts() -> None:
    slots = [list(of) for _, of in groupby(texts(), key=lambda text: text.slot)]
    some = [text for slot in slots for text in slot[::STEP]]
    archived = {(case.slot, case.name): case.classes for case in cases()}
    for text, classes in compile_all(some, javac()).items():
        known = archived[text.slot, text.name]
        assert classes.keys() == known.keys()
        for name, data in classes.items():
            assert facts_of(name, data) == facts_of(name, known[name]), f"{text.name}: {name}"


def test_missing_compiler_is_named() -> None:
    with pytest.raises(
        BuildError, match="there is no nowhere/javac on the PATH: a JDK is needed, of Java 17"
    ):
        compile_all(texts()[:1], "nowhere/javac")


@pytest.mark.long
def test_refused_case_is_named() -> None:
    wrong = Text("x", "no Java", (), "package x;\n\nclass {\n}\n")
    with pytest.raises(
        BuildError, match=r"x/no Java/0/Source\.java:3: error: <identifier> expected"
    ):
        compile_all([wrong], javac())


def test_archive_of_the_same_classes_is_the_same(tmp_path: Path) -> None:
    text = texts()[0]
    pack({text: {"b/B": b"2", "a/A": b"1"}}, "0", tmp_path / "one")
    pack({text: {"a/A": b"1", "b/B": b"2"}}, "0", tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_case_without_source_has_that_of_the_first_with_its_edits(tmp_path: Path) -> None:
    one, two, three, four = _texts(
        tmp_path,
        "# x\n\n== one\nfinds B x/A f\n\nfirst line\n\n== two\nedit first => last\n\n"
        "== three\nedit first =>\nalso\n\nmore\n\n== four\n\nown\n",
    )
    assert (one.source, two.source, four.source) == ("first line", "last line", "own")
    assert three.source == " line\n\nmore"
    assert one.expected() == {"B": frozenset([("x/A", "f")])}
    assert two.expected() == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("== two\nedit absent => x\n", "x.txt: case 'two': edit: 'absent' is there 0 times"),
        ("== two\nedit i => x\n", "x.txt: case 'two': edit: 'i' is there 2 times, not once"),
        ("== two\nedti first => x\n", "x.txt: case 'two': no directive 'edti'"),
    ],
)
def test_wrong_case_is_named(tmp_path: Path, wrong: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        _texts(tmp_path, "== one\n\nfirst line\n\n" + wrong)


def test_digest_tells_other_sources_and_patches_but_not_other_findings() -> None:
    text = Text("x", "one", (), "source")
    others = [
        Text("x", "one", (), "another source"),
        Text("x", "one", (Directive("major", "48"),), "source"),
        Text("x", "one", (Directive("drop", "x/A"),), "source"),
    ]
    assert digest([text]) not in map(digest, ([other] for other in others))
    assert digest([text]) == digest([Text("x", "one", (Directive("finds", "B x/A f"),), "source")])


def test_case_that_was_not_compiled_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case, "texts", lambda: [Text("x", "new", (), "")])
    with pytest.raises(LookupError, match=r"case 'new' of x\.txt is not in classes\.tar\.xz: run"):
        cases.__wrapped__()


def test_patches_change_what_they_name_and_no_more() -> None:
    data = _class("l", "a public static number")
    assert patched(data, "major", ("45",)) == data[:6] + b"\0\x2d" + data[8:]
    assert class_name(patched(data, "rename", ("l/Limits", "Ümläut"))) == "Ümläut"
    assert patched(data, "rename", ("l/Lim", "x")) == data
    assert patched(patched(data, "rename", ("most", "least")), "rename", ("least", "most")) == data
    toggled = patched(data, "flags", ("l/Limits.most", "0x41"))
    before, after = dict(_flags(data)), dict(_flags(toggled))
    assert before.pop("most") ^ after.pop("most") == 0x41
    assert before == after
    assert patched(data, "flags", ("l/Other.most", "0x50")) == data
    assert patched(data, "orphan", ("l/Other",)) == data


@pytest.mark.parametrize(
    ("patch", "words", "message"),
    [
        ("flags", ("l/Limits.least", "1"), "l/Limits has no member 'least'"),
        ("minor", ("3",), "no patch 'minor' with"),
        ("rename", ("one",), "no patch 'rename' with"),
    ],
)
def test_wrong_patch_is_an_error(patch: str, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        patched(_class("l", "a public static number"), patch, words)


def _texts(folder: Path, text: str) -> list[Text]:
    path = folder / "x.txt"
    path.write_text(text)
    return list(texts_of(path))


def _class(slot: str, name: str) -> bytes:
    (found,) = (case for case in cases() if (case.slot, case.name) == (slot, name))
    (data,) = found.classes.values()
    return data


def _flags(data: bytes) -> list[tuple[str, int]]:
    return [(name, number(data, place)) for place, name in members(data)]
