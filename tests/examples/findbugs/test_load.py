"""Loading reads every class once, in batches, and continues after unreadable files."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from examples.findbugs import load as loading
from examples.findbugs.analyses import ANALYSES
from examples.findbugs.classfile import read
from examples.findbugs.difference import Difference
from examples.findbugs.facts import Invoke
from examples.findbugs.finding import findings
from examples.findbugs.inputs import Inputs, count
from examples.findbugs.load import Loaded, load
from examples.findbugs.program import Program

from .packed import case, folder, jar, whole_fixture


class Notes:
    """Reports of loading a folder."""

    def __init__(self, *roots: Path, letters: tuple[str, ...] = tuple(ANALYSES)) -> None:
        self.program = Program(letters)
        self.files = Inputs(roots).files()
        self.ticks: list[str] = []
        self.problems: list[tuple[str, str]] = []
        self.loaded = load(self.program, self.files, self.ticks.append, self._note)

    def _note(self, place: str, problem: str) -> None:
        self.problems.append((place, problem))

    @property
    def found(self) -> list[str]:
        return [str(finding) for finding in findings(self.program)]


def together(classes: dict[str, bytes]) -> Program:
    """All in one transaction."""
    program = Program()
    program.put({name: read(data, name, program.kinds) for name, data in classes.items()})
    return program


@pytest.mark.long
@pytest.mark.parametrize("batch", [1, 3, 16, 500])
def test_findings_are_the_same_in_batches_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(loading, "BATCH", batch)
    notes = Notes(jar(tmp_path / "x.jar", whole_fixture()))
    whole = together(whole_fixture())
    assert notes.found == [str(finding) for finding in findings(whole)]
    assert len(notes.found) == 16
    assert notes.loaded.classes == 16
    assert notes.loaded.facts == sum(map(len, whole.all_facts().values()))


def test_transaction_has_a_batch_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "BATCH", 5)
    sizes: list[int] = []
    apply = Program.apply

    def applied(self: Program, change: Difference) -> None:
        sizes.append(len(change))
        apply(self, change)

    monkeypatch.setattr(Program, "apply", applied)
    notes = Notes(folder(tmp_path, whole_fixture()))
    assert len(sizes) == 4
    assert sum(sizes) == notes.loaded.facts


def test_facts_are_not_kept(tmp_path: Path) -> None:
    notes = Notes(folder(tmp_path, whole_fixture()))
    assert notes.program.classes == []
    assert not any(map(len, notes.program.all_facts().values()))


def test_first_of_the_classes_of_a_name_counts(tmp_path: Path) -> None:
    fault, near_miss = case("c"), case("c", "it has clone")
    one, two = jar(tmp_path / "one.jar", fault), jar(tmp_path / "two.jar", near_miss)
    first, second = Notes(one, two), Notes(two, one)
    assert (len(first.found), len(second.found)) == (1, 0)
    assert (first.loaded.classes, first.loaded.duplicates) == (1, 1)
    assert (second.loaded.classes, second.loaded.duplicates) == (1, 1)


def test_what_cannot_be_read_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    cut = case("e")["e/Sweeper"][:100]
    folder(tmp_path / "a", {**case("a"), "Broken": b"no class"})
    jar(tmp_path / "b.jar", {"e/Sweeper": cut, **case("c")})
    (tmp_path / "c.jar").write_text("no archive")
    folder(tmp_path / "d", case("d"))
    notes = Notes(*(tmp_path / name for name in ("a", "b.jar", "c.jar", "d")))
    assert [finding.partition(".")[0] for finding in notes.found] == ["a", "c", "d"]
    assert notes.loaded.problems == 3
    places = [str(tmp_path / "a/Broken.class"), f"{tmp_path}/b.jar!e/Sweeper.class"]
    assert [place for place, _ in notes.problems] == [*places, str(tmp_path / "c.jar")]
    assert [text.removeprefix(place) for place, text in notes.problems] == [
        ": offset 0: it does not begin as a class file does, with CAFEBABE",
        notes.problems[1][1].removeprefix(places[1]),
        ": cannot be read: File is not a zip file",
    ]
    assert notes.problems[1][1].startswith(f"{places[1]}: offset 100: ")


def test_broken_class_does_not_hide_a_later_one_of_its_name(tmp_path: Path) -> None:
    folder(tmp_path / "one", {name: data[:50] for name, data in case("c").items()})
    folder(tmp_path / "two", case("c"))
    notes = Notes(tmp_path / "one", tmp_path / "two")
    assert len(notes.found) == 1
    assert notes.loaded.duplicates == 0


def test_only_facts_that_the_analyses_read_are_made(tmp_path: Path) -> None:
    notes = Notes(folder(tmp_path, case("e")), letters=("E",))
    (facts,) = (read(data, name, (Invoke,)) for name, data in case("e").items())
    assert notes.loaded.facts == len(facts[Invoke])
    assert notes.found == [
        "e.Sweeper.hurry() at byte 3: calls Runtime.gc() [DM_GC]",
        "e.Sweeper.sweep() at byte 0: calls System.gc() [DM_GC]",
    ]


def test_each_class_file_is_a_tick(tmp_path: Path) -> None:
    folder(tmp_path, case("a"))
    jar(tmp_path / "x.jar", {**case("b"), **case("c"), "Broken": b""})
    notes = Notes(tmp_path)
    assert notes.ticks == ["Coercion.class", "x.jar", "x.jar", "x.jar"]
    assert sum(map(count, notes.files)) == len(notes.ticks)


def test_collector_runs_afterwards_whatever_happens(tmp_path: Path) -> None:
    def fail(what: str) -> None:
        assert not gc.isenabled()
        raise KeyboardInterrupt

    Notes(folder(tmp_path, case("a")))
    assert gc.isenabled()
    with pytest.raises(KeyboardInterrupt):
        load(Program(), Inputs((tmp_path,)).files(), fail)
    assert gc.isenabled()


def test_nothing_is_no_class() -> None:
    assert load(Program(), []).classes == 0
    assert Loaded().classes_per_second == 0


def test_module_declarations_are_read_like_classes(tmp_path: Path) -> None:
    modules = jar(tmp_path / "m.jar", {"module-info": MODULE, **case("c")})
    notes = Notes(modules)
    assert notes.problems == []
    assert notes.loaded.classes == 2


MODULE = bytes.fromhex(
    "cafebabe 0000 0035 0006"
    "01 000b 6d6f64756c652d696e666f"  # 1: module-info
    "07 0001"
    "01 0006 4d6f64756c65"  # 3: Module
    "01 0001 6d"
    "13 0004"  # 5: the module m
    "8000 0002 0000 0000 0000 0000 0001"
    "0003 00000010 0005 0000 0000 0000 0000 0000 0000 0000"
)
