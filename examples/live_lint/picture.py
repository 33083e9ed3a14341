"""The picture of the README: `.venv/bin/python -m examples.live_lint.picture docs/live_lint.svg`.

It runs the demo in a process of its own, as on a terminal of this width, and draws what it
prints.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

WIDTH = 96
TERMINAL = {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
DEMO = ("--limit", "1")
"""One finding of each check is enough to look at."""


def printed(options: Sequence[str] = DEMO) -> str:
    """Return the output of the demo, with the colours of a terminal.

    Raises
    ------
    CalledProcessError: the demo failed.
    """
    command = [sys.executable, "-m", "examples.live_lint", *options]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, env={**os.environ, **TERMINAL}, text=True, check=True
    )
    return done.stdout


def drawn(text: str, title: str) -> str:
    """Return a text with colours as an SVG picture of a terminal."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text.rstrip()))
    return console.export_svg(title=title, theme=DIMMED_MONOKAI)


def main(file: str) -> None:
    """Draw the demo into a file."""
    Path(file).write_text(drawn(printed(), "make demo"), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
