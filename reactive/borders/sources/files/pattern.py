"""A pattern of paths: which files match it now, and what tells that one has changed.

A stamp is what the file system says of a file: size, times of its change, number. If two are equal,
so is the content, unless the file was changed twice within one tick of the clock of its system.

State:  none.
Cost:   O(files that match, and folders that are looked through).
"""

from __future__ import annotations

import glob
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from optimizer.errors import PlanError

Stamp: TypeAlias = tuple[int, int, int, int]
"""Size in bytes, nanoseconds of the change of the content and of the file, number of the file."""
UNSURE: Stamp = (-1, 0, 0, 0)
"""Equal to none."""
TICK, LONG_TICK = 50_000_000, 2_000_000_000
"""Nanoseconds within which two changes may have one time; where times are whole seconds."""


class Pattern:
    """Files by a pattern of their paths, as `glob` has it: `*`, `?`, `[...]`, `**`.

    What is there by the very name of a part, as a folder `x[1]`, is meant by it. A path that is
    relative is one of the folder that the process is in when this is made; `~` is that of the user.
    """

    def __init__(self, text: str | os.PathLike[str]) -> None:
        self.text = os.fspath(text) if isinstance(text, str | os.PathLike) else ""
        if not isinstance(self.text, str) or not self.text:
            raise PlanError(f"{text!r} is no pattern of paths\n  give one such as 'folder/*.jsonl'")
        self._path = Path(self.text).expanduser().absolute()
        if self._path.is_dir():
            some = str(Path(self.text) / "*.jsonl")
            raise PlanError(
                f"{self.text!r} is a folder\n"
                f"  say which of its files: {some!r}; those at any depth with '**'"
            )

    def __str__(self) -> str:
        return self.text

    @property
    def base(self) -> Path:
        """The folder in which all files are that may match."""
        return self._split()[0]

    @property
    def is_deep(self) -> bool:
        """Whether files in folders of the base may match."""
        return len(self._split()[1]) > 1

    def files(self) -> dict[str, Stamp]:
        """The files that match, with slashes in their paths, in order.

        Raises
        ------
        OSError: their folder cannot be read.
        """
        base, parts = self._split()
        try:
            os.scandir(base).close()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        found = {}
        for path in sorted({*_matching(str(base), parts)}):
            stamp = stamp_of(path)
            if stamp is not None:
                found[Path(path).as_posix()] = stamp
        return found

    def _split(self) -> tuple[Path, tuple[str, ...]]:
        """The base, and the patterns of what is below it."""
        *parents, name = self._path.parts
        base = Path(self._path.anchor)
        for place, part in enumerate(parents):
            if glob.has_magic(part) and not os.path.lexists(base / part):
                return base, (*parents[place:], name)
            base /= part
        return base, (glob.escape(name) if os.path.lexists(base / name) else name,)


def _matching(folder: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Paths below a folder by patterns of their parts, of which `**` is any number of folders."""
    place = parts.index("**") if "**" in parts else len(parts)
    first, rest = parts[:place], parts[place + 1 :]
    found = glob.glob(os.path.join(*first), root_dir=folder) if first else [""]  # noqa: PTH118, PTH207
    paths = [os.path.join(folder, each) for each in found]  # noqa: PTH118
    if place == len(parts):
        yield from paths
        return
    for path in paths:
        for below in _folders(path, frozenset()):
            yield from _matching(below, rest or ("*",))


def _folders(folder: str, above: frozenset[tuple[int, int]]) -> Iterator[str]:
    """A folder and those below it, also by links; none within itself, and none that is hidden."""
    try:
        here = os.stat(folder)  # noqa: PTH116
        identity = (here.st_dev, here.st_ino)
        if identity in above:
            return
        with os.scandir(folder) as entries:
            inside = [e.path for e in entries if not e.name.startswith(".") and e.is_dir()]
    except OSError:
        return
    yield folder
    for each in inside:
        yield from _folders(each, above | {identity})


def stamp_of(path: str) -> Stamp | None:
    """The stamp of a file; None if there is none, or it is a folder."""
    try:
        return stamp(os.stat(path))  # noqa: PTH116  # as `pathlib`, at once
    except OSError:
        return None


def stamp(found: os.stat_result) -> Stamp | None:
    """The stamp of what is a file."""
    if not stat.S_ISREG(found.st_mode):
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def unsure(of: Stamp) -> Stamp:
    """A stamp that equals none, of the same file."""
    return (*UNSURE[:3], of[3])


def is_sure(of: Stamp, now: int | None = None) -> bool:
    """Whether a later change cannot have the times of this stamp."""
    latest = max(of[1], of[2])
    tick = LONG_TICK if of[1] % 1_000_000_000 == 0 else TICK
    return not -tick < (time.time_ns() if now is None else now) - latest < tick


def folder_pattern(given: str | os.PathLike[str], like: Pattern) -> Pattern:
    """The files of a folder that have the names of a pattern; or a pattern of its own."""
    text = os.fspath(given)
    is_folder = Path(text).is_dir() or not (glob.has_magic(text) or Path(text).suffix)
    return Pattern(Path(text) / Path(like.text).name if is_folder else text)


def without(files: dict[str, Stamp], others: Iterable[Any]) -> dict[str, Stamp]:
    """Files that are not among others."""
    left_out = {*others}
    return {path: of for path, of in files.items() if path not in left_out} if left_out else files
