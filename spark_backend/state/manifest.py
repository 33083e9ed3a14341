"""What counts of a folder of state tables: which files, of which table, up to which flush.

    manifest/000000000012.json      the last one counts: its flush happened, or it did not
    flush/000000000012-5f/t=left/part-...parquet       what flush 12 added to the table `left`
    base/left/000000000009-91/t=left/b=3/part-...parquet    all before flush 9, added up, by bucket
    merged/left/000000000011-07/t=left/part-...parquet      some of what came later, added up

A manifest is put whole, with the next number, in the place of none: where two processes go on with
the same state, the second to put one is told. Files that no manifest names are of a flush that did
not come to its end, or of one that was added up since; they are deleted (`manifest.py`).

Sound:  nothing in it is executed. One that is of another format or plan, that does not agree with
        its checksum, or that names files outside its folder, is refused; so is one of tables that
        hold pickled rows, which run code when they are read, unless the folder is trusted.

Files of state tables that count no more, and who still reads them.

    begin       a reader holds the files of a table, as of a flush
    counts      each later flush adds its files of the table to what the reader holds
    forget      the reader has what it was told of: these are not held any more
    drop        files that count no more are deleted, once nobody holds them

So a reader may take its time, while flushes go on, put files together and delete what they have put
together. One that has half of the table to read, or more, is done as soon with all of it anew, so
it is let go: what is kept for it stays bounded.

State:  which segments are held.
Cost:   a flush O(readers); no job.

What is left in a folder of state tables of jobs that did not come to count, or count no more.

    flush/000000000012-5f0c...      of one job; the manifest names what of it counts, or nothing
    base/left/000000000009-91e2...
    merged/left/000000000011-07aa...
    loads/4b1c738cb36b...               rows that are staged for one that is loaded

A job never writes where another one has: one that still runs after its driver has given it up does
no harm. What it leaves goes with the next process that opens the tables.

Cost:   of a look at all of it, a listing a job.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from pyarrow import fs

from reactive.errors import OffloadError
from spark_backend.cluster.files import put_new, taken_over
from spark_backend.state.ends import size_of

FORMAT = 8
MANIFESTS = "manifest"
"""The folder of manifests."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Files of a table that were written together: what a flush added, or a base."""

    folder: str
    """Below the root; the files are at any depth in it."""
    files: tuple[str, ...]
    """Below the folder."""
    ends: tuple[str, ...]
    """The mark of the end of each file (`ends.py`)."""
    each: tuple[int, ...]
    """How many rows each file has."""
    buckets: int = 0
    """Of a base, how many buckets its rows fall into; else 0."""
    weights: tuple[int, int] | None = None
    """The least and the greatest weight of its rows, where that is known."""

    @property
    def rows(self) -> int:
        """How many rows all files have."""
        return sum(self.each)

    @property
    def bytes(self) -> int:
        """How long all files are."""
        return sum(map(size_of, self.ends))

    @property
    def is_base(self) -> bool:
        """Whether it is all that there was when it was written."""
        return self.buckets > 0

    def of(self, chosen: Callable[[str], bool]) -> Segment:
        """The same of some of the files."""
        kept = [one for one in zip(self.files, self.ends, self.each, strict=True) if chosen(one[0])]
        files, ends, each = zip(*kept, strict=True) if kept else ((), (), ())
        return replace(self, files=files, ends=ends, each=each)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that counts after a flush.

    `plan` tells the plan whose state it is from others.
    """

    plan: str
    number: int | None = None
    tables: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    tokens: Mapping[str, Any] = field(default_factory=dict)
    """Of each source, up to where it is taken in."""
    pickled: bool = False
    """Whether a table has a column of pickled rows."""
    writer: str = ""
    """Stands for the process that has put it."""

    def with_flush(
        self, number: int, added: Mapping[str, Segment], tokens: Mapping[str, Any]
    ) -> Manifest:
        """After one flush more."""
        tables = dict(self.tables)
        for name, segment in added.items():
            tables[name] = (*tables.get(name, ()), segment)
        return replace(self, number=number, tables=tables, tokens={**self.tokens, **tokens})

    def without(self, gone: Collection[str]) -> Manifest:
        """Without some tables."""
        left = {name: found for name, found in self.tables.items() if name not in gone}
        return replace(self, tables=left)

    def with_segments(self, name: str, segments: tuple[Segment, ...]) -> Manifest:
        """With other segments of a table, of the same rows."""
        return replace(self, tables={**self.tables, name: segments})

    def rows(self, name: str) -> tuple[int, int]:
        """How many rows the base of a table has, and what came later."""
        segments = self.tables.get(name, ())
        base = sum(segment.rows for segment in segments if segment.is_base)
        return base, sum(segment.rows for segment in segments) - base


class Manifests:
    """The manifests in a folder; the one with the highest number counts.

    Parameters
    ----------
    files, root: a file system of pyarrow, and the folder in it.
    plan: of whom they are.
    pickled: whether a table is to have a column of pickled rows.
    trust: whether pickled rows that are there may be read.
    """

    def __init__(
        self, files: Any, root: str, plan: str, *, pickled: bool = False, trust: bool = False
    ) -> None:
        self._files = files
        self._folder = f"{root}/{MANIFESTS}"
        self._new = Manifest(plan, pickled=pickled)
        self._trust = trust
        self._writer, self._last = uuid4().hex, -1
        self._files.create_dir(self._folder, recursive=True)

    def last(self) -> Manifest:
        """The one that counts; an empty one for a folder that is new.

        Raises
        ------
        OffloadError: it cannot be read, is none of ours or of another plan, or its tables hold
            pickled rows and are not trusted.
        """
        numbers = self._numbers()
        if not numbers:
            return self._new
        found = self._read(numbers[-1])
        if found.pickled and not self._trust:
            raise not_trusted(self._folder)
        if -1 < self._last < numbers[-1] and found.writer != self._writer:
            raise taken_over(self._folder)
        self._last = numbers[-1]
        return found

    def put(self, manifest: Manifest) -> None:
        """Let a manifest count; those before it are deleted.

        Raises
        ------
        OffloadError: another process has put one.
        """
        assert manifest.number is not None
        numbers = self._numbers()
        if numbers and numbers[-1] > self._last:
            raise taken_over(self._folder)
        plain = _plain(replace(manifest, writer=self._writer))
        try:
            put_new(self._files, self._path(self._last + 1), json.dumps(plain).encode())
        except FileExistsError:
            raise taken_over(self._folder) from None
        self._last += 1
        for old in numbers:
            with suppress(OSError):  # one that stays does not count
                self._files.delete_file(self._path(old))

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:012}.json"

    def _numbers(self) -> list[int]:
        found = self._files.get_file_info(fs.FileSelector(self._folder))
        names = (info.base_name.removesuffix(".json") for info in found)
        return sorted(int(name) for name in names if name.isdecimal())

    def _read(self, number: int) -> Manifest:
        path = self._path(number)
        try:
            with self._files.open_input_stream(path) as stream:
                found = _manifest(json.loads(stream.read()))
            if found.plan != self._new.plan:
                raise ValueError("it is of another query")
            return found
        except (ValueError, KeyError, TypeError) as error:
            raise OffloadError(
                f"{path} is no manifest of these state tables: {error}\n"
                "  give an empty folder as the checkpoint, or the one that it came from"
            ) from error


def not_trusted(folder: str) -> OffloadError:
    """The error about pickled rows that are not to be read."""
    return OffloadError(
        f"{folder} holds pickled rows of an earlier process, and reading those can run any code\n"
        "  if nobody else can write there, say so: SparkOffload(checkpoint=..., trust=True)\n"
        "  otherwise give an empty folder, or rows of plain types, which are kept as columns"
    )


def _plain(manifest: Manifest) -> dict[str, Any]:
    tables = {
        name: [
            {
                "folder": s.folder,
                "files": list(s.files),
                "ends": list(s.ends),
                "each": list(s.each),
                "buckets": s.buckets,
                "weights": None if s.weights is None else list(s.weights),
            }
            for s in segments
        ]
        for name, segments in manifest.tables.items()
    }
    plain = {
        "format": FORMAT,
        "plan": manifest.plan,
        "number": manifest.number,
        "tables": tables,
        "tokens": dict(manifest.tokens),
        "pickled": manifest.pickled,
        "writer": manifest.writer,
    }
    return {**plain, "checksum": _checksum(plain)}


def _checksum(plain: Mapping[str, Any]) -> str:
    text = json.dumps({k: v for k, v in plain.items() if k != "checksum"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _manifest(found: dict[str, Any]) -> Manifest:
    if found["format"] != FORMAT:
        raise ValueError(f"its format is {found['format']!r}, not {FORMAT}")
    if found["checksum"] != _checksum(found):
        raise ValueError("it has been changed: its checksum is another")
    tables = {
        str(name): tuple(map(_segment, segments)) for name, segments in found["tables"].items()
    }
    return Manifest(
        str(found["plan"]),
        int(found["number"]),
        tables,
        dict(found["tokens"]),
        bool(found["pickled"]),
        str(found["writer"]),
    )


def _segment(found: dict[str, Any]) -> Segment:
    files, ends = tuple(map(_inside, found["files"])), tuple(map(str, found["ends"]))
    each = tuple(map(int, found["each"]))
    if not len(files) == len(ends) == len(each):
        raise ValueError("it does not say of each file what it is")
    weights = found["weights"]
    bounds = None if weights is None else (int(weights[0]), int(weights[1]))
    return Segment(_inside(found["folder"]), files, ends, each, int(found["buckets"]), bounds)


def _inside(path: Any) -> str:
    if not isinstance(path, str) or path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"it names {path!r}, which is not below its folder")
    return path


MOST_HELD = 256
"""Flushes that are kept for a reader at most."""
FEWEST_ROWS = 10_000
"""Changed rows that are kept for a reader, however few there are in the table."""


class Hold:
    """What one reader holds of one table. Made by `Holds.begin`."""

    def __init__(self, holds: Holds, table: str, manifest: Manifest) -> None:
        self._holds = holds
        self.table = table
        self.first: tuple[Segment, ...] = tuple(manifest.tables.get(table, ()))
        """All that there was when it began, until that is forgotten."""
        self._later: tuple[int, tuple[Segment, ...]] = (_number(manifest), ())
        self.is_over = False
        """Whether nothing is held any more."""

    @property
    def later(self) -> tuple[Segment, ...]:
        """What flushes have added since."""
        return self._later[1]

    def counts(self, manifest: Manifest) -> None:
        """What the last flush has added is held too; told of it again, nothing is."""
        number, later = self._later
        if _number(manifest) > number:
            start = of_flush(manifest.number)
            segments = manifest.tables.get(self.table, ())
            added = tuple(segment for segment in segments if segment.folder.startswith(start))
            self._later = (_number(manifest), (*later, *added))

    def forget(self, later: Iterable[Segment]) -> None:
        """What there was at first has been read, and some of what has come later."""
        gone = tuple(later)
        with self._holds.lock:
            number, known = self._later
            self.first = ()
            self._later = (number, tuple(segment for segment in known if segment not in gone))
            self._holds.sweep()

    def close(self) -> None:
        """Hold nothing any more."""
        with self._holds.lock:
            self.is_over = True
            self.first, self._later = (), (self._later[0], ())
            self._holds.forget(self)


class Holds:
    """The readers of the tables in a folder.

    Parameters
    ----------
    files, root: a file system of pyarrow, and the folder in it.
    """

    def __init__(self, files: Any, root: str, manifest: Manifest) -> None:
        self._files, self._root = files, root
        self._manifest = manifest
        self._open: list[Hold] = []
        self._gone: list[Segment] = []
        self.lock = threading.RLock()

    def begin(self, table: str) -> Hold:
        """Hold what counts of a table, and what comes."""
        with self.lock:
            hold = Hold(self, table, self._manifest)
            self._open.append(hold)
            return hold

    def counts(self, manifest: Manifest) -> None:
        """Another manifest counts, perhaps that of one flush more."""
        with self.lock:
            self._manifest = manifest
            for hold in list(self._open):
                hold.counts(manifest)
                if self._is_slow(hold):
                    hold.close()

    def drop(self, gone: Iterable[Segment]) -> None:
        """Delete segments that count no more, now or when nobody holds them."""
        with self.lock:
            self._gone += gone
            self.sweep()

    def close(self) -> None:
        """Nobody holds anything any more: all is to be deleted, and there may be other tables in
        the folder soon."""
        with self.lock:
            for hold in list(self._open):
                hold.close()

    def sweep(self) -> None:
        """Delete what nobody holds."""
        held = {s.folder: s for hold in self._open for s in (*hold.first, *hold.later)}
        now = [segment for segment in self._gone if segment.folder not in held]
        if now:
            self._gone = [segment for segment in self._gone if segment.folder in held]
            drop(self._files, self._root, self._manifest, now, held.values())

    def forget(self, hold: Hold) -> None:
        """A reader is gone."""
        if hold in self._open:
            self._open.remove(hold)
            self.sweep()

    def _is_slow(self, hold: Hold) -> bool:
        rows = sum(segment.rows for segment in hold.later)
        most = max(FEWEST_ROWS, sum(self._manifest.rows(hold.table)) // 2)
        return rows > most or len(hold.later) > MOST_HELD


def _number(manifest: Manifest) -> int:
    return -1 if manifest.number is None else manifest.number


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
