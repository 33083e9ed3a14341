"""Watching: files that a build writes and deletes change the findings, and nothing else does."""

from __future__ import annotations

import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import IO

import pytest
from rich.console import Console

from examples.findbugs import watch as watching
from examples.findbugs.__main__ import main
from examples.findbugs.finding import Finding, findings
from examples.findbugs.screen import screen, state
from examples.findbugs.watch import watch
from examples.screen import drawing
from examples.watching import Change

from .built import Build, said
from .packed import case, folder, jar

ROOT = Path(__file__).parents[3]
PATIENCE = 10.0


def test_an_update_tells_what_came_and_went(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, case("e")))
    folder(tmp_path, case("e", "only by Runtime"))
    change = build.update(tmp_path / "e/Sweeper.class")
    assert change.files == ("e/Sweeper.class",)
    assert (said(change.added), said(change.removed)) == ([], ["E e.Sweeper.sweep() at byte 0"])
    folder(tmp_path, case("j"))
    (tmp_path / "e/Sweeper.class").unlink()
    change = build.update(tmp_path / "j/Waiter.class", tmp_path / "e/Sweeper.class")
    assert change.files == ("e/Sweeper.class", "j/Waiter.class")
    assert said(change.added) == ["J j.Waiter.serve()"]
    assert said(change.removed) == ["E e.Sweeper.hurry() at byte 3"]
    assert build.program.classes == ["j/Waiter"]


def test_a_finding_that_moves_in_its_method_is_no_news(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, case("a")))
    assert said(tuple(findings(build.program))) == ["A a.Coercion.total(int) at byte 8"]
    folder(tmp_path, case("a", "among other statements"))
    change = build.update(tmp_path / "a/Coercion.class")
    assert (change.added, change.removed) == ((), ())
    assert said(tuple(findings(build.program))) == ["A a.Coercion.total(int) at byte 17"]


def test_a_second_finding_of_the_same_words_is_news(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, case("o")))
    folder(tmp_path, case("o", "two setters of one name"))
    change = build.update(tmp_path / "o/Person.class")
    assert said(change.added) == ["O o.Person.setName(char)"]
    assert change.removed == ()


@contextmanager
def watched(build: Build) -> Iterator[queue.Queue[Change[Finding]]]:
    changes: queue.Queue[Change[Finding]] = queue.Queue()
    stop = threading.Event()
    arguments = (build.program, build.classpath, changes.put, stop)
    thread = threading.Thread(target=watch, args=arguments)
    thread.start()
    try:
        yield changes
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def until(changes: queue.Queue[Change[Finding]], is_so: Callable[[], bool]) -> None:
    """Wait for changes."""
    while not is_so():
        changes.get(timeout=PATIENCE)


@pytest.mark.long
def test_watch_follows_a_build_until_it_is_stopped(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, case("c")))
    with watched(build) as changes:
        folder(tmp_path, case("d"))
        until(changes, lambda: build.program.classes == ["c/Sheep", "d/Copy"])
        (tmp_path / "c").rename(tmp_path / "x")
        jar(tmp_path / "lib" / "x.jar", case("j"))
        until(changes, lambda: "j/Waiter" in build.program.classes)
        shutil.rmtree(tmp_path / "x")
        until(changes, lambda: build.program.classes == ["d/Copy", "j/Waiter"])
    assert len(build.found) == 2


def test_what_changed_before_the_watching_is_not_missed(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, case("c")))
    folder(tmp_path, case("d"))
    (tmp_path / "c/Sheep.class").unlink()
    with watched(build) as changes:
        until(changes, lambda: build.program.classes == ["d/Copy"])


@pytest.mark.long
@pytest.mark.parametrize("deleted", ["build/classes", "build"])
def test_a_folder_that_is_deleted_and_made_again_is_followed(tmp_path: Path, deleted: str) -> None:
    root = folder(tmp_path / "build/classes", case("c"))
    build = Build(root)
    with watched(build) as changes:
        folder(root, case("d"))
        until(changes, lambda: len(build.program.classes) == 2)
        shutil.rmtree(tmp_path / deleted)
        until(changes, lambda: build.program.classes == [])
        folder(root, case("j"))
        until(changes, lambda: build.program.classes == ["j/Waiter"])
        folder(root, case("e"))
        until(changes, lambda: len(build.program.classes) == 2)
    assert len(build.found) == 3


def test_a_jar_alone_is_followed_when_it_is_replaced(tmp_path: Path) -> None:
    path = jar(tmp_path / "x.jar", case("c"))
    build = Build(path)
    with watched(build) as changes:
        for slot, name in (("d", "d/Copy"), ("j", "j/Waiter")):
            jar(tmp_path / "new", case(slot)).replace(path)
            until(changes, lambda name=name: build.program.classes == [name])  # type: ignore[misc]


@contextmanager
def running(path: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    command = [sys.executable, "-m", "examples.findbugs", "--watch", str(path)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell may ignore it
    ) as process:
        assert process.stdout is not None
        timer = threading.Timer(PATIENCE * 2, process.kill)
        timer.start()
        try:
            yield process, process.stdout
        finally:
            timer.cancel()
            process.kill()


@pytest.mark.long
def test_the_program_prints_lines_where_there_is_no_terminal(tmp_path: Path) -> None:
    with running(folder(tmp_path, case("c"))) as (process, lines):
        assert lines.readline().rstrip() == f"watching {tmp_path}: 1 finding"
        assert lines.readline().rstrip() == (
            "+ c.Sheep: is Cloneable, and neither has clone() nor calls it [CN_IDIOM]"
        )
        folder(tmp_path, case("j"))
        assert following(lines, "+ ").rstrip() == (
            "+ j.Waiter.serve(): catches IllegalMonitorStateException [IMSE_DONT_CATCH_IMSE]"
        )
        assert lines.readline().startswith("j/Waiter.class: +1 -0 findings in ")
        (tmp_path / "c/Sheep.class").write_bytes(b"")
        assert following(lines, "! ").startswith(f"! {tmp_path}/c/Sheep.class: offset 0: ")
        assert lines.readline().startswith("c/Sheep.class: +0 -0 findings in ")
        folder(tmp_path, case("c"))
        assert following(lines, "= ") == f"= {tmp_path}/c/Sheep.class: can be read again\n"
        process.send_signal(signal.SIGINT)
        assert following(lines, "watched") == (
            f"watched {tmp_path}: 2 classes, 2 findings at the end\n"
        )
        assert process.wait(PATIENCE) == 1


def following(lines: IO[str], beginning: str) -> str:
    """The next line that begins like this; a file may be noticed several times."""
    return next((line for line in lines if line.startswith(beginning)), "")


def test_a_terminal_shows_counts_the_last_change_and_problems(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, case("c")))
    out = Console(force_terminal=True, width=120, height=60, record=True)
    with out.capture() as shown, screen(build.program, build.classpath, out) as changed:
        folder(tmp_path, {**case("j"), "d/Copy": b""})
        changed(build.update(tmp_path / "j/Waiter.class", tmp_path / "d/Copy.class"))
    text = shown.get()
    assert "1  IMSE_DONT_CATCH_IMSE" in text
    assert "d/Copy.class, j/Waiter.class: +1 -0 findings" in text
    assert f"! {tmp_path}/d/Copy.class: offset 0" in text
    assert "2 findings, 1 problem (Ctrl-C ends)" in text


def test_new_findings_come_first_and_a_screen_is_as_high_as_the_terminal(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, {**case("a"), **case("c"), **case("e")}))
    folder(tmp_path, case("j"))
    change = build.update(tmp_path / "j/Waiter.class")
    now = state(build.program, build.classpath, [change])
    assert [str(finding).partition(".")[0] for finding in now.findings] == ["j", "a", "c", "e", "e"]
    for height in (8, 10, 11):
        lines = [text.plain for text in drawing(now, [change], height)]
        assert len(lines) == height
        assert lines[-1].startswith("... ")


def test_news_stay_until_there_are_newer_ones(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, case("c")))
    out = Console(force_terminal=True, width=120, height=60)
    with out.capture() as shown, screen(build.program, build.classpath, out) as changed:
        folder(tmp_path, {**case("j"), **case("e")})
        changed(build.update(tmp_path / "j/Waiter.class"))
        changed(build.update(tmp_path / "e/Sweeper.class"))
        folder(tmp_path, {"d/Copy": b""})
        changed(build.update(tmp_path / "d/Copy.class"))
        for _ in range(3):
            changed(build.update(tmp_path / "c/Sheep.class"))
    last = shown.get().rpartition("Ctrl-C ends")[2]
    assert "Sheep.class" not in last
    assert f"! {tmp_path}/d/Copy.class: offset 0" in last
    assert "+0 -0" not in last
    newest, older = (last.index(f"{name}.class: +") for name in ("e/Sweeper", "j/Waiter"))
    assert newest < older
    assert last.count("+ j.Waiter.serve()") == 1


def test_a_file_that_can_be_read_again_is_told(tmp_path: Path) -> None:
    build = Build(folder(tmp_path, {**case("c"), "d/Copy": b"", "e/E": b""}))
    folder(tmp_path, case("d"))
    (tmp_path / "e/E.class").unlink()
    change = build.update(tmp_path / "d/Copy.class", tmp_path / "e/E.class")
    assert change.problems == ()
    assert change.solved == (
        f"{tmp_path}/d/Copy.class: can be read again",
        f"{tmp_path}/e/E.class: is gone",
    )
    assert build.update(tmp_path / "d/Copy.class").solved == ()


@pytest.mark.long
def test_a_build_that_pauses_between_its_files_is_one_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "QUIET", 1.0)
    monkeypatch.setattr(watching, "LONGEST", PATIENCE)
    build = Build(folder(tmp_path, case("c")))
    some = {**case("d"), **case("e"), **case("h"), **case("i"), **case("j")}
    with watched(build) as changes:
        folder(tmp_path, case("a"))
        until(changes, lambda: "a/Coercion" in build.program.classes)
        for name, data in some.items():
            folder(tmp_path, {name: data})
            sleep(0.1)
        until(changes, lambda: some.keys() <= {*build.program.classes})
        assert changes.empty()


def test_a_pause_of_a_tenth_of_a_second_does_not_end_a_build() -> None:
    assert 0.1 <= watching.QUIET < watching.LONGEST


def test_without_watchfiles_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(SystemExit) as error:
        main([str(tmp_path), "--watch"])
    assert error.value.code == 2
    assert "pip install watchfiles" in capsys.readouterr().err
