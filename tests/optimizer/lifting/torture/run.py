"""Run a context: its own files in its own folder, in its own process.

A context is a text file:

    What it is.
    run: -O main.py             the arguments of the interpreter
    needs: pytest               only where this can be imported
    === main.py                 a file; <stdin> and <code> are given to the interpreter
    judge("case", lambda s: s.y, "refused")

Every case that is written in it must be reported, whichever line of it fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[4]
CASE = re.compile(r"""(?:judge|edit)\("([^"]+)"[,)]""")


@dataclass(frozen=True, slots=True)
class Context:
    """One kind of place that defines functions."""

    name: str
    arguments: tuple[str, ...]
    needs: str | None
    files: dict[str, str]

    @property
    def cases(self) -> set[str]:
        return {name for text in self.files.values() for name in CASE.findall(text)}


def contexts() -> list[Context]:
    """All contexts, by name."""
    return [_context(path) for path in sorted((Path(__file__).parent / "contexts").iterdir())]


def _context(path: Path) -> Context:
    head, *parts = re.split(r"^=== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    options = dict(line.split(": ", 1) for line in head.splitlines()[1:])
    files = dict(part.split("\n", 1) for part in parts)
    arguments = tuple(files[word] if word == "<code>" else word for word in options["run"].split())
    return Context(path.stem, arguments, options.get("needs"), files)


def lacks(python: str, module: str | None) -> bool:
    """Return True if an interpreter cannot import the module that a context needs."""
    if module is None:
        return False
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode != 0


def objections(context: Context, python: str, folder: Path) -> Iterator[str]:
    """Yield the faults of the trees that `python` finds in this context."""
    home = folder / "home"
    for name, text in context.files.items():
        if not name.startswith("<"):
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    home.mkdir(parents=True, exist_ok=True)
    report = folder / "report"
    report.touch()
    done = subprocess.run(
        [python, *context.arguments],
        cwd=home,
        input=context.files.get("<stdin>", ""),
        env=_environment(report),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    records = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    for record in records:
        if record["verdict"] not in _allowed(record["expected"]):
            yield f"{context.name}, {record['case']}: {record['verdict']}"
    missing = context.cases - {record["case"] for record in records}
    if missing or done.returncode:
        yield f"{context.name}: not judged: {sorted(missing)}\n{done.stdout}{done.stderr}"


def _allowed(expected: str) -> tuple[str, ...]:
    return ("found", "refused") if expected == "either" else (expected,)


def _environment(report: Path) -> dict[str, str]:
    """Return the environment of this process without variables for Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": "",
        "PYTHONWARNINGS": "ignore",
        "PYTHONUTF8": "1",
        "TORTURE_REPORT": str(report),
    }
