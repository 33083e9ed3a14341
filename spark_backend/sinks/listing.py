"""The list of the files that count in a folder of rows, as Spark reads it.

    _spark_metadata/0     "v1", then a line of JSON per file: path, size, ..., what we note of it

Spark takes the files of a folder from this list where there is one, as it does with those that its
streams write; so whoever reads the folder as a table sees the files of one moment. The list is
written aside and renamed. Files are called `_b=...`, which Spark reads by the list, and which those
who do not know the list (pandas, pyarrow) leave out: they see nothing rather than too much.

Source: Spark's `FileStreamSinkLog`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reactive.borders.sinks.target import ChangeBatch
from spark_backend.cluster.files import put
from spark_backend.sinks.position import Note, note_of, noted, unreadable

FOLDER, FILE = "_spark_metadata", "0"
VERSION = "v1"
OURS = "reactive"


@dataclass(frozen=True, slots=True)
class Listed:
    """A file with the rows of a bucket. One of bucket -1 has no rows, and the columns."""

    name: str
    bucket: int
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """What counts: the files, and what is noted of all of them.

    `before` are the names of those that counted until this list: who reads by that one still does.
    """

    note: Note
    buckets: int
    by: str
    """What puts rows into buckets: those of another way are to be written anew."""
    files: tuple[Listed, ...]
    before: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(file.name for file in self.files)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self.files)

    def of(self, buckets: set[int]) -> list[Listed]:
        """The files of some buckets."""
        return [file for file in self.files if file.bucket in buckets]


class Listings:
    """The list of a folder.

    Parameters
    ----------
    files, root: a file system of pyarrow, and the folder in it.
    uri: of the folder, if it is not of this machine.
    """

    def __init__(self, root: str, uri: str | None) -> None:
        self._folder = f"{root}/{FOLDER}"
        self._uri = uri

    def read(self, files: Any) -> Listing | None:
        """What counts; None if nothing was ever written.

        Raises
        ------
        OffloadError: it is of somebody else, or cannot be read.
        """
        path = f"{self._folder}/{FILE}"
        try:
            with files.open_input_stream(path) as stream:
                return _listing(stream.read().decode())
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable(path, error) from error

    def put(self, files: Any, listing: Listing) -> None:
        """Let a list count."""
        files.create_dir(self._folder, recursive=True)
        text = "\n".join([VERSION, *self._lines(listing)])
        put(files, f"{self._folder}/{FILE}", text.encode())

    def _lines(self, listing: Listing) -> list[str]:
        at = listing.note.position
        whole = noted(ChangeBatch(at.batch, (), listing.note.plan, at.version))
        whole |= {"buckets": listing.buckets, "by": listing.by, "before": list(listing.before)}
        lines = []
        for place, file in enumerate(listing.files):
            own = {"name": file.name, "bucket": file.bucket, "rows": file.rows}
            lines.append({**self._status(file), OURS: own | ({} if place else {"all": whole})})
        return [json.dumps(line) for line in lines]

    def _status(self, file: Listed) -> Mapping[str, Any]:
        """What Spark wants to know of a file."""
        root = self._folder.removesuffix(f"/{FOLDER}")
        uri = Path(root).as_uri() if self._uri is None else self._uri
        return {
            "path": f"{uri}/{file.name}",
            "size": file.size,
            "isDir": False,
            "modificationTime": 0,
            "blockReplication": 1,
            "blockSize": 1 << 27,
            "action": "add",
        }


def _listing(text: str) -> Listing:
    version, *lines = text.split("\n")
    if version != VERSION:
        raise ValueError(f"its version is {version!r:.40}, not {VERSION!r}")
    found = [json.loads(line) for line in lines]
    files = tuple(_listed(line[OURS], line["size"]) for line in found)
    whole = found[0][OURS]["all"]
    before = tuple(map(_inside, whole["before"]))
    return Listing(note_of(whole), int(whole["buckets"]), str(whole["by"]), files, before)


def _listed(own: Mapping[str, Any], size: Any) -> Listed:
    return Listed(_inside(own["name"]), int(own["bucket"]), int(own["rows"]), int(size))


def _inside(name: Any) -> str:
    if not isinstance(name, str) or "/" in name or not name.startswith("_b="):
        raise ValueError(f"it names {name!r}, which is no file of its folder")
    return name
