"""Recorded histories: the facts of a program's first revision, and how each later one changes them.

A history is a file of JSON arrays, one a line, compressed by xz or not:

    ["revision", number, files, removed, added]          begins a revision; a name may follow
    ["-", relation, ...columns]                           a fact that is gone
    ["+", relation, ...columns]                           a fact that is new

`columns.py` has the relations, and what the columns of each are.
"""

from __future__ import annotations

import json
import lzma
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.findbugs.columns import fact_of
from examples.findbugs.difference import Difference
from examples.findbugs.facts import Fact

REVISION, REMOVED, ADDED = "revision", "-", "+"
"""The beginnings of lines."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The difference of a program from its previous revision; that of the first from no program."""

    name: str
    files: int
    """The number of changed class files."""
    difference: Difference
    reading: float = 0.0
    """Seconds to read the class files; 0 where facts are recorded."""
    comparing: float = 0.0
    """Seconds to compare their facts with the earlier ones; 0 where facts are recorded."""

    @property
    def back(self) -> Difference:
        """Return the difference that undoes it."""
        return Difference(self.difference.added, self.difference.removed)


class HistoryError(ValueError):
    """A file is no recorded history, or one that contradicts itself."""


def revisions(path: Path) -> Iterator[Revision]:
    """Yield the revisions of a recorded history, one after another.

    Raises
    ------
    HistoryError: names the file and the line.
    OSError: the file cannot be read.
    """
    revision: Revision | None = None
    shared = _Shared()
    for number, line in _lines(path):
        try:
            sign, *columns = json.loads(line, object_hook=_refused)
            if sign == REVISION:
                following = _begun(columns)
            else:
                _note(shared.fact(columns), _part(revision, sign))
                continue
        except (ValueError, TypeError, RecursionError) as error:
            shown = line.rstrip()[:80]
            raise HistoryError(f"{path}:{number}: no line of a history: {shown}") from error
        if revision is not None:
            yield revision
        revision = following
    if revision is not None:
        yield revision


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    opened = lzma.open if path.suffix == ".xz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            yield from enumerate(lines, 1)
    except UnicodeDecodeError as error:
        raise HistoryError(f"{path}: no history: it is no text") from error
    except (EOFError, lzma.LZMAError) as error:
        raise HistoryError(f"{path}: no history: {error}") from error


def _refused(value: dict[str, Any]) -> Any:
    raise ValueError(f"an object, {value}")


def _begun(columns: list[Any]) -> Revision:
    number, files, _, _, *name = columns
    if type(files) is not int:
        raise TypeError(f"no number of files: {files!r}")
    return Revision(str(name[0] if name else number), files, Difference())


def _part(revision: Revision | None, sign: str) -> dict[type[Fact], list[Any]]:
    """Return the deleted facts of a revision, or the new ones."""
    if revision is None or sign not in (REMOVED, ADDED):
        raise ValueError("neither a revision nor a fact of one")
    return revision.difference.removed if sign == REMOVED else revision.difference.added


def _note(fact: Fact, part: dict[type[Fact], list[Any]]) -> None:
    part.setdefault(type(fact), []).append(fact)


class _Shared:
    """Make facts that share equal strings and tuples."""

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    def fact(self, columns: list[Any]) -> Fact:
        """Return the fact that a line states."""
        return fact_of(*map(self._one, columns))

    def _one(self, value: Any) -> Any:
        if type(value) is list:
            value = tuple(map(self._one, value))
        elif value != value:
            return math.nan
        if type(value) is str:
            return sys.intern(value)
        return self._values.setdefault(value, value) if type(value) is tuple else value
