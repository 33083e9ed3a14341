"""Compile all cases into `classes.tar.xz`: `.venv/bin/python -m examples.findbugs.faults.build`.

Slots have packages of their own, so the first cases of all slots are compiled together, then the
second ones, and so on. The archive has the classes of a case under `SLOT/NAME/`, and is the same
bytes whenever the classes are.
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from itertools import groupby, zip_longest
from pathlib import Path

from examples.findbugs.faults.case import ARCHIVE, DIGEST, SUFFIX
from examples.findbugs.faults.patches import class_name, patched
from examples.findbugs.faults.texts import DROP, Text, digest, texts

OPTIONS = ("--release", "8", "-g:none", "-nowarn", "-Xlint:none", "-proc:none")
PUBLIC = re.compile(r"^public (?:\w+ )*?(?:class|interface) (\w+)", re.MULTILINE)


class BuildError(RuntimeError):
    """The compiler is missing, or refuses a case."""


def main() -> None:
    """Write the archive."""
    cases = texts()
    compiled = compile_all(cases)
    pack(compiled, digest(cases), ARCHIVE)
    classes = sum(map(len, compiled.values()))
    print(f"{len(compiled)} cases, {classes} classes, {ARCHIVE.stat().st_size:,} bytes")


def compile_all(cases: Iterable[Text], javac: str = "javac") -> dict[Text, dict[str, bytes]]:
    """Return the classes of each case by their names, patched."""
    slots = [tuple(of) for _, of in groupby(cases, key=lambda text: text.slot)]
    rounds = [[text for text in together if text] for together in zip_longest(*slots)]
    compiled = {text: classes for texts in rounds for text, classes in _round(texts, javac)}
    return {text: compiled[text] for slot in slots for text in slot}


def pack(compiled: Mapping[Text, Mapping[str, bytes]], made_from: str, archive: Path) -> None:
    """Write classes into an archive, with the digest of their sources."""
    with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        _add(tar, DIGEST, made_from.encode())
        for text, classes in compiled.items():
            for name, data in sorted(classes.items()):
                _add(tar, f"{text.slot}/{text.name}/{name}{SUFFIX}", data)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def _round(cases: list[Text], javac: str) -> list[tuple[Text, dict[str, bytes]]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [path for text in cases for path in _written(text, folder)]
        _run(javac, sources, folder)
        return [(text, _classes(text, folder)) for text in cases]


def _written(text: Text, folder: Path) -> list[Path]:
    _, *sources = re.split(r"^(?=package )", text.source, flags=re.MULTILINE)
    return [_file(source, _folder(text, folder) / str(n)) for n, source in enumerate(sources)]


def _folder(text: Text, folder: Path) -> Path:
    """Return a place of its own, which also names the case in errors of the compiler."""
    return folder / text.slot / text.name


def _file(source: str, folder: Path) -> Path:
    public = PUBLIC.search(source)
    folder.mkdir(parents=True)
    path = folder / f"{public[1] if public else 'Source'}.java"
    path.write_text(source, encoding="utf-8")
    return path


def _run(javac: str, sources: list[Path], folder: Path) -> None:
    """Compile; the classes come beside their sources."""
    command = [javac, *OPTIONS, *map(str, sources)]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise BuildError(f"there is no {javac} on the PATH: a JDK is needed, of Java 17") from None
    except subprocess.CalledProcessError as error:
        raise BuildError(f"{javac} refuses a case:\n{error.stderr}") from None


def _classes(text: Text, folder: Path) -> dict[str, bytes]:
    compiled = [path.read_bytes() for path in _folder(text, folder).rglob("*.class")]
    dropped = {name for (name,) in text.arguments(DROP)}
    kept = (_patched(text, data) for data in compiled if class_name(data) not in dropped)
    return {class_name(data): data for data in kept}


def _patched(text: Text, data: bytes) -> bytes:
    for patch in text.built_with():
        if patch.name != DROP:
            data = patched(data, patch.name, patch.words)
    return data


if __name__ == "__main__":
    main()
