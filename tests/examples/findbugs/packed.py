"""Class files of the cases, in folders and in jars."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from examples.findbugs.faults import cases, fixture


def case(slot: str, name: str = "") -> dict[str, bytes]:
    """The classes of a case by their names; by default the first of its slot."""
    return next(dict(one.classes) for one in cases() if one.slot == slot and name in ("", one.name))


def whole_fixture() -> dict[str, bytes]:
    """Return the sixteen classes in which all analyses find something."""
    return {name: data for one in fixture() for name, data in one.classes.items()}


def folder(path: Path, classes: Mapping[str, bytes]) -> Path:
    """Write classes into a folder, each atomically, so that no reader sees a part of one."""
    for name, data in classes.items():
        file = path / f"{name}.class"
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_bytes(data)
        new.replace(file)
    return path


def jar(path: Path, classes: Mapping[str, bytes], *, beginning: bytes = b"") -> Path:
    """Write classes into an archive, each by the path of its file without `.class`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(beginning)
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
            for name, data in classes.items():
                archive.writestr(f"{name}.class", data)
    return path
