"""Write a history of faults as a recorded one, of facts instead of class files."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from examples.findbugs.classfile import read
from examples.findbugs.columns import columns_of
from examples.findbugs.faults.revisions import FaultRevision
from examples.findbugs.recorded import ADDED, REMOVED, REVISION


def record(history: Iterable[FaultRevision], path: Path) -> None:
    """Write a history to a file, compressed by xz."""
    with lzma.open(path, "wt", encoding="utf-8", preset=9) as file:
        file.writelines(f"{line}\n" for line in lines(history))


def lines(history: Iterable[FaultRevision]) -> Iterator[str]:
    """Yield the lines of a recorded history."""
    present: dict[str, list[str]] = {}
    for revision in history:
        old = {name: present.pop(name, []) for name in revision.classes}
        new = {name: _stated(name, data) for name, data in revision.classes.items()}
        removed = [fact for name in new for fact in _without(old[name], new[name])]
        added = [fact for name in new for fact in _without(new[name], old[name])]
        present |= new
        yield _text(REVISION, revision.number, len(new), len(removed), len(added))
        yield from (_signed(REMOVED, fact) for fact in removed)
        yield from (_signed(ADDED, fact) for fact in added)


def _stated(name: str, data: bytes | None) -> list[str]:
    """Return the facts of a class file: their columns as text, which tells 0.0 from -0.0."""
    every = {} if data is None else read(data, f"{name}.class")
    return [_text(*columns_of(fact)) for rows in every.values() for fact in rows]


def _without(these: list[str], those: list[str]) -> list[str]:
    known = frozenset(those)
    return [fact for fact in these if fact not in known]


def _signed(sign: str, fact: str) -> str:
    return f'["{sign}",{fact[1:]}'


def _text(*columns: Any) -> str:
    return json.dumps(columns, separators=(",", ":"))
