"""Watching: saving a file changes the screen."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from rich.console import Console

from examples.live_lint.__main__ import main
from examples.live_lint.analyse import Analysis, analyse
from examples.live_lint.finding import Finding
from examples.live_lint.folder import Folder, folder_at
from examples.live_lint.screen import drawing, screen
from examples.live_lint.watch import update, watch
from examples.watching import Change, MissingExtra

ROOT = Path(__file__).parents[3]
PATIENCE = 10.0


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "a.py").write_text("from b import f\nf(1)\n")
    (tmp_path / "b.py").write_text("def f(x): return x\n")
    return folder_at(tmp_path)


def analysed(folder: Folder) -> Analysis:
    return analyse(folder, folder.sources())


def test_an_update_tells_what_came_and_went(folder: Folder) -> None:
    project = analysed(folder).project
    (folder.path / "b.py").write_text("def f(x, y): return x + y\n")
    change = update(project, folder, ["b.py"])
    assert [str(f) for f in change.added] == [
        "a.py:2: b.f takes 2 arguments, not 1 [wrong-arguments]"
    ]
    (folder.path / "b.py").unlink()
    change = update(project, folder, ["b.py"])
    assert [f.check for f in change.removed] == ["wrong-arguments"]
    assert [f.check for f in change.added] == ["missing-module"]


def test_a_finding_that_moves_with_its_line_is_no_news(folder: Folder) -> None:
    (folder.path / "a.py").write_text("import os\n")
    project = analysed(folder).project
    (folder.path / "a.py").write_text("\n\nimport os\n")
    change = update(project, folder, ["a.py"])
    assert (change.added, change.removed) == ((), ())
    assert [f.line for f in project.findings()] == [3]


def test_watch_follows_files_until_it_is_stopped(folder: Folder) -> None:
    project, stop = analysed(folder).project, threading.Event()
    changes: queue.Queue[Change[Finding]] = queue.Queue()
    thread = threading.Thread(target=watch, args=(project, folder, changes.put, stop))
    thread.start()
    try:
        change = first_change(changes, folder.path / "a.py", "import nowhere\n")
        assert change.files == ("a.py",)
        assert {f.check for f in change.added} == {"unused-import", "missing-module"}
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_folder_that_is_renamed_takes_its_files_along(folder: Folder) -> None:
    inner = folder.path / "inner"
    inner.mkdir()
    (inner / "c.py").write_text("import os\n")
    project, stop = analysed(folder).project, threading.Event()
    changes: queue.Queue[Change[Finding]] = queue.Queue()
    thread = threading.Thread(target=watch, args=(project, folder, changes.put, stop))
    thread.start()
    try:
        first_change(changes, folder.path / "a.py", "import nowhere\n")
        inner.rename(folder.path / "other")
        while project.files != ["a.py", "b.py", "other/c.py"]:
            changes.get(timeout=PATIENCE)
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert [f.file for f in project.findings() if f.check == "unused-import"] == [
        "a.py",
        "other/c.py",
    ]


def first_change(changes: queue.Queue[Change[Finding]], path: Path, text: str) -> Change[Finding]:
    """Save a file, again until it is noticed: the watcher may not have been ready."""
    for _ in range(20):
        path.write_text(text)
        try:
            return changes.get(timeout=PATIENCE / 20)
        except queue.Empty:
            continue
    raise AssertionError("no change was noticed")


@contextmanager
def running(folder: Folder) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    command = [sys.executable, "-m", "examples.live_lint", str(folder.path), "--watch"]
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
def test_the_program_prints_lines_where_there_is_no_terminal(folder: Folder) -> None:
    with running(folder) as (process, lines):
        assert lines.readline().rstrip() == f"watching {folder.path}: 0 findings"
        saved = threading.Event()
        saving = threading.Thread(target=save_until, args=(saved, folder.path / "b.py"))
        saving.start()
        line = lines.readline().rstrip()
        saved.set()
        saving.join()
        assert line == "+ a.py:2: b.f takes 2 arguments, not 1 [wrong-arguments]"
        assert lines.readline().startswith("b.py: +1 -0 findings in ")
        process.send_signal(signal.SIGINT)
        assert lines.readline() == f"watched {folder.path}: 2 files, 1 finding at the end\n"
        assert process.wait(PATIENCE) == 1


def save_until(done: threading.Event, path: Path) -> None:
    """Save a file, again and again until the watcher has noticed."""
    while not done.wait(0.5):
        path.write_text("def f(x, y): return x + y\n")
        os.utime(path)


def test_a_terminal_shows_tables_and_the_last_change(folder: Folder) -> None:
    project = analysed(folder).project
    out = Console(force_terminal=True, width=100, height=60, record=True)
    with out.capture() as shown, screen(project, folder, out) as changed:
        (folder.path / "a.py").write_text("import os\n")
        changed(update(project, folder, ["a.py"]))
    assert "a.py: +1 -0 findings" in shown.get()
    assert "os is imported, not used" in shown.get()


ALL = """
import json
def f(x=[]): pass
def f(y): g()
def _h(): pass
def test(): pass
def test(): pass
try: f()
except: pass
import nowhere
__all__ = ['k']
"""


@pytest.mark.long
@pytest.mark.parametrize("height", [9, 12, 24, 60])
def test_a_screen_is_as_high_as_the_terminal_and_says_what_it_leaves_out(
    folder: Folder, height: int
) -> None:
    for number in range(5):
        (folder.path / f"c{number}.py").write_text(ALL)
    project = analysed(folder).project
    (folder.path / "c3.py").write_text("")
    change = update(project, folder, ["c3.py"])
    lines = [text.plain for text in drawing(project, folder, [change], height)]
    assert len(lines) == height or height == 60
    checks = {finding.check for finding in project.findings()}
    hidden = [int(text.split()[1]) for text in lines if text.startswith("...")]
    whole = 2 + len(checks) + len(change.removed) + len(project.findings())
    assert sum(hidden) + len(lines) - len(hidden) == whole
    if height >= 24:
        counts = [text.split()[-1] for text in lines[1 : 1 + len(checks)]]
        assert set(counts) == checks
        assert f"c3.py: +0 -{len(change.removed)} findings" in lines[1 + len(checks)]


def test_a_screen_shows_the_changed_files_first(folder: Folder) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (folder.path / name).write_text("import os\n")
    project = analysed(folder).project
    change = update(project, folder, ["b.py"])
    lines = [text.plain for text in drawing(project, folder, [change], 60)]
    assert [text.partition(":")[0] for text in lines[-3:]] == ["b.py", "a.py", "c.py"]


def test_without_watchfiles_it_says_what_to_install(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(MissingExtra, match="pip install watchfiles"):
        watch(analysed(folder).project, folder, print)
    with pytest.raises(SystemExit) as error:
        main([str(folder.path), "--watch"])
    assert error.value.code == 2
    assert "--watch needs the package watchfiles" in capsys.readouterr().err
