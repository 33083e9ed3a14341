"""A place in the bytes of a file: reads on from there and never past the end."""

from __future__ import annotations

from struct import Struct

U2 = Struct(">H")


class Malformed(Exception):
    """The bytes at the cursor are not what a class file has there."""


class Cursor:
    """The bytes of a file and how far they are read.

    >>> cursor = Cursor(bytes([0, 7, 1]))
    >>> cursor.u2(), cursor.at
    (7, 2)
    >>> cursor.u2()
    Traceback (most recent call last):
    examples.findbugs.reader.cursor.Malformed: the file ends: 2 bytes are needed, 1 is left
    """

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, shape: Struct) -> tuple[int, ...]:
        """Read numbers of the given shape."""
        at = self.at
        self.at = self.after(shape.size)
        return shape.unpack_from(self.data, at)

    def u2(self) -> int:
        """Read an unsigned number of two bytes."""
        return self.take(U2)[0]

    def indices(self, count: int) -> tuple[int, ...]:
        """Read `count` unsigned numbers of two bytes."""
        at = self.at
        self.at = self.after(2 * count)
        return Struct(f">{count}H").unpack_from(self.data, at)

    def after(self, size: int) -> int:
        """Return the place after the next `size` bytes, which must be there."""
        end = self.at + size
        if end > len(self.data):
            left = len(self.data) - self.at
            verb = "is" if left == 1 else "are"
            raise Malformed(f"the file ends: {size} bytes are needed, {left} {verb} left")
        return end


def shown(text: str) -> str:
    """Return a text of any length and content, for a message."""
    return ascii(text if len(text) <= 80 else f"{text[:77]}...")
