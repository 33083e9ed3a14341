"""What is left in a folder of state tables of jobs that did not come to count, or count no more.

    flush/000000000012-5f0c...      of one job; the manifest names what of it counts, or nothing
    base/left/000000000009-91e2...
    merged/left/000000000011-07aa...
    loads/4b1c738cb36b...               rows that are staged for one that is loaded

A job never writes where another one has: one that still runs after its driver has given it up does
no harm. What it leaves goes with the next process that opens the tables.

Cost:   of a look at all of it, a listing a job.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from pyarrow import fs

from spark_backend.state.manifest import Manifest, Segment

FLUSH, BASE, MERGED, LOADS = "flush", "base", "merged", "loads"
"""Folders of what flushes added, of bases made of what had been written before, of later rows that
were put together, and of what has been staged."""


def place_of(kind: str, number: int) -> str:
    """A folder for one job that nobody has written to."""
    return f"{kind}/{number:012}-{uuid4().hex[:12]}"


def of_flush(number: int | None) -> str:
    """What the folders of a flush begin with."""
    return f"{FLUSH}/{number or 0:012}-"


def drop(
    files: Any,
    root: str,
    manifest: Manifest,
    gone: Iterable[Segment],
    held: Iterable[Segment] = (),
) -> None:
    """Delete segments that count no more, and the folder of their job with the last of them.

    What cannot be deleted now is a leftover.

    Parameters
    ----------
    held: other segments that stay, though they do not count.
    """
    living = _living(manifest) | {_place(segment) for segment in held}
    for segment in gone:
        place = _place(segment)
        discard(files, f"{root}/{segment.folder if place in living else place}")


def discard(files: Any, folder: str) -> None:
    """Delete a folder, if that can be done now."""
    with suppress(OSError):
        files.delete_dir(folder)


def sweep(files: Any, root: str, manifest: Manifest) -> None:
    """Delete all that no segment is in."""
    discard(files, f"{root}/{LOADS}")
    tables = [path for kind in (BASE, MERGED) for path in _folders(files, root, kind)]
    living = _living(manifest)
    segments = {segment.folder for found in manifest.tables.values() for segment in found}
    for place in (p for of in (FLUSH, *tables) for p in _folders(files, root, of)):
        if place not in living:
            discard(files, f"{root}/{place}")
            continue
        for folder in _folders(files, root, place):
            if folder not in segments:
                discard(files, f"{root}/{folder}")


def _place(segment: Segment) -> str:
    """The folder of the job that wrote it."""
    return segment.folder.rpartition("/")[0]


def _living(manifest: Manifest) -> set[str]:
    return {_place(segment) for segments in manifest.tables.values() for segment in segments}


def _folders(files: Any, root: str, of: str) -> list[str]:
    """The folders in one, below the root."""
    found = files.get_file_info(fs.FileSelector(f"{root}/{of}", allow_not_found=True))
    return [f"{of}/{i.base_name}" for i in found if i.type == fs.FileType.Directory]
