"""What all parts on Spark have in common: a folder with their stream, and its end."""

from __future__ import annotations

from reactive.parts import Part
from spark_backend.codec import Codec
from spark_backend.session import Session
from spark_backend.stream import Stream


class Kept:
    """A part whose rows are in a folder.

    Parameters
    ----------
    stable: whether another process may go on with the folder.
    """

    _stream: Stream
    is_closed = False

    def __init__(self, session: Session, part: Part, *, stable: bool) -> None:
        self._session = session
        self._part = part
        self._is_kept = stable
        self._codec = Codec(stable=stable)
        self.bucket = self._codec.bucket

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
