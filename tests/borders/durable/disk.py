"""The files of a folder after calls on them, and what may be left of them.

    kill -9            all that was written is there: the system has it
    loss of power      of what was written to a file since it was synced, any writes may be missing,
                       and each may be there in part; of files that were created and deleted since,
                       the last ones may not have been

State:  of each file what it holds, what of that is safe, and the calls in between.
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
        """What may be left after a loss of power."""
        found, share = bytearray(self.safe), random.choice([0.0, 0.5, 0.9, 1.0, 1.0])
        torn = random.choice([0.0, 0.1, 0.5])
        for call in self.unsafe:
            if random.random() < share:
                change(found, _torn(call, random) if random.random() < torn else call)
        return bytes(found)


def change(held: bytearray, call: Call) -> None:
    """Make a call on what a file holds."""
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
        """A file that is synced is found by its name, and so is what was created before."""
        places = [place for place, (_, of) in enumerate(self._unsafe) if of is file]
        if places:
            _enter(self._safe, self._unsafe[: places[0] + 1])
            del self._unsafe[: places[0] + 1]

    def killed(self, cut: Call | None = None) -> Left:
        """What `kill -9` leaves; in the middle of a write, if one is given that is cut off."""
        found = {name: bytes(file.held) for name, file in self._files.items()}
        if cut is not None:
            held = bytearray(found[cut[1]])
            change(held, cut)
            found[cut[1]] = bytes(held)
        return found

    def without_power(self, random: Random) -> Left:
        """What a loss of power may leave."""
        found = dict(self._safe)
        _enter(found, self._unsafe[: random.randint(0, len(self._unsafe))])
        return {name: file.left(random) for name, file in found.items()}


def _enter(files: dict[str, File], changes: list[tuple[str, File | None]]) -> None:
    for name, file in changes:
        if file is None:
            files.pop(name, None)
        else:
            files[name] = file
