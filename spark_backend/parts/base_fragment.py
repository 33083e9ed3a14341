"""What all parts on Spark have in common: a folder with their stream, and its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactive.remote.external import ExternalInput
from reactive.remote.fragments import Fragment
from reactive.remote.remote import Entry
from spark_backend.cluster.session import Session
from spark_backend.cluster.stream import Frame, Stream
from spark_backend.codec.codec import Codec


class BaseFragment:
    """A part whose rows are in a folder.

    Parameters
    ----------
    folder: of the mailbox and the checkpoint; one that has been used by a process before is gone
        on with.
    stable: whether another process may go on with the folder.
    """

    _stream: Stream
    is_closed = False

    def __init__(self, session: Session, fragment: Fragment, *, stable: bool) -> None:
        self._session = session
        self._part = fragment
        self._is_kept = stable
        self._codec = Codec(stable=stable)
        self._staged: list[tuple[int, Entry]] = []
        self.bucket = self._codec.bucket

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Keep entries, packed, until their number is applied."""
        self._staged += [(number, entry) for entry in entries]

    def _with_staged(self, number: int, entries: Sequence[Entry]) -> Sequence[Entry]:
        """What is to be applied with a number."""
        self._staged = [staged for staged in self._staged if staged[0] >= number]
        staged = [entry for of, entry in self._staged if of == number]
        return [*staged, *entries] if staged else entries

    def _fed(self, number: int, source: ExternalInput) -> Frame:
        """Entries of rows that Spark has already, which do not come by here."""
        from spark_backend.tables.chain import Chain

        rows: Any = source.rows
        return Chain(self._session.paths).entries(
            source.chain,
            rows.frames.since(source.after, source.upto),
            self._part.of[-1],
            source.place,
            number,
            stable=self._is_kept,
        )

    @property
    def resumed(self) -> int | None:
        """The last number that an earlier process had applied."""
        return self._stream.resumed

    def stop(self) -> None:
        """Nobody reads it any more; a later process can go on where that was asked for."""
        self.is_closed = True
        self._stream.stop()
        if not self._is_kept:
            self._stream.mailbox.delete()

    def close(self) -> None:
        """Give everything up."""
        self.is_closed = True
        self._stream.stop()
        self._stream.mailbox.delete()
