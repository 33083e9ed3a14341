"""A file system that fails before, during or after its n-th call.

Histories run with a crash at each of their steps.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyarrow import fs

from tests.budget import seeds, stride


class Crash(BaseException):
    """The process ends here."""


def crash_at_every_step(
    run: Callable[[Path, int, int], bool], folder: Path, *, histories: int
) -> None:
    """Run histories with a crash at their first step, their second step, until no crash occurs.

    Parameters
    ----------
    run: runs the history of a seed in a folder; returns True if it crashed at the step.
    """
    for seed in seeds(histories):
        at, crashed = 0, True
        while crashed:
            crashed = run(folder / f"{seed}-{at}", seed, at)
            at += stride(1)
        assert at > 8


class ObjectStore:
    """A file system that has no folders to move, as object stores have none."""

    type_name = "s3"

    def __init__(self, files: Any) -> None:
        self._files = files

    def move(self, source: str, target: str) -> None:
        if self._files.get_file_info(source).type != fs.FileType.File:
            raise OSError(f"{source} is no file")
        self._files.move(source, target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


class Crashing:
    """Pass calls on files through, until it is time to crash.

    Parameters
    ----------
    at: the step at which it crashes, counted from 0; each call is two steps.
    """

    def __init__(self, files: Any, at: int | None) -> None:
        self._files = files
        self._at = at
        self.steps = 0

    def step(self) -> None:
        """One step more."""
        if self.steps == self._at:
            raise Crash
        self.steps += 1

    def _done(self, name: str, *given: Any, **named: Any) -> Any:
        self.step()
        found = getattr(self._files, name)(*given, **named)
        if name == "open_output_stream" and self.steps == self._at:
            found.write(b"half of")
            found.close()
        self.step()
        return found

    def move(self, *given: Any) -> Any:
        return self._done("move", *given)

    def create_dir(self, *given: Any, **named: Any) -> Any:
        return self._done("create_dir", *given, **named)

    def delete_dir(self, *given: Any) -> Any:
        return self._done("delete_dir", *given)

    def delete_file(self, *given: Any) -> Any:
        return self._done("delete_file", *given)

    def open_output_stream(self, *given: Any, **named: Any) -> Any:
        return self._done("open_output_stream", *given, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)
