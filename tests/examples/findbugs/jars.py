"""Jars of class files that are made for a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from zipfile import ZipFile


def jar(path: Path, classes: Mapping[str, bytes | None]) -> Path:
    """Write a jar of class files by the names of their classes."""
    with ZipFile(path, "w") as opened:
        opened.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        for name, data in classes.items():
            if data is not None:
                opened.writestr(f"{name}.class", data)
    return path


def jars_of(folder: Path, changes: Iterable[Mapping[str, bytes | None]]) -> list[Path]:
    """Write a jar after each change of class files; classes that become None are left out."""
    classes: dict[str, bytes | None] = {}
    jars = []
    for number, change in enumerate(changes):
        classes.update(change)
        jars.append(jar(folder / f"r{number}.jar", classes))
    return jars
