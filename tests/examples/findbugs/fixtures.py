"""Programs of class files in memory, with their findings, live and from scratch."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from examples.findbugs.analyses import ANALYSES
from examples.findbugs.classfile import read
from examples.findbugs.facts import Facts
from examples.findbugs.faults.case import Findings, Key
from examples.findbugs.plain import PLAIN
from examples.findbugs.program import Program

Found: TypeAlias = dict[str, list[Key]]
"""The keys of all findings, sorted and with their copies, by letter."""

COMPILER = 17
"""The version of Java whose compiler made the classes; others write other facts."""

KEYS: dict[str, Callable[[Any], Key]] = {
    **dict.fromkeys("AEFGN", lambda call: (call.cls, call.method, call.name)),
    **dict.fromkeys("BKL", lambda field: (field.cls, field.name)),
    **dict.fromkeys("DHI", lambda method: (method.cls, method.method)),
    **dict.fromkeys("JM", tuple),
    "C": lambda name: (name,),
    "O": lambda pair: (pair[0].cls, pair[0].method, pair[1].method),
}
"""Identity of a finding, by letter; pcs and access flags do not count."""


def change(program: Program, classes: Mapping[str, bytes | None]) -> None:
    """Write and delete class files, in one transaction."""
    program.put({name: facts_of(name, data) for name, data in classes.items()})


def become(program: Program, classes: Mapping[str, bytes]) -> None:
    """Replace all class files of the program by these."""
    change(program, {**dict.fromkeys(program.classes), **classes})


def facts_of(name: str, data: bytes | None) -> Facts:
    """The facts of a class file; of none, none."""
    return {} if data is None else read(data, f"{name}.class")


def live(program: Program) -> Found:
    """Return the keys of the views' rows."""
    return {
        letter: sorted(key for row, weight in view.items() for key in [KEYS[letter](row)] * weight)
        for letter, view in program.views.items()
    }


def plain(program: Program) -> Found:
    """Return the keys of all findings, computed from scratch."""
    facts = program.all_facts()
    return {letter: sorted(map(KEYS[letter], find(facts))) for letter, find in PLAIN.items()}


def listed(findings: Findings) -> Found:
    """Return expected findings in the form of a program."""
    return {letter: sorted(findings.get(letter, ())) for letter in ANALYSES}


def javac() -> str:
    """The compiler of a JDK of Java 17, or skip the test."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("javac") or (home and shutil.which("javac", path=Path(home) / "bin"))
    if not path:
        pytest.skip("needs a JDK: there is no javac on the PATH or in JAVA_HOME")
    version = subprocess.run([path, "-version"], capture_output=True, text=True, check=True)
    words = (version.stdout or version.stderr).split()
    if words[1].partition(".")[0] != str(COMPILER):
        pytest.skip(f"needs the javac of Java {COMPILER}, not {words[1]}")
    return path
