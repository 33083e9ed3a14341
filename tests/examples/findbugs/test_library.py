"""Libraries provide the superclasses of a program's classes, and are no part of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.findbugs.__main__ import main
from examples.findbugs.classpath import ClassPath
from examples.findbugs.facts import KINDS, ClassDecl, MethodDecl
from examples.findbugs.inputs import Inputs
from examples.findbugs.load import load
from examples.findbugs.program import Program
from examples.findbugs.screen import state, summary

from .built import Build, said
from .packed import case, folder, jar

ITEM = "m.Order$Item: is Serializable, m.Order around it is not [SE_BAD_FIELD_INNER_CLASS]"
SHEEP = "c.Sheep: is Cloneable, and neither has clone() nor calls it [CN_IDIOM]"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Two classes; the outer one is Serializable by its superclass in the library."""
    classes = case("m", "the superclass of the outer class is")
    own = {name: data for name, data in classes.items() if name != "m/Paper"}
    jar(tmp_path / "library.jar", {"m/Paper": classes["m/Paper"], **case("c"), **case("e")})
    return folder(tmp_path / "program", own)


@pytest.fixture
def library(program: Path) -> Path:
    """A library with findings of its own; one needs only the declaration of its class."""
    return program.parent / "library.jar"


def test_superclasses_of_libraries_are_known_and_their_findings_are_not_told(
    program: Path, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(program)]) == 1
    assert ITEM in capsys.readouterr().out
    assert main([str(program), str(library)]) == 1
    assert SHEEP in capsys.readouterr().out
    assert main([str(program), "--library", str(library)]) == 0
    *_, sizes, left_out = capsys.readouterr().out.splitlines()
    assert sizes.startswith("2 classes, ")
    assert left_out == "3 classes of libraries, for what is above these; not analysed"


def test_only_the_declarations_of_libraries_are_facts(program: Path, library: Path) -> None:
    inputs = Inputs((program,), (library,))
    read = ClassPath(inputs, KINDS).read([library])
    assert {kind for facts in read.values() for kind in facts} == {ClassDecl}
    stored = Program(stored=True)
    load(stored, [library], library=[library])
    assert [len(stored.tables.of(kind)) for kind in (ClassDecl, MethodDecl)] == [3, 0]


def test_class_of_a_library_that_the_program_has_is_not_worth_a_word(
    program: Path, library: Path
) -> None:
    folder(program, case("c"))
    inputs = Inputs((program,), (library,))
    loaded = load(Program(), inputs.files(), library=[library])
    assert (loaded.classes, len(loaded.library), loaded.duplicates) == (3, 2, 0)


def test_libraries_may_be_several(
    program: Path, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = jar(library.with_name("other.jar"), case("d"))
    libraries = ["--library", str(other), "--library", str(library)]
    assert main([str(program), "--json", *libraries]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_libraries_alone_are_no_program(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = library.with_name("empty")
    empty.mkdir()
    assert main([str(empty), "--library", str(library)]) == 2
    assert capsys.readouterr().err.endswith(f"no class file that can be read in {empty}\n")


def test_a_class_of_the_program_counts_before_that_of_a_library(
    program: Path, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(program, case("c"))
    assert main([str(program), "--library", str(library)]) == 1
    assert SHEEP in capsys.readouterr().out
    assert main(["--library", str(program.parent), str(program)]) == 1
    assert SHEEP in capsys.readouterr().out


def test_watching_takes_libraries_as_well(program: Path, library: Path) -> None:
    build = Build(program, library=(library,))
    assert (build.found, build.loaded.classes, len(build.loaded.library)) == ([], 2, 3)
    assert build.loaded.facts == Build(program).loaded.facts
    assert state(build.program, build.classpath, []).counts == []
    assert summary(build.program, build.classpath).endswith(": 2 classes, 0 findings at the end")
    library.unlink()
    change = build.update(library)
    assert (change.files, said(change.added)) == (("library.jar",), ["M m.Order$Item"])
    assert change.removed == ()
    jar(library, case("c"))
    assert build.update(library).added == ()
    folder(program, case("e"))
    assert len(build.update(program / "e/Sweeper.class").added) == 2


def test_findings_come_and_go_with_whose_class_it_is(program: Path, library: Path) -> None:
    build = Build(program, library=(library,))
    file = program / "c/Sheep.class"
    folder(program, case("c"))
    assert said(build.update(file).added) == ["C c.Sheep"]
    file.unlink()
    change = build.update(file)
    assert (said(change.added), said(change.removed)) == ([], ["C c.Sheep"])
    assert build.found == []


def test_wrong_library_is_refused(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main([str(program), "--library", str(program / "absent")])
    assert error.value.code == 2
    assert f"there is no {program}/absent" in capsys.readouterr().err
