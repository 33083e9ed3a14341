"""Blocks of lines with their rows: a rewritten file is converted only where it has changed.

    before   [ 1 ][ 2 ][ 3 ][ 4 ]      the digest and the rows of each block
    now      [ 1 ][ 2 ][ x ][ 4 ]      rows of 1 and 2, rows made of x, rows of 4

Blocks at the beginning and at the end are compared; all between them is converted again. A block
with a refused line is never found again, since the error has the number of its line.

State:  of a file of at least `LEAST` bytes, a reference per row, and a digest per block.
Cost:   one hash of the file; conversion of the blocks that changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reactive.borders.sources.batch import Refused

SIZE = 1 << 16
"""The bytes of a block, up to the end of a line."""
LEAST = 1 << 20
"""The bytes of a file whose blocks are kept."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file, and the rows that were made of them.

    digest: the hash of the bytes; empty if a line was refused.
    refused: the refused lines; dropped from blocks that are kept.
    """

    digest: bytes
    size: int
    lines: int
    rows: Sequence[Any]
    refused: Sequence[Refused] = ()


class KeptBlocks:
    """The blocks of the files of a source, by path."""

    def __init__(self) -> None:
        self._by_path: dict[str, list[LineBlock]] = {}

    def of(self, path: str) -> Sequence[LineBlock]:
        return self._by_path.get(path, ())

    def replace(self, path: str, blocks: Sequence[LineBlock]) -> None:
        """Keep the blocks of a file that was read as a whole, if it is large enough."""
        self.forget(path)
        if sum(block.size for block in blocks) >= LEAST:
            self._by_path[path] = [_without_refused(block) for block in blocks]

    def extend(self, path: str, blocks: Sequence[LineBlock]) -> None:
        """Keep the blocks at the end of a file that has grown; forget it if they are too small."""
        held = self._by_path.get(path)
        if held is not None:
            held += [_without_refused(block) for block in blocks]
            if len(held) * SIZE > 4 * sum(block.size for block in held):
                self.forget(path)

    def forget(self, path: str) -> None:
        self._by_path.pop(path, None)


def _without_refused(block: LineBlock) -> LineBlock:
    """Return a block without its refused lines and, if it has some, without its rows."""
    return block if not block.refused else LineBlock(b"", block.size, block.lines, ())


def digest_of(data: memoryview) -> bytes:
    """Return the hash of some bytes."""
    return hashlib.blake2b(data, digest_size=16).digest()


def convert_changed(
    data: bytes, known: Sequence[LineBlock], convert: Callable[[bytes, int], LineBlock]
) -> list[LineBlock]:
    """Return the blocks of whole lines: the known ones at both ends, and new ones between them.

    `convert` makes a block of some lines, after a number of lines.
    """
    begin, end = unchanged_blocks(known, data)
    start = sum(block.size for block in begin)
    stop = len(data) - sum(block.size for block in end)
    made, lines = list[LineBlock](), sum(block.lines for block in begin)
    for piece in _cut_lines(data[start:stop]):
        made.append(convert(piece, lines))
        lines += made[-1].lines
    return [*begin, *made, *end]


def _cut_lines(data: bytes) -> Iterator[bytes]:
    r"""Cut bytes into blocks of whole lines; the last one may end within a line.

    >>> list(_cut_lines(b"a\nb\n"))
    [b'a\nb\n']
    """
    at = 0
    while at < len(data):
        end = data.find(b"\n", min(at + SIZE, len(data)) - 1) + 1 or len(data)
        yield data[at:end]
        at = end


def unchanged_blocks(
    known: Sequence[LineBlock], data: bytes
) -> tuple[Sequence[LineBlock], Sequence[LineBlock]]:
    r"""Return the known blocks that the data begins with, and those that it ends with.

    >>> def blocks(*texts):
    ...     return [LineBlock(digest_of(memoryview(t)), len(t), 1, [t]) for t in texts]
    >>> begin, end = unchanged_blocks(blocks(b"a\n", b"b\n", b"c\n"), b"a\nnew\nb\nc\n")
    >>> [block.rows for block in begin], [block.rows for block in end]
    ([[b'a\n']], [[b'b\n'], [b'c\n']])
    """
    view, begin, at = memoryview(data), 0, 0
    for block in known:
        if digest_of(view[at : at + block.size]) != block.digest:
            break
        at += block.size
        begin += 1
    stop, end = len(known), len(data)
    while stop > begin:
        block = known[stop - 1]
        start = end - block.size
        is_whole = start == at or (start > at and data[start - 1] == ord("\n"))
        if not is_whole or digest_of(view[start:end]) != block.digest:
            break
        stop, end = stop - 1, start
    return known[:begin], known[stop:]
