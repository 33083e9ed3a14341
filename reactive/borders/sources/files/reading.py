"""What is new of a file, as against what was taken of it.

    begins as it did      rows of what comes after that
    is the same           nothing
    is another            all rows

A fingerprint tells these apart: the stamp of the file, and a hash of the bytes that were taken. Of
a file that is said to be appended to only, the hash is of the end of these, so that nothing else of
it is read again.

State:  none; of each file its fingerprint is kept by who asks.
Cost:   O(what is new), beside the reading of what was taken before.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Literal, TypeAlias

from reactive.borders.sources.files.pattern import UNSURE, Stamp, is_sure, stamp, unsure
from reactive.borders.sources.files.taken import Format, Limits, Place, Taken, Unfinished
from reactive.engine.runtime.collector import paused

PIECE = 1 << 20
"""Bytes that are read at a time."""
LARGE = 1 << 24
"""Bytes of what is new that are read at a time."""
TAIL = 4096
"""Bytes whose hash is kept of a file that is appended to only."""
CALM = 1_000_000_000
"""Nanoseconds without a change after which the last line of a file is taken to be whole."""

Kind: TypeAlias = Literal["same", "more", "all"]


class Changed(Unfinished):
    """A file that is said to be appended to only is not the one that it was."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What was taken of a file.

    stamp: of the file then; `UNSURE` if it may have changed within a tick.
    length: of what was taken, in bytes; in `lines` lines.
    digest: a hash of it; none if it could not be read.
    columns: of a format that has their names at its beginning.
    is_ragged: whether it ends within a line.
    is_failed: whether it was told that it cannot be read.
    """

    stamp: Stamp = UNSURE
    length: int = 0
    lines: int = 0
    digest: str = ""
    columns: tuple[str, ...] = ()
    is_ragged: bool = False
    is_failed: bool = False

    def as_plain(self) -> tuple[Any, ...]:
        """As plain values, which a token can have."""
        flags = (self.is_ragged, self.is_failed)
        return (self.stamp, self.length, self.lines, self.digest, self.columns, *flags)


def of_plain(plain: Sequence[Any]) -> Fingerprint:
    """A fingerprint of plain values; lists may stand for tuples."""
    stamp, length, lines, digest, columns, *flags = plain
    sizes: Any = tuple(stamp)
    return Fingerprint(sizes, length, lines, digest, tuple(columns), *map(bool, flags))


@dataclass(frozen=True, slots=True)
class News:
    """What is new of a file; whether it is to be looked at again soon."""

    kind: Kind
    taken: Taken
    fingerprint: Fingerprint
    again: bool


def read(
    path: str,
    known: Fingerprint | None,
    form: Format,
    now: int,
    limits: Limits,
    *,
    append_only: bool,
) -> News:
    """What is new of a file.

    Parameters
    ----------
    now: the time, in nanoseconds, before its stamp is asked for.

    Raises
    ------
    OSError: it cannot be read.
    Unfinished: it is none of its format, or not yet.
    Stopped: the source is to stop.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        found = stamp(os.fstat(file.fileno()))
        if found is None:
            raise Unfinished(f"{path} is no file")
        return _Reading(path, file, known, form, found, now, limits, append_only).news()


class _Reading:
    """One reading of a file."""

    def __init__(
        self,
        path: str,
        file: BinaryIO | Any,
        known: Fingerprint | None,
        form: Format,
        found: Stamp,
        now: int,
        limits: Limits,
        append_only: bool,
    ) -> None:
        self._limits = limits
        self._path = path
        self._file = file
        self._known = known
        self._form = form
        self._stamp = found
        self._is_sure = is_sure(found, now)
        self._is_calm = now - found[1] >= CALM or found[1] > now + CALM
        self._append_only = append_only

    def news(self) -> News:
        """What is new."""
        known = self._known
        if known is not None and known.digest:
            if (begun := self._beginning(known)) is not None:
                rest = self._rest(known.length)
                if not rest:
                    return self._told("same", Taken(), known)
                if self._form.grows(self._path) and (
                    not known.is_ragged or rest[:1] in (b"\n", b"\r")
                ):
                    return self._more(known, begun, rest)
            if self._append_only and not self._is_another(known):
                raise Changed(f"{self._path} was changed, and not only appended to")
        self._file.seek(0)
        data = self._rest(0)
        taken = self._take(data, Place(self._path, limits=self._limits))
        begun = _hash(data[: taken.length][-TAIL:] if self._append_only else data[: taken.length])
        return self._told("all", taken, _fingerprint(taken, 0, begun))

    def _more(self, known: Fingerprint, begun: Any, rest: bytes) -> News:
        taken = self._take(rest, Place(self._path, known.lines, known.columns, self._limits))
        if not (taken.length or taken.refused):
            return self._told("same", taken, known)
        begun.update(rest[: taken.length])
        if self._append_only:
            length = known.length + taken.length
            self._file.seek(max(0, length - TAIL))
            begun = _hash(self._file.read(min(TAIL, length)))
        kind: Kind = "more" if taken.rows or taken.refused else "same"
        return self._told(kind, taken, _fingerprint(taken, known.length, begun))

    def _rest(self, begin: int) -> bytes:
        """Read from where the file is, which is behind some bytes, to its end."""
        self._limits.check_size(self._path, self._stamp[0] - begin)
        pieces, size = list[bytes](), begin
        while piece := self._file.read(LARGE):
            pieces.append(piece)
            size += len(piece)
            self._limits.go_on()
            self._limits.check_size(self._path, size - begin)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _take(self, data: bytes, place: Place) -> Taken:
        with paused():
            return self._form.take(data, place, is_calm=self._is_calm)

    def _beginning(self, known: Fingerprint) -> Any:
        """The hash of what was taken, if that is still there; the file is read up to its end."""
        if self._stamp[0] < known.length:
            return None
        begin = max(0, known.length - TAIL) if self._append_only else 0
        self._file.seek(begin)
        found, left = _hash(b""), known.length - begin
        while left:
            piece = self._file.read(min(left, PIECE))
            self._limits.go_on()
            if not piece:
                return None
            found.update(piece)
            left -= len(piece)
        return found if found.hexdigest() == known.digest else None

    def _is_another(self, known: Fingerprint) -> bool:
        """Whether the file has only the name of the one that is known, as after a rotation."""
        return self._stamp[3] != known.stamp[3] or self._stamp[0] < known.length

    def _told(self, kind: Kind, taken: Taken, of: Fingerprint) -> News:
        waits = taken.waits and not self._is_calm
        is_known = self._is_sure and not waits
        of = replace(of, stamp=self._stamp if is_known else unsure(self._stamp), is_failed=False)
        return News(kind, taken, of, not is_known)


def _fingerprint(taken: Taken, before: int, begun: Any) -> Fingerprint:
    length, digest = before + taken.length, begun.hexdigest()
    return Fingerprint(UNSURE, length, taken.lines, digest, taken.columns, taken.is_ragged)


def _hash(data: bytes) -> Any:
    return hashlib.blake2b(data, digest_size=16)
