"""Files that match a pattern, as a source: one batch for each round of changes.

    each file is an origin    its rows now, minus its rows before
    append-only files         inserted rows; deleted rows, from files that match `deletions`

The token is the fingerprint of each file by its path: plain values, given by changes.

State:  the fingerprints; the files to check again.
Cost:   a round takes O(files) stamps and O(new contents); a batch its changes.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from optimizer.errors import PlanError
from reactive.api.table import Table
from reactive.borders.sources.batch import Batch, Refused, Token, refuse_streams
from reactive.borders.sources.files.blocks import KeptBlocks
from reactive.borders.sources.files.formats import Reader, format_of
from reactive.borders.sources.files.reading import (
    Bell,
    Fingerprint,
    News,
    PathPattern,
    RewrittenFile,
    Stamp,
    exclude_files,
    fingerprint_of_plain,
    folder_pattern,
    has_watchfiles,
    read_news,
    seconds_until_check,
    unsure_stamp,
)
from reactive.borders.sources.files.texts import (
    MAX_BYTES,
    MAX_LINE,
    MAX_RATIO,
    Format,
    ReadingStopped,
    ReadLimits,
    TooLarge,
    UnfinishedFile,
)
from reactive.engine.runtime.progress import watch_progress
from reactive.errors import SourceError

SIZE = 50_000
"""The least rows of a batch in a first load."""
SOON = 0.05
"""The seconds until files are checked again that may have changed within a tick."""
GRACE = 2.0
"""The seconds that a file may be unreadable, while it is being written, before it is an error."""

UNREADABLE = "unreadable"
"""The first part of the origin for errors of a file as a whole."""


def files(
    pattern: str | os.PathLike[str],
    row_type: Any = None,
    *,
    name: str | None = None,
    deletions: str | os.PathLike[str] | None = None,
    key: Callable[[Any], Any] | None = None,
    append_only: bool = False,
    format: str | None = None,
    reader: Reader | None = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool = True,
    poll: float | None = None,
    max_line: int = MAX_LINE,
    max_bytes: int = MAX_BYTES,
    max_ratio: int = MAX_RATIO,
) -> FileSource:
    """Return a source of the rows of the files that match a pattern, for `Database.ingest`.

    `Database.watch` creates a table and feeds it from such a source. Used alone, the source feeds
    an existing table, or several: `reader` may return rows of several classes.

    Parameters
    ----------
    name: the name of the source; by default the pattern.
    key: row -> key of the table that is fed; with `deletions`, rows are deleted by their keys.
    others: as for `Database.watch`.

    Raises
    ------
    PlanError: the format is unknown, or needs a package that is not installed.

    >>> import tempfile, pathlib
    >>> from reactive import Database
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("to be")
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> source = files(folder / "*.txt", reader=lambda path: path.read_text().split(), name="texts")
    >>> reading = db.ingest(source, words)
    >>> source.catch_up(timeout=10)
    >>> list(words)
    ['to', 'be']
    >>> reading.stop()
    """
    found = PathPattern(pattern)
    given = {"format": format, "reader": reader, "encoding": encoding}
    limits = {"max_line": max_line, "max_bytes": max_bytes, "max_ratio": max_ratio}
    form = format_of(
        found.text,
        row_type,
        **given,  # type: ignore[arg-type]
        delimiter=delimiter,
        header=header,
        limits=limits,
    )
    gone = None if deletions is None else folder_pattern(deletions, found)
    if poll is not None and (isinstance(poll, bool) or not poll > 0):
        raise PlanError(f"poll={poll!r} is no interval\n  give the seconds between two looks")
    for called, value in limits.items():
        if type(value) is not int or value < 1:
            raise PlanError(f"{called}={value!r:.50} is no limit\n  give a whole number from 1 on")
    return FileSource(
        found.text if name is None else name,
        found,
        gone,
        form,
        key,
        append_only or gone is not None,
        poll,
        ReadLimits(max_line, max_bytes, max_ratio),
    )


class FileSource:
    """Files as a source. Created by `files`.

    >>> files("orders/*.txt", reader=lambda path: path.read_text().split()).name
    'orders/*.txt'
    """

    def __init__(
        self,
        name: str,
        pattern: PathPattern,
        deletions: PathPattern | None,
        form: Format,
        key: Callable[[Any], Any] | None,
        append_only: bool,
        poll: float | None,
        limits: ReadLimits,
    ) -> None:
        self._limits = limits
        self.name = name
        """The name of the source."""
        self._pattern = pattern
        self._deletions = deletions
        self._format = form
        self._key = key
        self._append_only = append_only
        self._poll = poll
        self._bell = Bell()
        self._left: int | None = None

    def feeds(self, into: Mapping[type, Table[Any]]) -> None:
        """Refuse a stream if files may change, or delete rows; called by `ingest`.

        Raises
        ------
        PlanError: a table is a stream, and the files are not `append_only`, or have `deletions`.
        """
        if self._deletions is not None:
            refuse_streams(self.name, into, "deletions= names rows to delete\n  leave it out")
        if not self._append_only:
            why = "its files may change\n  files(..., append_only=True) reads each line once"
            refuse_streams(self.name, into, why)

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[Any]]:
        """Yield the batches after a token; see `Source.batches`."""
        known = {path: fingerprint_of_plain(plain) for path, plain in (since or {}).items()}
        limits = replace(self._limits, is_stopped=stop.is_set)
        looks = _Looks(self, known, limits, is_first=since is None)
        told = self._poll is None and has_watchfiles()
        patterns = [each for each in (self._pattern, self._deletions) if each is not None]
        with self._bell.watching(patterns, stop, told=told):
            while not stop.is_set():
                number = self._bell.begin()
                yield from looks.batches(stop)
                soon = looks.soon(time.monotonic())
                if not looks.failing:
                    self._bell.end(number)
                rest = (
                    seconds_until_check(looks.took, told=told) if self._poll is None else self._poll
                )
                self._bell.wait(rest if soon is None else min(rest, soon))

    def waiting(self) -> int | None:
        """Return the number of files still to read in this round."""
        return self._left

    def catch_up(self, timeout: float | None = None) -> None:
        """Wait until the tables contain what the files contain now.

        Raises
        ------
        TimeoutError: it takes longer than `timeout` seconds.
        SourceError: the source stopped earlier.
        """
        if not self._has_caught_up(timeout):
            raise SourceError(
                f"source {self.name!r} has stopped before it had read its files\n"
                "  what ingest gave has the error; start() of it goes on"
            )

    def _has_caught_up(self, timeout: float | None) -> bool:
        """Wait as `catch_up` does; return False if the source has stopped.

        Raises `TimeoutError` after `timeout` seconds.
        """
        found = self._bell.wait_for(self._bell.ask(), timeout)
        if found is None:
            raise TimeoutError(f"source {self.name!r} has not read its files in {timeout:g} s")
        return found


@dataclass(frozen=True, slots=True)
class _Piece:
    """The new contents of a file, or the reason why it cannot be read."""

    path: str
    deletes: bool
    news: News | None
    failure: SourceError | None = None


@dataclass(slots=True)
class _GatheredNews:
    """The new contents of several files."""

    origins: dict[Any, list[Any]] = field(default_factory=dict)
    appends: dict[Any, list[Any]] = field(default_factory=dict)
    refused: dict[Any, list[Refused]] = field(default_factory=dict)
    events: list[tuple[list[Any], bool]] = field(default_factory=list)
    """The rows of append-only files in the order of changes, with True for deleted ones."""
    rows: int = 0
    is_news: bool = False


class _Looks:
    """The rounds of checks of a source."""

    def __init__(
        self,
        source: FileSource,
        known: dict[str, Fingerprint],
        limits: ReadLimits,
        *,
        is_first: bool,
    ) -> None:
        self._of = source
        self._limits = limits
        self._known = known
        self._noted: dict[str, Fingerprint | None] = {}
        """The fingerprints that changed since the last batch."""
        self._is_first = is_first
        self._rows = 0
        self.took = 0.0
        """The seconds that the last check of all files took."""
        self._again: dict[str, float] = {}
        """The time of the next check of a file, even if its stamp is unchanged."""
        self.failing: dict[str, float] = {}
        """The time since when a file is unreadable, while that is not reported."""
        self._moved: dict[int, str] = {}
        """Append-only files that no longer exist, by inode."""
        self._blocks = KeptBlocks()
        """The lines of other large files, of which few may change."""

    def batches(self, stop: threading.Event) -> Iterator[Batch[Any]]:
        """Yield the changes since the last round; several batches in a first load.

        Raises `SourceError` if the folder has been unreadable for the grace time.
        """
        made, began = time.time(), time.monotonic()
        try:
            present, deletions = self._present()
            self.took = time.monotonic() - began
        except OSError as error:
            if self._is_over("", time.monotonic()):
                raise SourceError(f"{self._of._pattern.base} cannot be read: {error}") from error
            return
        self.failing.pop("", None)
        self._rows = 0
        gathered, every = _GatheredNews(), {**present, **deletions}
        self._leave_gone(every, gathered)
        changed = self._changed_files(every)
        self._of._left = len(changed)
        with watch_progress(f"reading {self._of.name}") as progress:
            for number, path in enumerate(changed):
                if stop.is_set():
                    return
                self._of._left = len(changed) - number
                progress.count(self._rows, None)
                try:
                    piece = self._piece(path, every[path], path in deletions)
                except ReadingStopped:
                    return
                self._take(piece, gathered)
                if self._is_first and gathered.rows >= SIZE:
                    yield self._batch(gathered, made)
                    gathered = _GatheredNews()
        self._of._left = 0
        if gathered.is_news:
            yield self._batch(gathered, made)
        self._is_first = False

    def soon(self, now: float) -> float | None:
        """Return the seconds until a file must be checked again; None if none must."""
        due = [*self._again.values(), *([now + SOON] if self.failing else [])]
        return max(0.001, min(due) - now) if due else None

    def _present(self) -> tuple[dict[str, Stamp], dict[str, Stamp]]:
        """Return the stamps of the files with rows, and of the files with deletions, by path."""
        deletions = {} if self._of._deletions is None else self._of._deletions.files()
        return exclude_files(self._of._pattern.files(), deletions), deletions

    def _changed_files(self, present: Mapping[str, Stamp]) -> list[str]:
        """Return the files that are new or have another stamp; append-only files by age."""
        known = self._known
        found = [
            path
            for path, stamp in present.items()
            if path not in known or known[path].stamp != stamp
        ]
        if self._of._append_only:
            found.sort(key=lambda path: (present[path][1], path))
        return found

    def _leave_gone(self, present: Mapping[str, Stamp], gathered: _GatheredNews) -> None:
        """Delete the rows of deleted files.

        Of append-only files, deleted or renamed, the fingerprints are kept instead.
        """
        for waiting in (self.failing, self._again):
            for path in [path for path in waiting if path not in present]:
                del waiting[path]
        gone = [path for path in self._known if path not in present]
        for path in gone:
            self._solve(path, gathered)
        if self._of._append_only:
            self._moved = {self._known[path].stamp[3]: path for path in gone}
            return
        for path in gone:
            self._note(path, None)
            self._blocks.forget(path)
            gathered.origins[path] = []
            gathered.is_news = True

    def _piece(self, path: str, stamp: Stamp, deletes: bool) -> _Piece:
        """Read one file; an error is in the result. Sets when the file must be checked again."""
        try:
            news = self._moved_here(path, stamp) or self._read_file(path, self._known.get(path))
        except FileNotFoundError:  # deleted meanwhile: the next round notices
            self._again[path] = time.monotonic() + SOON
            return _Piece(path, deletes, None)
        except (OSError, UnfinishedFile) as error:
            return _Piece(path, deletes, None, self._failure(path, error))
        self.failing.pop(path, None)
        self._again.pop(path, None)
        if news.again:
            self._again[path] = time.monotonic() + SOON
        return _Piece(path, deletes, news)

    def _moved_here(self, path: str, stamp: Stamp) -> News | None:
        """Return the new contents of a renamed file; None for a new one that reuses an inode."""
        before = None if path in self._known else self._moved.get(stamp[3])
        if before is None:
            return None
        try:
            news = self._read_file(path, self._known[before])
        except RewrittenFile:
            return None
        if news.kind == "all":
            return None
        del self._moved[stamp[3]]
        self._note(before, None)
        return news

    def _read_file(self, path: str, known: Fingerprint | None) -> News:
        now, only = time.time_ns(), self._of._append_only
        blocks, form = self._blocks.of(path), self._of._format
        return read_news(path, known, form, now, self._limits, append_only=only, blocks=blocks)

    def _failure(self, path: str, error: Exception) -> SourceError | None:
        """Return the error of an unreadable file; None during the grace time, and once reported."""
        now = time.monotonic()
        if self._is_told(path):
            self._again[path] = now + GRACE
            return None
        if not isinstance(error, TooLarge) and not self._is_over(path, now):
            return None
        self.failing.pop(path, None)
        self._again[path] = now + GRACE
        told = (
            str(error) if isinstance(error, UnfinishedFile) else f"{path} cannot be read: {error}"
        )
        failure = SourceError(f"{told}\n  its rows stay as they were; start() tries again")
        failure.__cause__ = error
        return failure

    def _is_told(self, path: str) -> bool:
        """Return True if the error of an unreadable file is reported already."""
        known = self._known.get(path)
        return known is not None and known.is_failed

    def _is_over(self, path: str, now: float) -> bool:
        """Return True if a file has been unreadable for longer than the grace time."""
        return now - self.failing.setdefault(path, now) >= GRACE

    def _take(self, piece: _Piece, gathered: _GatheredNews) -> None:
        """Add the new contents of a file to the batch."""
        path = piece.path
        if piece.failure is not None:
            known = self._known.get(path, Fingerprint())
            self._note(path, replace(known, stamp=unsure_stamp(known.stamp), is_failed=True))
            gathered.refused[(UNREADABLE, path)] = [Refused(path, piece.failure)]
            gathered.is_news = True
        if piece.news is None:
            return
        news = piece.news
        before = self._known.get(path)
        self._solve(path, gathered)
        self._note(path, news.fingerprint)
        if news.kind == "same":
            return
        gathered.is_news = True
        gathered.rows += len(news.taken.rows)
        self._rows += len(news.taken.rows)
        if news.taken.refused:
            gathered.refused[path] = news.taken.refused
        if self._of._append_only:
            gathered.events.append((news.taken.rows, piece.deletes))
        elif news.kind == "more" and before is not None:
            gathered.appends[path] = news.taken.rows
            self._blocks.extend(path, news.taken.blocks)
        else:
            gathered.origins[path] = news.taken.rows
            self._blocks.replace(path, news.taken.blocks)

    def _solve(self, path: str, gathered: _GatheredNews) -> None:
        """Retract the error of a file that is readable again, or deleted."""
        if self._is_told(path):
            self._note(path, replace(self._known[path], is_failed=False))
            gathered.origins[(UNREADABLE, path)] = []
            gathered.is_news = True

    def _note(self, path: str, of: Fingerprint | None) -> None:
        """Record the fingerprint of a file; None deletes it."""
        if of is None:
            del self._known[path]
        else:
            self._known[path] = of
        self._noted[path] = of

    def _batch(self, gathered: _GatheredNews, made: float) -> Batch[Any]:
        """Return the gathered news as a batch, with the fingerprints noted since the last one."""
        noted, self._noted = self._noted, {}
        changes = {path: None if of is None else of.as_plain() for path, of in noted.items()}
        if not self._of._append_only:
            return Batch(
                origins=gathered.origins,
                appends=gathered.appends,
                refused=gathered.refused,
                token_changes=changes,
                made=made,
            )
        come, gone = _net_events(gathered.events, self._of._key)
        by_key = self._of._key is not None
        return Batch(
            come,
            deletes=gone if by_key else (),
            removes=() if by_key else gone,
            origins=gathered.origins,
            refused=gathered.refused,
            token_changes=changes,
            made=made,
        )


def _net_events(
    events: list[tuple[list[Any], bool]], key: Callable[[Any], Any] | None
) -> tuple[list[Any], list[Any]]:
    """Return inserted rows, and deleted rows or, with `key`, keys.

    events: rows, with True for deleted ones. The last event of a key counts; without keys,
    copies are added up.
    """
    if not any(deletes for _, deletes in events):
        return [row for rows, _ in events for row in rows], []
    if key is None:
        counts: Counter[Any] = Counter()
        for rows, deletes in events:
            (counts.subtract if deletes else counts.update)(rows)
        come = [row for row, count in counts.items() for _ in range(count)]
        return come, [row for row, count in counts.items() for _ in range(-count)]
    last: dict[Any, tuple[Any, bool]] = {}
    for rows, deletes in events:
        last.update((key(row), (row, deletes)) for row in rows)
    come = [row for row, deletes in last.values() if not deletes]
    return come, [of for of, (_, deletes) in last.items() if deletes]
