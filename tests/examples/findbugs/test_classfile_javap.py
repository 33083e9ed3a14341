"""The reader of class files against javap, on classes of the JDK itself."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from examples.findbugs import facts as f
from examples.findbugs.classfile import read
from tests.budget import cases
from tests.examples.findbugs import javap

SAMPLE = 1000
BATCH = 100


def home() -> Path | None:
    """The folder of a JDK that has javap and its own classes as files."""
    found = shutil.which("javap")
    candidates = [Path(found).resolve().parent.parent] if found else []
    if "JAVA_HOME" in os.environ:
        candidates.insert(0, Path(os.environ["JAVA_HOME"]))
    for candidate in candidates:
        if (candidate / "bin" / "javap").exists() and (candidate / "jmods").is_dir():
            return candidate
    return None


JDK = home()
needs_jdk = pytest.mark.skipif(
    JDK is None, reason="no JDK with javap and jmods on PATH or in JAVA_HOME"
)


@pytest.mark.long
@needs_jdk
@pytest.mark.parametrize("part", cases(*range(SAMPLE // BATCH)))
def test_the_facts_of_a_class_are_what_javap_shows(part: int, tmp_path: Path) -> None:
    assert JDK is not None
    classes = dict(sampled(JDK / "jmods" / "java.base.jmod", part))
    files = []
    for number, data in enumerate(classes.values()):
        files.append(tmp_path / f"{number}.class")
        files[-1].write_bytes(data)
    shown = javap.parse(javap.run(str(JDK / "bin" / "javap"), files))
    for (name, data), expected in zip(classes.items(), shown, strict=True):
        assert comparable(read_all(data, name)) == comparable(expected), name


def sampled(jmod: Path, part: int) -> Iterator[tuple[str, bytes]]:
    """One of the parts of a sample that is spread over all classes."""
    with ZipFile(jmod) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".class"))
        for number in range(part, SAMPLE, SAMPLE // BATCH):
            name = names[number * len(names) // SAMPLE]
            yield name, archive.read(name)


def read_all(data: bytes, name: str) -> list[f.Fact]:
    return [row for rows in read(data, name).values() for row in rows]


def comparable(rows: list[f.Fact]) -> Counter[tuple[type[f.Fact], f.Fact]]:
    """Count the copies of each fact; facts of two kinds may have equal columns."""
    return Counter((type(row), javap.comparable(row)) for row in rows)
