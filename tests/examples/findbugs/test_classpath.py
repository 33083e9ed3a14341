"""Files that change: the classes that count, and the rest of an unreadable file."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from examples.findbugs.faults import cases
from examples.findbugs.finding import findings
from examples.findbugs.inputs import Inputs
from examples.findbugs.load import load
from examples.findbugs.program import Program
from tests import budget

from .built import Build, said
from .packed import case, folder, jar


def test_a_class_file_that_is_being_written_keeps_its_findings(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, case("c")))
    file = tmp_path / "c/Sheep.class"
    whole = file.read_bytes()
    for length in (0, 9, len(whole) - 1):
        file.write_bytes(whole[:length])
        change = build.update(file)
        assert (change.added, change.removed) == ((), ())
        assert change.problems == tuple(build.classpath.problems())
        assert change.problems[0].startswith(f"{file}: offset ")
    folder(tmp_path, case("c", "it has clone"))
    change = build.update(file)
    assert said(change.removed) == ["C c.Sheep"]
    assert build.classpath.problems() == []


def test_a_jar_that_is_being_written_keeps_its_findings(tmp_path: Path) -> None:
    path = jar(tmp_path / "x.jar", {**case("c"), **case("d")})
    build = Build(tmp_path)
    whole = path.read_bytes()
    for length in (0, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        change = build.update(path)
        assert (change.added, change.removed) == ((), ())
        assert change.problems == (f"{path}: cannot be read: File is not a zip file",)
    path.unlink()
    assert said(build.update(path).removed) == ["C c.Sheep", "D d.Copy.clone()"]
    assert build.classpath.problems() == []


def test_a_broken_class_in_a_jar_keeps_its_findings_alone(tmp_path: Path) -> None:
    path = jar(tmp_path / "x.jar", {**case("c"), **case("d"), **case("j")})
    build = Build(tmp_path)
    jar(path, {"c/Sheep": case("c")["c/Sheep"][:50], **case("j")})
    change = build.update(path)
    assert said(change.removed) == ["D d.Copy.clone()"]
    assert change.problems[0].startswith(f"{path}!c/Sheep.class: offset 50: ")
    jar(path, {**case("j")})
    assert said(build.update(path).removed) == ["C c.Sheep"]
    assert build.program.classes == ["j/Waiter"]


def test_a_changed_jar_replaces_all_its_classes(tmp_path: Path) -> None:
    path = jar(tmp_path / "x.jar", {**case("c"), **case("d")})
    build = Build(path)
    jar(path, {**case("d"), **case("j")})
    change = build.update(path)
    assert change.files == ("x.jar",)
    assert (said(change.added), said(change.removed)) == (["J j.Waiter.serve()"], ["C c.Sheep"])


def test_next_class_of_a_name_counts_when_the_first_goes(tmp_path: Path) -> None:
    fault, near_miss = case("c"), case("c", "it has clone")
    folder(tmp_path / "one", near_miss)
    two, three = jar(tmp_path / "two.jar", fault), jar(tmp_path / "three.jar", near_miss)
    build = Build(tmp_path / "one", two, three)
    assert (build.found, build.loaded.duplicates) == ([], 2)
    shutil.rmtree(tmp_path / "one")
    assert said(build.update(tmp_path / "one/c/Sheep.class").added) == ["C c.Sheep"]
    two.unlink()
    assert said(build.update(two).removed) == ["C c.Sheep"]
    jar(two, fault)
    assert said(build.update(two).added) == ["C c.Sheep"]
    folder(tmp_path / "one", near_miss)
    assert said(build.update(tmp_path / "one/c/Sheep.class").removed) == ["C c.Sheep"]
    assert build.classpath.duplicates == 2


def test_a_folder_stands_for_the_files_that_were_or_are_in_it(tmp_path: Path) -> None:
    folder(tmp_path, {**case("c"), **case("d")})
    build = Build(tmp_path)
    (tmp_path / "c").rename(tmp_path / "x.y")
    meant = build.classpath.meant({tmp_path / "c", tmp_path / "x.y", tmp_path / "notes.txt"})
    assert meant == {tmp_path / "c/Sheep.class", tmp_path / "x.y/Sheep.class"}
    assert build.classpath.meant({tmp_path}) == {*meant, tmp_path / "d/Copy.class"}
    assert build.classpath.meant({tmp_path.parent / "other.jar"}) == set()
    assert build.classpath.stale() == meant
    change = build.update(*meant)
    assert (change.added, change.removed) == ((), ())
    assert build.classpath.stale() == set()


@pytest.mark.parametrize("place", ["c/Sheep", "z/Sheep"])
def test_first_class_of_a_name_counts_within_a_jar_too(tmp_path: Path, place: str) -> None:
    fault, near_miss = case("c")["c/Sheep"], case("c", "it has clone")["c/Sheep"]
    path = jar(tmp_path / "x.jar", {"c/Sheep": fault, "y/Sheep": near_miss})
    path.write_bytes(path.read_bytes().replace(b"y/Sheep", place.encode()))
    build = Build(path)
    assert len(build.found) == 1
    assert load(Program(), [path]).duplicates == 1


def test_a_folder_with_the_name_of_a_jar_is_no_problem(tmp_path: Path) -> None:
    build = Build(jar(tmp_path / "x.jar", case("c")).parent)
    (tmp_path / "x.jar").unlink()
    folder(tmp_path / "x.jar", case("d"))
    change = build.update(*build.classpath.meant({tmp_path / "x.jar"}), *build.classpath.stale())
    assert change.problems == ()
    assert build.program.classes == ["d/Copy"]


@pytest.mark.long
@pytest.mark.parametrize("seed", budget.cases(0, 1))
def test_after_every_change_it_is_as_if_read_afresh(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    roots = tmp_path / "one", tmp_path / "two"
    build = Build(*roots)
    for _ in range(40 if budget.TIMES else 15):
        files = {
            change_something(random, random.choice(roots)) for _ in range(random.choice([1, 2]))
        }
        if random.random() < 0.5:
            files = build.classpath.stale()
        build.update(*files)
        afresh = Program()
        loaded = load(afresh, Inputs(roots).files())
        assert build.found == [str(finding) for finding in findings(afresh)]
        assert build.classpath.duplicates == loaded.duplicates
        assert len(build.program.classes) == loaded.classes


def change_something(random: Random, root: Path) -> Path:
    """Write or delete a class file or jar, of few names, so that they often hide each other."""
    some = [one for one in cases() if one.slot in "ckm"]
    classes = dict(random.choice(some).classes)
    if random.random() < 0.4:
        path = root / f"{random.choice('xy')}.jar"
        if random.random() < 0.3:
            path.unlink(missing_ok=True)
        else:
            jar(path, {**classes, **random.choice(some).classes})
        return path
    name, data = random.choice(list(classes.items()))
    path = root / f"{name}.class"
    if random.random() < 0.3:
        path.unlink(missing_ok=True)
    else:
        folder(root, {name: data})
    return path
