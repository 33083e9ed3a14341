"""The cases: small sets of Java classes, with what the analyses find in them and nothing else.

The cases of a slot are of one analysis, mostly, and have classes of the same names, so that one
takes the place of another: of a fault, of the same without a single condition that makes it one.
What is found in a case is stated by hand in its text, and does not depend on other slots.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from examples.findbugs.faults.texts import texts

ARCHIVE = Path(__file__).parent / "classes.tar.xz"
SUFFIX = ".class"
DIGEST = "digest"
"""In the archive, of the texts that its classes are compiled from."""

LETTERS = "ABCDEFGHIJKLMNO"

Key: TypeAlias = tuple[str, ...]
Findings: TypeAlias = Mapping[str, frozenset[Key]]
"""The keys of findings, by the letter of the analysis; letters without any are absent."""


@dataclass(frozen=True, slots=True)
class Case:
    """Some classes, and the findings in them."""

    slot: str
    name: str
    classes: Mapping[str, bytes]
    """The class files by the names of their classes."""
    expected: Findings

    @property
    def is_fault(self) -> bool:
        """Something is found."""
        return bool(self.expected)


@cache
def cases() -> tuple[Case, ...]:
    """All cases, in order of slots; the first of each is what its analysis is for.

    Raises
    ------
    LookupError: a case was not compiled.
    """
    compiled = _compiled()
    written = texts()
    for text in written:
        if (text.slot, text.name) not in compiled:
            place = f"case {text.name!r} of {text.slot}.txt"
            raise LookupError(
                f"{place} is not in {ARCHIVE.name}: run faults.build, as README.md says"
            )
    return tuple(
        Case(text.slot, text.name, compiled[text.slot, text.name], text.expected())
        for text in written
    )


def fixture() -> tuple[Case, ...]:
    """Return the first case of each letter: 16 classes with one finding per letter, two for E."""
    slots = groupby(cases(), key=lambda case: case.slot)
    return tuple(next(of) for slot, of in slots if slot.upper() in LETTERS)


def compiled_from() -> str:
    """Return the digest of the texts that the classes were compiled from."""
    return _archived()[DIGEST].decode()


def _compiled() -> dict[tuple[str, str], dict[str, bytes]]:
    compiled: dict[tuple[str, str], dict[str, bytes]] = {}
    for place, data in _archived().items():
        if place.endswith(SUFFIX):
            slot, case, name = place.removesuffix(SUFFIX).split("/", maxsplit=2)
            compiled.setdefault((slot, case), {})[name] = data
    return compiled


def _archived() -> dict[str, bytes]:
    with tarfile.open(ARCHIVE) as tar:
        files = {member.name: tar.extractfile(member) for member in tar}
        return {name: file.read() for name, file in files.items() if file is not None}
