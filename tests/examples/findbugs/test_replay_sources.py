"""Sources of a replay: recorded histories, and builds that are jars or folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from examples.findbugs.archives import Unreadable
from examples.findbugs.classfile import ClassFileError
from examples.findbugs.facts import ClassDecl
from examples.findbugs.faults import history
from examples.findbugs.program import Program
from examples.findbugs.replay.mirror import Mirror
from examples.findbugs.replay.sources import names_of, of_builds, problem_of_sources, title_of
from examples.findbugs.replay.steps import replay

from .jars import jar, jars_of


def folder(path: Path, classes: Mapping[str, bytes | None]) -> Path:
    """Write a folder of class files by the names of their classes."""
    path.mkdir(parents=True)
    for name, data in classes.items():
        if data is not None:
            file = path / f"{name}.class"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    return path


def fixture_classes() -> dict[str, bytes]:
    return {name: data for name, data in next(history()).classes.items() if data is not None}


def test_jars_of_a_history_give_its_findings(tmp_path: Path) -> None:
    revisions = [*history(seed=1, revisions=12)]
    jars = jars_of(tmp_path, (revision.classes for revision in revisions))
    program = Program()
    steps = replay(program, Mirror(), of_builds(jars), verify=True)
    for step, revision in zip(steps, revisions, strict=True):
        found = {letter: len(view) for letter, view in program.views.items()}
        assert found == {letter: len(keys) for letter, keys in revision.expected.items()}
        assert step.revision.name == f"r{revision.number}"


def test_folders_are_as_the_jars_of_the_same_classes(tmp_path: Path) -> None:
    classes: dict[str, bytes | None] = {}
    builds = []
    for revision in history(seed=1, revisions=6):
        classes |= revision.classes
        builds.append(folder(tmp_path / f"f{revision.number}" / "classes", classes))
    jars = jars_of(tmp_path, (revision.classes for revision in history(seed=1, revisions=6)))
    of_folders, of_jars = [*of_builds(builds)], [*of_builds(jars)]
    assert [one.name for one in of_folders] == [f"f{n}/classes" for n in range(6)]
    assert [one.files for one in of_folders] == [one.files for one in of_jars]
    made: list[Mirror] = []
    for revisions in (of_folders, of_jars):
        made.append(Mirror())
        for one in revisions:
            made[-1].apply(one.difference)
    assert made[0].facts == made[1].facts


def test_only_class_files_that_differ_are_read_again(tmp_path: Path) -> None:
    data = fixture_classes()
    name, *others = data
    jars = [
        jar(tmp_path / "1.jar", data),
        jar(tmp_path / "2.jar", {other: data[other] for other in others}),
        jar(tmp_path / "3.jar", {name: b"broken", **{other: data[other] for other in others}}),
    ]
    first, second = of_builds(jars[:2])
    assert (first.files, second.files) == (16, 1)
    assert [row.name for row in second.difference.removed[ClassDecl]] == [name]
    assert not second.difference.added
    with pytest.raises(ClassFileError, match=rf"3\.jar!{name}"):
        [*of_builds(jars)]


def test_of_classes_of_the_same_name_the_first_counts_until_it_goes(tmp_path: Path) -> None:
    data = fixture_classes()
    name = next(iter(data))
    twice = folder(tmp_path / "old", data)
    jar(twice / "lib.jar", {name: data[name]})
    once = tmp_path / "new"
    once.mkdir()
    jar(once / "lib.jar", {name: data[name]})
    first, second = of_builds([twice, once])
    assert (first.files, second.files) == (17, 16)
    assert [row.name for row in first.difference.added[ClassDecl]].count(name) == 1
    assert len(second.difference.removed[ClassDecl]) == 15
    assert not second.difference.added


def test_a_broken_jar_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.jar"
    path.write_bytes(b"no jar")
    with pytest.raises(Unreadable, match=r"broken\.jar"):
        [*of_builds([path])]


def test_a_folder_without_class_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "Cart.java").write_text("class Cart {}")
    with pytest.raises(Unreadable, match=f"{tmp_path.name}: there is no class file in it"):
        [*of_builds([tmp_path])]


def test_what_is_no_source_is_told(tmp_path: Path) -> None:
    build, text = folder(tmp_path / "classes", fixture_classes()), tmp_path / "notes.txt"
    text.write_text("")
    [some, *_] = build.rglob("*.class")
    assert problem_of_sources([build, some, build]) is None
    assert problem_of_sources([Path("py4j")]) is None
    assert problem_of_sources([text]) is None
    for alone in (build, some):
        assert problem_of_sources([alone]) == (
            f"{alone} alone has no changes: give two or more jars or folders, from the oldest "
            "build to the newest"
        )
    told = {
        tmp_path / "nowhere": "there is no ",
        text: "is no folder",
        Path("py4j"): "py4j is a recorded history: give it alone, or two or more jars",
    }
    for source, said in told.items():
        assert said in (problem_of_sources([build, source]) or "")


def test_builds_are_called_by_what_tells_them_apart() -> None:
    assert names_of([Path("a/shop-1.0.jar"), Path("b/shop-1.1.jar")]) == ["shop-1.0", "shop-1.1"]
    assert names_of([Path("a/x/c"), Path("b/x/c")]) == ["a/x/c", "b/x/c"]
    assert names_of([Path("a/c"), Path("a/c")]) == ["c", "c"]
    assert title_of([Path("a/x/c"), Path("b/x/c")]) == "a-x-c-to-b-x-c"
    assert title_of([Path("some/vespucci.jsonl.xz")]) == "vespucci"
