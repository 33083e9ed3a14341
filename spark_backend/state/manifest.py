"""Manifests: the files, tables and flush number that count in a folder of state tables.

    manifest/000000000012.json      the last one counts: its flush happened, or it did not
    flush/000000000012-5f/t=left/part-...parquet       the rows that flush 12 added to `left`
    base/left/000000000009-91/t=left/b=3/part-...parquet    all rows before flush 9, net, by bucket
    merged/left/000000000011-07/t=left/part-...parquet      some of the later rows, net
    loads/4b1c738cb36b...           rows that are staged for a load

A manifest is written whole under the next number, never over another one: if two processes continue
the same state, the second writer gets an error. A job never writes to a folder of another job, so
that a job that outlives its driver does no harm. `sweep_folders` deletes the files that no manifest
names (unfinished or merged flushes) when the next process opens the tables.

Sound:  nothing in a manifest is executed. One is refused if it has another format or plan, a wrong
        checksum, or files outside its folder; or if its tables hold pickled rows, which can run
        code when they are read, and the folder is not trusted.
Cost:   of a sweep, a listing per job.

`Holds` keeps replaced files for slow readers, while flushes go on and merge files:

    begin       a reader holds the files of a table, as of a flush
    counts      each later flush adds its files of the table to the files of the reader
    forget      the reader has read these files, and releases them
    drop        replaced files are deleted as soon as no reader holds them

A reader that has half of the table or more left to read could as well read all of it again, so its
hold is closed: the held files stay bounded.

State:  the held segments.
Cost:   a flush O(readers); no job.
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
from spark_backend.cluster.files import create_file, taken_over_error
from spark_backend.state.ends import file_size

FORMAT = 8
MANIFESTS = "manifest"
"""The folder of manifests."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Files of a table that were written together: the rows of a flush, or a base."""

    folder: str
    """Below the root; the files are at any depth in it."""
    files: tuple[str, ...]
    """Below the folder."""
    ends: tuple[str, ...]
    """The mark of the end of each file (`ends.py`)."""
    each: tuple[int, ...]
    """The number of rows of each file."""
    buckets: int = 0
    """The number of buckets of a base; else 0."""
    weights: tuple[int, int] | None = None
    """The least and the greatest weight of its rows, if known."""

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return sum(self.each)

    @property
    def bytes(self) -> int:
        """The length of all files."""
        return sum(map(file_size, self.ends))

    @property
    def is_base(self) -> bool:
        """True if the segment holds all rows that the table had when it was written."""
        return self.buckets > 0

    def of(self, chosen: Callable[[str], bool]) -> Segment:
        """Return the segment with only the `chosen` files."""
        kept = [one for one in zip(self.files, self.ends, self.each, strict=True) if chosen(one[0])]
        files, ends, each = zip(*kept, strict=True) if kept else ((), (), ())
        return replace(self, files=files, ends=ends, each=each)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The segments and tokens that count after a flush.

    `plan` identifies the plan that owns the state.
    """

    plan: str
    number: int | None = None
    tables: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    tokens: Mapping[str, Any] = field(default_factory=dict)
    """The position in each source that its included changes reach."""
    pickled: bool = False
    """True if a table has a column of pickled rows."""
    writer: str = ""
    """An id of the process that wrote the manifest."""

    def with_flush(
        self, number: int, added: Mapping[str, Segment], tokens: Mapping[str, Any]
    ) -> Manifest:
        """Return the manifest after one further flush."""
        tables = dict(self.tables)
        for name, segment in added.items():
            tables[name] = (*tables.get(name, ()), segment)
        return replace(self, number=number, tables=tables, tokens={**self.tokens, **tokens})

    def drop_tables(self, gone: Collection[str]) -> Manifest:
        """Return the manifest without some tables."""
        left = {name: found for name, found in self.tables.items() if name not in gone}
        return replace(self, tables=left)

    def with_segments(self, name: str, segments: tuple[Segment, ...]) -> Manifest:
        """Return the manifest with other segments of a table, which hold the same rows."""
        return replace(self, tables={**self.tables, name: segments})

    def rows(self, name: str) -> tuple[int, int]:
        """Return the number of rows of the base of a table, and of its later segments."""
        segments = self.tables.get(name, ())
        base = sum(segment.rows for segment in segments if segment.is_base)
        return base, sum(segment.rows for segment in segments) - base


class Manifests:
    """The manifests in a folder; the one with the highest number counts.

    Parameters
    ----------
    files, root: a file system of pyarrow, and the folder in it.
    plan: identifies the plan that owns them.
    pickled: True if a table is to have a column of pickled rows.
    trust: True if pickled rows of an earlier process may be read.
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
        """Return the manifest that counts; an empty one for a new folder.

        Raises
        ------
        OffloadError: the manifest cannot be read, has another format or plan, or its tables hold
            pickled rows and are not trusted.
        """
        numbers = self._numbers()
        if not numbers:
            return self._new
        found = self._read_manifest(numbers[-1])
        if found.pickled and not self._trust:
            raise not_trusted_error(self._folder)
        if -1 < self._last < numbers[-1] and found.writer != self._writer:
            raise taken_over_error(self._folder)
        self._last = numbers[-1]
        return found

    def put(self, manifest: Manifest) -> None:
        """Write a manifest, which then counts, and delete the earlier ones.

        Raises
        ------
        OffloadError: another process has written one.
        """
        assert manifest.number is not None
        numbers = self._numbers()
        if numbers and numbers[-1] > self._last:
            raise taken_over_error(self._folder)
        plain = _to_json(replace(manifest, writer=self._writer))
        try:
            create_file(self._files, self._path(self._last + 1), json.dumps(plain).encode())
        except FileExistsError:
            raise taken_over_error(self._folder) from None
        self._last += 1
        for old in numbers:
            with suppress(OSError):  # an old manifest that remains does not count
                self._files.delete_file(self._path(old))

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:012}.json"

    def _numbers(self) -> list[int]:
        found = self._files.get_file_info(fs.FileSelector(self._folder))
        names = (info.base_name.removesuffix(".json") for info in found)
        return sorted(int(name) for name in names if name.isdecimal())

    def _read_manifest(self, number: int) -> Manifest:
        """Return the manifest of a number.

        Raises `OffloadError` if it is invalid or of another query, `FileNotFoundError` if it is
        missing.
        """
        path = self._path(number)
        try:
            with self._files.open_input_stream(path) as stream:
                found = _parse_manifest(json.loads(stream.read()))
            if found.plan != self._new.plan:
                raise ValueError("it is of another query")
            return found
        except (ValueError, KeyError, TypeError) as error:
            raise OffloadError(
                f"{path} is no manifest of these state tables: {error}\n"
                "  give an empty folder as the checkpoint, or the one that it came from"
            ) from error


def not_trusted_error(folder: str) -> OffloadError:
    """Return the error about pickled rows that may not be read."""
    return OffloadError(
        f"{folder} holds pickled rows of an earlier process, and reading those can run any code\n"
        "  if nobody else can write there, say so: SparkOffload(checkpoint=..., trust=True)\n"
        "  otherwise give an empty folder, or rows of plain types, which are kept as columns"
    )


def _to_json(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as JSON values, with a checksum."""
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
    """Return the checksum of a manifest as JSON values, without the checksum in it."""
    text = json.dumps({k: v for k, v in plain.items() if k != "checksum"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _parse_manifest(found: dict[str, Any]) -> Manifest:
    """Return the manifest of JSON values.

    Raises `ValueError`, `KeyError` or `TypeError` if its format or checksum is wrong.
    """
    if found["format"] != FORMAT:
        raise ValueError(f"its format is {found['format']!r}, not {FORMAT}")
    if found["checksum"] != _checksum(found):
        raise ValueError("it has been changed: its checksum is another")
    tables = {
        str(name): tuple(map(_parse_segment, segments))
        for name, segments in found["tables"].items()
    }
    return Manifest(
        str(found["plan"]),
        int(found["number"]),
        tables,
        dict(found["tokens"]),
        bool(found["pickled"]),
        str(found["writer"]),
    )


def _parse_segment(found: dict[str, Any]) -> Segment:
    """Return the segment of JSON values.

    Raises `ValueError` if a path leads out of the folder, or the lists of its files differ in
    length.
    """
    files, ends = tuple(map(_check_inside, found["files"])), tuple(map(str, found["ends"]))
    each = tuple(map(int, found["each"]))
    if not len(files) == len(ends) == len(each):
        raise ValueError("it does not say of each file what it is")
    weights = found["weights"]
    bounds = None if weights is None else (int(weights[0]), int(weights[1]))
    return Segment(_check_inside(found["folder"]), files, ends, each, int(found["buckets"]), bounds)


def _check_inside(path: Any) -> str:
    """Return the path. Raises `ValueError` if it leads out of its folder."""
    if not isinstance(path, str) or path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"it names {path!r}, which is not below its folder")
    return path


MOST_HELD = 256
"""The maximum number of flushes that are held for a reader."""
FEWEST_ROWS = 10_000
"""The minimum of the limit on changed rows held for a reader, for small tables."""


class Hold:
    """The files that one reader holds of one table. Made by `Holds.begin`."""

    def __init__(self, holds: Holds, table: str, manifest: Manifest) -> None:
        self._holds = holds
        self.table = table
        self.first: tuple[Segment, ...] = tuple(manifest.tables.get(table, ()))
        """The files as of `begin`, until `forget`."""
        self._later: tuple[int, tuple[Segment, ...]] = (_flush_number(manifest), ())
        self.is_over = False
        """True once the reader holds nothing."""

    @property
    def later(self) -> tuple[Segment, ...]:
        """The segments that flushes have added since."""
        return self._later[1]

    def counts(self, manifest: Manifest) -> None:
        """Hold the segments that a new flush has added; a manifest without a new flush changes
        nothing."""
        number, later = self._later
        if _flush_number(manifest) > number:
            start = flush_prefix(manifest.number)
            segments = manifest.tables.get(self.table, ())
            added = tuple(segment for segment in segments if segment.folder.startswith(start))
            self._later = (_flush_number(manifest), (*later, *added))

    def forget(self, later: Iterable[Segment]) -> None:
        """Release the first segments, and the given later ones, which the reader has read."""
        gone = tuple(later)
        with self._holds.lock:
            number, known = self._later
            self.first = ()
            self._later = (number, tuple(segment for segment in known if segment not in gone))
            self._holds.sweep()

    def close(self) -> None:
        """Release all segments."""
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
        """Hold the current segments of a table, and the segments of later flushes."""
        with self.lock:
            hold = Hold(self, table, self._manifest)
            self._open.append(hold)
            return hold

    def counts(self, manifest: Manifest) -> None:
        """Record that another manifest counts; it may contain a new flush."""
        with self.lock:
            self._manifest = manifest
            for hold in list(self._open):
                hold.counts(manifest)
                if self._is_slow(hold):
                    hold.close()

    def drop(self, gone: Iterable[Segment]) -> None:
        """Delete replaced segments, now or as soon as no reader holds them."""
        with self.lock:
            self._gone += gone
            self.sweep()

    def close(self) -> None:
        """Close all holds, before everything is deleted and the folder may get other tables."""
        with self.lock:
            for hold in list(self._open):
                hold.close()

    def sweep(self) -> None:
        """Delete the replaced segments that no reader holds."""
        held = {s.folder: s for hold in self._open for s in (*hold.first, *hold.later)}
        now = [segment for segment in self._gone if segment.folder not in held]
        if now:
            self._gone = [segment for segment in self._gone if segment.folder in held]
            drop_segments(self._files, self._root, self._manifest, now, held.values())

    def forget(self, hold: Hold) -> None:
        """Remove a reader."""
        if hold in self._open:
            self._open.remove(hold)
            self.sweep()

    def _is_slow(self, hold: Hold) -> bool:
        """Return True if a reader holds so many rows or flushes that it has to start again."""
        rows = sum(segment.rows for segment in hold.later)
        most = max(FEWEST_ROWS, sum(self._manifest.rows(hold.table)) // 2)
        return rows > most or len(hold.later) > MOST_HELD


def _flush_number(manifest: Manifest) -> int:
    return -1 if manifest.number is None else manifest.number


FLUSH, BASE, MERGED, LOADS = "flush", "base", "merged", "loads"
"""Folders of the rows of flushes, of bases, of merged later rows, and of staged rows."""


def new_job_folder(kind: str, number: int) -> str:
    """Return a new folder for one job."""
    return f"{kind}/{number:012}-{uuid4().hex[:12]}"


def flush_prefix(number: int | None) -> str:
    """Return the prefix of the folders of a flush."""
    return f"{FLUSH}/{number or 0:012}-"


def drop_segments(
    files: Any,
    root: str,
    manifest: Manifest,
    gone: Iterable[Segment],
    held: Iterable[Segment] = (),
) -> None:
    """Delete replaced segments, and the folder of their job with the last of them.

    A later `sweep_folders` deletes the files that cannot be deleted now.

    Parameters
    ----------
    held: other segments that stay, though they do not count.
    """
    living = _current_folders(manifest) | {_job_folder(segment) for segment in held}
    for segment in gone:
        place = _job_folder(segment)
        discard_folder(files, f"{root}/{segment.folder if place in living else place}")


def discard_folder(files: Any, folder: str) -> None:
    """Delete a folder, if that is possible now."""
    with suppress(OSError):
        files.delete_dir(folder)


def sweep_folders(files: Any, root: str, manifest: Manifest) -> None:
    """Delete all folders that contain no current segment."""
    discard_folder(files, f"{root}/{LOADS}")
    tables = [path for kind in (BASE, MERGED) for path in _list_folders(files, root, kind)]
    living = _current_folders(manifest)
    segments = {segment.folder for found in manifest.tables.values() for segment in found}
    for place in (p for of in (FLUSH, *tables) for p in _list_folders(files, root, of)):
        if place not in living:
            discard_folder(files, f"{root}/{place}")
            continue
        for folder in _list_folders(files, root, place):
            if folder not in segments:
                discard_folder(files, f"{root}/{folder}")


def _job_folder(segment: Segment) -> str:
    """Return the folder of the job that wrote a segment."""
    return segment.folder.rpartition("/")[0]


def _current_folders(manifest: Manifest) -> set[str]:
    return {_job_folder(segment) for segments in manifest.tables.values() for segment in segments}


def _list_folders(files: Any, root: str, of: str) -> list[str]:
    """Return the folders inside a folder, relative to the root."""
    found = files.get_file_info(fs.FileSelector(f"{root}/{of}", allow_not_found=True))
    return [f"{of}/{i.base_name}" for i in found if i.type == fs.FileType.Directory]
