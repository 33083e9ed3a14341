"""Read the cases as they are written in `patterns/*.txt`: Java source, findings, changes.

A file of cases belongs to one slot, which is also the package of its classes. A case has a name,
directives, and Java source after an empty line; a source in several packages is several files.

    == NAME
    finds A CLASS METHOD ...    a finding of analysis A, as the columns of its key
    edit OLD => NEW             a change of the first source, at the one place where OLD is
    also                        its own source follows the first source
    drop CLASS                  there only to compile the others against
    major 48                    changes of the compiled classes: see patches.py
    rename OLD NEW
    flags CLASS.MEMBER 0x40
    orphan CLASS

A case without source has that of the first case, so an edit says what the difference is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

FOLDER = Path(__file__).parent / "patterns"
HEADING = "== "
FINDS, EDIT, ALSO, DROP = "finds", "edit", "also", "drop"
BUILDING = (DROP, "major", "rename", "flags", "orphan")


class TextError(ValueError):
    """A case is not written as it should be."""


@dataclass(frozen=True, slots=True)
class Directive:
    """A line before the source of a case."""

    name: str
    argument: str

    @property
    def words(self) -> tuple[str, ...]:
        """The argument, word by word."""
        return tuple(self.argument.split())


@dataclass(frozen=True, slots=True)
class Text:
    """A case as it is written, with its whole source."""

    slot: str
    name: str
    directives: tuple[Directive, ...]
    source: str

    def expected(self) -> dict[str, frozenset[tuple[str, ...]]]:
        """Return the findings by the letter of their analysis; letters without any are absent."""
        rows = sorted(self.arguments(FINDS))
        letters = groupby(rows, key=lambda row: row[0])
        return {letter: frozenset(row[1:] for row in of) for letter, of in letters}

    def arguments(self, name: str) -> tuple[tuple[str, ...], ...]:
        """Return the words of each directive of that name."""
        return tuple(directive.words for directive in self.directives if directive.name == name)

    def built_with(self) -> tuple[Directive, ...]:
        """Return the directives that change the compiled classes."""
        return tuple(directive for directive in self.directives if directive.name in BUILDING)


def texts(folder: Path = FOLDER) -> tuple[Text, ...]:
    """All cases, in order of slots and as they are written."""
    return tuple(text for path in sorted(folder.glob("*.txt")) for text in texts_of(path))


def digest(cases: Iterable[Text]) -> str:
    """Differs when classes may have to be compiled again."""
    sources = [(text.slot, text.name, text.source, *text.built_with()) for text in cases]
    return hashlib.sha256(repr(sources).encode()).hexdigest()


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the cases of one file."""
    _, *cases = re.split(f"^{HEADING}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    first = ""
    for case in cases:
        head, _, source = case.partition("\n\n")
        name, *lines = head.rstrip().splitlines()
        directives = tuple(_directive(path, name, line) for line in lines)
        whole = _source(path, name, directives, source.strip("\n"), first)
        first = first or whole
        yield Text(path.stem, name, directives, whole)


def _directive(path: Path, case: str, line: str) -> Directive:
    name, _, argument = line.partition(" ")
    if name not in (FINDS, EDIT, ALSO, *BUILDING):
        raise TextError(f"{path.name}: case {case!r}: no directive {name!r}")
    return Directive(name, argument)


def _source(path: Path, case: str, directives: tuple[Directive, ...], own: str, first: str) -> str:
    also = any(directive.name == ALSO for directive in directives)
    source = own if own and not also else first
    for directive in directives:
        if directive.name == EDIT:
            old, _, new = directive.argument.partition(" =>")
            if source.count(old) != 1:
                place = f"{path.name}: case {case!r}: edit"
                raise TextError(f"{place}: {old!r} is there {source.count(old)} times, not once")
            source = source.replace(old, new.removeprefix(" "))
    return f"{source}\n\n{own}" if also else source
