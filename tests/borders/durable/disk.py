"""The files of a folder after calls on them, and the files that an end may leave.

    kill -9            all written bytes are present: the system has them
    loss of power      any write since the last sync of a file may be missing, and each may be
                       present in part; the last creations and deletions since then may be missing

State:  for each file its contents, its synced contents, and the calls since the sync.
Source: sqlite.org/atomiccommit.html, hardware assumptions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.borders.durable.recording import Call

SECTOR = 512
"""Bytes that a disk writes together. Nobody has to rely on it: a cut may be within."""
Left = dict[str, bytes]
"""Files by their names."""


@dataclass
class File:
    """One that was created."""

    held: bytearray = field(default_factory=bytearray)
    safe: bytes = b""
    unsafe: list[Call] = field(default_factory=list)

    def left(self, random: Random) -> bytes:
        """Return contents that a loss of power may leave."""
        found, share = bytearray(self.safe), random.choice([0.0, 0.5, 0.9, 1.0, 1.0])
        torn = random.choice([0.0, 0.1, 0.5])
        for call in self.unsafe:
            if random.random() < share:
                change(found, _torn(call, random) if random.random() < torn else call)
        return bytes(found)


def change(held: bytearray, call: Call) -> None:
    """Apply a call to the contents of a file."""
    kind, _, place, *data = call
    if kind == "truncate":
        del held[place:]
        return
    if len(held) < place:
        held += bytes(place - len(held))
    held[place : place + len(data[0])] = data[0]


def _torn(call: Call, random: Random) -> Call:
    """A part of a write."""
    kind, name, place, *data = call
    if kind == "truncate":
        return call
    (written,) = data
    at = random.randint(0, len(written))
    if random.random() < 0.5:
        at -= at % SECTOR
    if random.random() < 0.5:
        return (kind, name, place, written[:at])
    return (kind, name, place + at, written[at:])


class Disk:
    """A folder, empty at first."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}
        self._safe: dict[str, File] = {}
        self._unsafe: list[tuple[str, File | None]] = []
        """Files that were created or deleted, and it is not safe that they were."""

    def make(self, call: Call) -> None:
        """A call was made."""
        match call:
            case ("create", name):
                self._files[name] = File()
                self._unsafe.append((name, self._files[name]))
            case ("delete", name):
                del self._files[name]
                self._unsafe.append((name, None))
            case ("sync", name):
                file = self._files[name]
                file.safe, file.unsafe = bytes(file.held), []
                self._is_there(file)
            case (_, name, *_):
                change(self._files[name].held, call)
                self._files[name].unsafe.append(call)

    def _is_there(self, file: File) -> None:
        """Make the name of a synced file safe, and all earlier creations and deletions."""
        places = [place for place, (_, of) in enumerate(self._unsafe) if of is file]
        if places:
            _enter(self._safe, self._unsafe[: places[0] + 1])
            del self._unsafe[: places[0] + 1]

    def killed(self, cut: Call | None = None) -> Left:
        """Return the files that `kill -9` leaves, in the middle of the write `cut` if given."""
        found = {name: bytes(file.held) for name, file in self._files.items()}
        if cut is not None:
            held = bytearray(found[cut[1]])
            change(held, cut)
            found[cut[1]] = bytes(held)
        return found

    def without_power(self, random: Random) -> Left:
        """Return files that a loss of power may leave."""
        found = dict(self._safe)
        _enter(found, self._unsafe[: random.randint(0, len(self._unsafe))])
        return {name: file.left(random) for name, file in found.items()}


def _enter(files: dict[str, File], changes: list[tuple[str, File | None]]) -> None:
    for name, file in changes:
        if file is None:
            files.pop(name, None)
        else:
            files[name] = file
