"""Followed files: the files that match a pattern, the times to check them, their new contents.

The new contents of a file, compared with the contents read before:

    it begins as before   the rows after that
    it is unchanged       nothing
    it has changed        all rows

A fingerprint tells these apart: the stamp of the file, and a hash of the bytes that were read. For
an append-only file, the hash covers only the last of these bytes, so that the rest is not read
again.

Files are checked when the system reports changes, after some time, or on request:

    watchfiles --changes--> bell --wakes--> the source, which compares stamps
    catch_up() --request--> bell <--reports that the check is done--

Reports of the system are only hints: links, network drives, and new folders are checked every few
seconds, for at most a fiftieth of the time.

A stamp is what the file system records of a file: size, times of change, inode. Equal stamps mean
equal contents, unless the file was changed twice within one tick of its clock.

State:  which checks were requested, and which are done; callers keep the fingerprint of each file.
Cost:   a check takes O(files that match, and folders searched); reading O(new bytes), and the hash
        of the old ones.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from optimizer.errors import PlanError
from reactive.borders.sources.files.blocks import LineBlock
from reactive.borders.sources.files.texts import (
    FileChunk,
    FilePlace,
    Format,
    ReadLimits,
    UnfinishedFile,
)
from reactive.engine.runtime.collector import pause_collector

EVERY = 2.0
"""The seconds between two checks without a request; half as long without watchfiles."""
SHARE = 50
"""The least factor of the pause after a check to the check."""
STEP, LONGEST, PAUSE = 20, 200, 500
"""Milliseconds: without a change, to end a round; until a round ends at the latest.

Between two checks that the folders exist.
"""


class Bell:
    """A bell that wakes a source waiting for changes of files."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._rung = False
        self._asked = self._done = 0
        self._is_over = False

    def ring(self) -> None:
        """Report that files may have changed."""
        with self._changed:
            self._rung = True
            self._changed.notify_all()

    def ask(self) -> int:
        """Request a check. Return its number."""
        with self._changed:
            self._asked += 1
            self._rung = True
            self._changed.notify_all()
            return self._asked

    def begin(self) -> int:
        """Begin a check. Return the number of the last request."""
        with self._changed:
            self._rung = False
            return self._asked

    def end(self, number: int) -> None:
        """Record that the check of request `number` is done, and its batches are committed."""
        with self._changed:
            self._done = number
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until the bell rings, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self._rung, seconds)

    def wait_for(self, number: int, timeout: float | None) -> bool | None:
        """Return True once a check is done, False if it never will be, None after `timeout`."""
        with self._changed:
            told = self._changed.wait_for(lambda: self._done >= number or self._is_over, timeout)
            return self._done >= number if told else None

    @contextmanager
    def watching(
        self, patterns: Sequence[PathPattern], stop: threading.Event, *, told: bool
    ) -> Iterator[None]:
        """Ring when the system reports changes, while the source runs.

        Without `told`, the system is not asked to report any.
        """
        over = threading.Event()
        self._is_over = False
        threading.Thread(target=self._pass_on, args=(stop, over), daemon=True).start()
        try:
            for pattern in patterns if told else ():
                name = f"reactive files {pattern}"
                args = (self, pattern, over)
                threading.Thread(target=_ring_on_changes, args=args, daemon=True, name=name).start()
            yield
        finally:
            over.set()
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _pass_on(self, stop: threading.Event, over: threading.Event) -> None:
        """Wake the source when it must stop."""
        while not over.is_set():
            if stop.wait(EVERY):
                self.ring()
                return


def has_watchfiles() -> bool:
    """Return True if watchfiles is installed, which reports changes."""
    return find_spec("watchfiles") is not None


def seconds_until_check(took: float, *, told: bool) -> float:
    """Return the seconds until the next check, after one that took `took` seconds.

    told: True if the system reports changes, so that checks may be rarer.
    """
    return max(EVERY if told else EVERY / 2, SHARE * took)


def _ring_on_changes(bell: Bell, pattern: PathPattern, over: threading.Event) -> None:
    """Ring when files of a pattern change, also in new folders.

    After changes it rings once more, because files in a new folder may precede its watch.
    """
    base = pattern.base
    while not over.is_set():
        before = _folder_identity(base)
        if before is None:
            over.wait(PAUSE / 1000)
            continue
        is_new = True
        try:
            for changes in _watch_changes(base, over, recursive=pattern.is_deep):
                if changes or is_new:
                    bell.ring()
                is_new = bool(changes)
                if _folder_identity(base) != before:
                    break
        except Exception:  # the limit of watched folders is reached: only timed checks
            return


def _watch_changes(base: Path, over: threading.Event, *, recursive: bool) -> Iterator[set[Any]]:
    """Return an iterator over sets of changes below a folder; empty sets while nothing changes."""
    import watchfiles

    found: Iterator[set[Any]] = watchfiles.watch(
        base,
        watch_filter=None,
        step=STEP,
        debounce=LONGEST,
        rust_timeout=PAUSE,
        yield_on_timeout=True,
        stop_event=over,
        raise_interrupt=False,
        recursive=recursive,
    )
    return found


def _folder_identity(folder: Path) -> tuple[int, int] | None:
    """Return the device and inode of a folder; None if it cannot be read."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


Stamp: TypeAlias = tuple[int, int, int, int]
"""The size in bytes, two times of change in nanoseconds (contents, file), and the inode."""
UNSURE: Stamp = (-1, 0, 0, 0)
"""A stamp that equals no other."""
TICK, LONG_TICK = 50_000_000, 2_000_000_000
"""The nanoseconds within which two changes may get equal times.

The second for file systems with times in whole seconds.
"""


class PathPattern:
    """A pattern of paths, as in `glob`: `*`, `?`, `[...]`, `**`.

    A part that exists literally, such as a folder `x[1]`, is taken literally. Relative paths are
    resolved against the current folder at creation; `~` is the home directory.
    """

    def __init__(self, text: str | os.PathLike[str]) -> None:
        self.text = os.fspath(text) if isinstance(text, str | os.PathLike) else ""
        if not isinstance(self.text, str) or not self.text:
            raise PlanError(f"{text!r} is no pattern of paths\n  give one such as 'folder/*.jsonl'")
        self._path = Path(self.text).expanduser().absolute()
        if self._path.is_dir():
            some = str(Path(self.text) / "*.jsonl")
            raise PlanError(
                f"{self.text!r} is a folder\n"
                f"  say which of its files: {some!r}; those at any depth with '**'"
            )

    def __str__(self) -> str:
        return self.text

    @property
    def base(self) -> Path:
        """The folder that contains all files that may match."""
        return self._split()[0]

    @property
    def is_deep(self) -> bool:
        """True if files in subfolders of the base may match."""
        return len(self._split()[1]) > 1

    def files(self) -> dict[str, Stamp]:
        """Return the stamp of each matching file by its path with slashes, in order.

        Raises
        ------
        OSError: their folder cannot be read.
        """
        base, parts = self._split()
        try:
            os.scandir(base).close()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        found = {}
        for path in sorted({*_matching_paths(str(base), parts)}):
            stamp = stamp_of(path)
            if stamp is not None:
                found[Path(path).as_posix()] = stamp
        return found

    def _split(self) -> tuple[Path, tuple[str, ...]]:
        """Return the base, and the patterns of the parts below it."""
        *parents, name = self._path.parts
        base = Path(self._path.anchor)
        for place, part in enumerate(parents):
            if glob.has_magic(part) and not os.path.lexists(base / part):
                return base, (*parents[place:], name)
            base /= part
        return base, (glob.escape(name) if os.path.lexists(base / name) else name,)


def _matching_paths(folder: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield paths below a folder that match patterns of their parts; `**` matches any folders."""
    place = parts.index("**") if "**" in parts else len(parts)
    first, rest = parts[:place], parts[place + 1 :]
    found = glob.glob(os.path.join(*first), root_dir=folder) if first else [""]  # noqa: PTH118, PTH207
    paths = [os.path.join(folder, each) for each in found]  # noqa: PTH118
    if place == len(parts):
        yield from paths
        return
    for path in paths:
        for below in _folders(path, frozenset()):
            yield from _matching_paths(below, rest or ("*",))


def _folders(folder: str, above: frozenset[tuple[int, int]]) -> Iterator[str]:
    """Yield a folder and those below it, also through links, without cycles and hidden ones."""
    try:
        here = os.stat(folder)  # noqa: PTH116
        identity = (here.st_dev, here.st_ino)
        if identity in above:
            return
        with os.scandir(folder) as entries:
            inside = [e.path for e in entries if not e.name.startswith(".") and e.is_dir()]
    except OSError:
        return
    yield folder
    for each in inside:
        yield from _folders(each, above | {identity})


def stamp_of(path: str) -> Stamp | None:
    """Return the stamp of a file; None if there is none, or it is a folder."""
    try:
        return stamp(os.stat(path))  # noqa: PTH116  # faster than `pathlib`
    except OSError:
        return None


def stamp(found: os.stat_result) -> Stamp | None:
    """Return the stamp of a regular file; None for others."""
    if not stat.S_ISREG(found.st_mode):
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def unsure_stamp(of: Stamp) -> Stamp:
    """Return a stamp of the same file that equals no real one."""
    return (*UNSURE[:3], of[3])


def is_sure(of: Stamp, now: int | None = None) -> bool:
    """Return True if a later change cannot have the times of this stamp.

    now: the time in nanoseconds, by default the current one.
    """
    latest = max(of[1], of[2])
    tick = LONG_TICK if of[1] % 1_000_000_000 == 0 else TICK
    return not -tick < (time.time_ns() if now is None else now) - latest < tick


def folder_pattern(given: str | os.PathLike[str], like: PathPattern) -> PathPattern:
    """Return the pattern for a folder, with the file names of `like`; or `given` as a pattern."""
    text = os.fspath(given)
    is_folder = Path(text).is_dir() or not (glob.has_magic(text) or Path(text).suffix)
    return PathPattern(Path(text) / Path(like.text).name if is_folder else text)


def exclude_files(files: dict[str, Stamp], others: Iterable[Any]) -> dict[str, Stamp]:
    """Return the files that are not among others."""
    left_out = {*others}
    return {path: of for path, of in files.items() if path not in left_out} if left_out else files


PIECE = 1 << 20
"""The bytes that are read at a time."""
LARGE = 1 << 24
"""The bytes of new contents that are read at a time."""
TAIL = 4096
"""The bytes at the end of an append-only file whose hash is kept."""
CALM = 1_000_000_000
"""The nanoseconds without a change after which the last line counts as complete."""

Kind: TypeAlias = Literal["same", "more", "all"]


class RewrittenFile(UnfinishedFile):
    """An append-only file was changed otherwise."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The facts about a file when it was read.

    stamp: its stamp; `UNSURE` if it may have changed within a tick.
    length: the number of bytes read, in `lines` lines.
    digest: the hash of these bytes; empty if the file could not be read.
    columns: the names of columns, for formats with a header.
    is_ragged: True if the bytes end within a line.
    is_failed: True if it was reported as unreadable.
    """

    stamp: Stamp = UNSURE
    length: int = 0
    lines: int = 0
    digest: str = ""
    columns: tuple[str, ...] = ()
    is_ragged: bool = False
    is_failed: bool = False

    def as_plain(self) -> tuple[Any, ...]:
        """Return the fingerprint as plain values, for a token."""
        flags = (self.is_ragged, self.is_failed)
        return (self.stamp, self.length, self.lines, self.digest, self.columns, *flags)


def fingerprint_of_plain(plain: Sequence[Any]) -> Fingerprint:
    """Restore a fingerprint from plain values; lists may replace tuples."""
    stamp, length, lines, digest, columns, *flags = plain
    sizes: Any = tuple(stamp)
    return Fingerprint(sizes, length, lines, digest, tuple(columns), *map(bool, flags))


@dataclass(frozen=True, slots=True)
class News:
    """The new contents of a file; `again` requests another check soon."""

    kind: Kind
    taken: FileChunk
    fingerprint: Fingerprint
    again: bool


def read_news(
    path: str,
    known: Fingerprint | None,
    form: Format,
    now: int,
    limits: ReadLimits,
    *,
    append_only: bool,
    blocks: Sequence[LineBlock] = (),
) -> News:
    """Read the new contents of a file.

    Parameters
    ----------
    now: the time in nanoseconds, taken before the stamp.
    blocks: the blocks of the file as it was read before.

    Raises
    ------
    OSError: the file cannot be read.
    UnfinishedFile: the file does not have its format, perhaps not yet.
    ReadingStopped: the source must stop.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        found = stamp(os.fstat(file.fileno()))
        if found is None:
            raise UnfinishedFile(f"{path} is no file")
        whole = FilePlace(path, limits=limits, blocks=blocks)
        return _FileReading(whole, file, known, form, found, now, append_only).news()


class _FileReading:
    """One reading of a file."""

    def __init__(
        self,
        whole: FilePlace,
        file: BinaryIO | Any,
        known: Fingerprint | None,
        form: Format,
        found: Stamp,
        now: int,
        append_only: bool,
    ) -> None:
        self._whole, self._limits, self._path = whole, whole.limits, whole.path
        self._file = file
        self._known = known
        self._form = form
        self._stamp = found
        self._is_sure = is_sure(found, now)
        self._is_calm = now - found[1] >= CALM or found[1] > now + CALM
        self._append_only = append_only

    def news(self) -> News:
        """Return the new contents. Raises `RewrittenFile` if an append-only file was changed."""
        known = self._known
        if known is not None and known.digest:
            if (begun := self._beginning(known)) is not None:
                rest = self._rest(known.length)
                if not rest:
                    return self._make_news("same", FileChunk(), known)
                if self._form.grows(self._path) and (
                    not known.is_ragged or rest[:1] in (b"\n", b"\r")
                ):
                    return self._more(known, begun, rest)
            if self._append_only and not self._is_another(known):
                raise RewrittenFile(f"{self._path} was changed, and not only appended to")
        self._file.seek(0)
        data = self._rest(0)
        taken = self._take(data, self._whole)
        begun = _new_digest(
            data[: taken.length][-TAIL:] if self._append_only else data[: taken.length]
        )
        return self._make_news("all", taken, _fingerprint(taken, 0, begun))

    def _more(self, known: Fingerprint, begun: Any, rest: bytes) -> News:
        """Return the news of a file that has grown by `rest`; `begun` is the hash up to there."""
        taken = self._take(rest, FilePlace(self._path, known.lines, known.columns, self._limits))
        if not (taken.length or taken.refused):
            return self._make_news("same", taken, known)
        begun.update(rest[: taken.length])
        if self._append_only:
            length = known.length + taken.length
            self._file.seek(max(0, length - TAIL))
            begun = _new_digest(self._file.read(min(TAIL, length)))
        kind: Kind = "more" if taken.rows or taken.refused else "same"
        return self._make_news(kind, taken, _fingerprint(taken, known.length, begun))

    def _rest(self, begin: int) -> bytes:
        """Read from the current position, `begin`, to the end of the file."""
        self._limits.check_size(self._path, self._stamp[0] - begin)
        pieces, size = list[bytes](), begin
        while piece := self._file.read(LARGE):
            pieces.append(piece)
            size += len(piece)
            self._limits.go_on()
            self._limits.check_size(self._path, size - begin)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _take(self, data: bytes, place: FilePlace) -> FileChunk:
        with pause_collector():
            return self._form.take(data, place, is_calm=self._is_calm)

    def _beginning(self, known: Fingerprint) -> Any:
        """Return the hash of the bytes read earlier, and move behind them; None if they changed."""
        if self._stamp[0] < known.length:
            return None
        begin = max(0, known.length - TAIL) if self._append_only else 0
        self._file.seek(begin)
        found, left = _new_digest(b""), known.length - begin
        while left:
            piece = self._file.read(min(left, PIECE))
            self._limits.go_on()
            if not piece:
                return None
            found.update(piece)
            left -= len(piece)
        return found if found.hexdigest() == known.digest else None

    def _is_another(self, known: Fingerprint) -> bool:
        """Return True if a different file has the name, as after a rotation."""
        return self._stamp[3] != known.stamp[3] or self._stamp[0] < known.length

    def _make_news(self, kind: Kind, taken: FileChunk, of: Fingerprint) -> News:
        """Return news with the fingerprint `of`, to be read again if the file may still change."""
        waits = taken.waits and not self._is_calm
        is_known = self._is_sure and not waits
        of = replace(
            of, stamp=self._stamp if is_known else unsure_stamp(self._stamp), is_failed=False
        )
        return News(kind, taken, of, not is_known)


def _fingerprint(taken: FileChunk, before: int, begun: Any) -> Fingerprint:
    length, digest = before + taken.length, begun.hexdigest()
    return Fingerprint(UNSURE, length, taken.lines, digest, taken.columns, taken.is_ragged)


def _new_digest(data: bytes) -> Any:
    return hashlib.blake2b(data, digest_size=16)
