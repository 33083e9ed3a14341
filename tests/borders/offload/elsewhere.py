"""An offload that keeps all rows in this process, and fails or waits on request."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from reactive import OffloadError
from reactive.borders.offload.spilling import SpilledRows
from reactive.borders.sinks.durable_outbox import CalledTarget, MemoryOutbox, Outbox, SinkTarget
from reactive.borders.sinks.making import SinkOptions
from reactive.engine.collections.zset import (
    Pair,
    Pairs,
    canonical,
    consolidate,
    negate,
    repeat_by_weight,
)
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import (
    Entry,
    ExternalInput,
    ExternalRows,
    ExternalStream,
    Once,
    Remote,
    StreamOptions,
)
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.store import BagStore
from tests.engine.remote.in_memory import InMemory

NO_VIEWS: Mapping[str, str] = {}


def _open() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass
class Elsewhere:
    """Move all movable parts into `InMemory` remotes."""

    threshold_rows: int | None = None
    threshold_bytes: int | None = None
    flush_interval: float | None = None
    max_waiting: int | None = 1_000_000
    max_waiting_bytes: int | None = None
    failures: int = 0
    """Number of next flushes that fail."""
    gone: bool = False
    """True if all flushes fail, because the system cannot be reached."""
    lost: bool = False
    """True if the rows cannot be read either."""
    let: threading.Event = field(default_factory=_open)
    """While this is cleared, no changes are applied."""
    applying: threading.Event = field(default_factory=threading.Event)
    """Set when something is about to be applied."""
    begun: list[Remote] = field(default_factory=list)
    closed: int = 0
    users: int = 0

    def refuse(self, part: Fragment) -> str | None:
        return None

    def progress(self, name: str, rows: int) -> AbstractContextManager[None]:
        return nullcontext()

    def apart(self, fragment: Fragment) -> str | None:
        return "one operator at a time"

    def begin(
        self, part: Fragment, name: str, views: Mapping[str, str] = NO_VIEWS, of: object = None
    ) -> Remote:
        remote = Failing(part, self)
        self.begun.append(remote)
        return remote

    def scan(self, part: Fragment, name: str) -> Remote:
        return Scan(part, self)

    def rows(self, rows: Any, row_type: Any, key: Any, name: str) -> ExternalRows:
        return Kept(rows, key)

    def stream(
        self, rows: Any, row_type: Any, key: Any, name: str, options: StreamOptions
    ) -> ExternalStream:
        raise OffloadError("there are no streams in memory")

    def frame(self, remote: Any, pairs: Iterable[Pair], row_type: Any) -> Any:
        return list(pairs) if remote is None else list(remote.contents())

    def nested(self, fragment: Fragment, parts: Sequence[Any]) -> None:
        """Ignore the announcement: the rows of all levels are available."""

    def target(self, place: str, options: SinkOptions) -> SinkTarget:
        raise OffloadError("there are no files in memory")

    def outbox(self, name: str | None, row_type: Any) -> Outbox | None:
        return None

    def frame_target(
        self, function: Callable[[Any, int], object], name: str | None, row_type: Any
    ) -> SinkTarget:
        return CalledTarget(lambda number, changes: function(changes, number), MemoryOutbox())

    def spill(self, name: str, row_type: Any, rows: BagStore | KeyedStore) -> SpilledRows:
        return Apart(rows) if isinstance(rows, BagStore) else ApartByKey(rows)

    def release(self) -> None: ...

    def open(self) -> None:
        self.users += 1

    def close(self) -> None:
        self.users -= 1


class Failing(InMemory):
    """Raise or wait before applying, on request."""

    def __init__(self, part: Fragment, of: Elsewhere) -> None:
        super().__init__(part)
        self._offload = of
        self.numbers: list[int] = []

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        of = self._offload
        of.applying.set()
        assert of.let.wait(30)
        if of.gone:
            raise OffloadError("elsewhere is gone for good")
        if of.failures:
            of.failures -= 1
            raise ConnectionError("elsewhere is gone")
        self.numbers.append(number)
        return super().apply(number, entries, fed, quiet=quiet)

    def contents(self) -> Iterable[Pair]:
        if self._offload.lost:
            raise OffloadError("what was there is lost")
        return super().contents()

    def close(self) -> None:
        self._offload.closed += 1
        super().close()


class Together(Elsewhere):
    """Execute whole parts of plans in one step."""

    def apart(self, fragment: Fragment) -> str | None:
        return None

    def begin(
        self, part: Fragment, name: str, views: Mapping[str, str] = NO_VIEWS, of: object = None
    ) -> Remote:
        self.begun.append(InOneBucket(part, self) if part.is_whole else Failing(part, self))
        return self.begun[-1]


class InOneBucket(Failing):
    """Evaluate the whole part over all rows."""

    def bucket(self, key: Any) -> int:
        return 0

    def pack(self, place: int, key: Any, row: Any) -> tuple[int, Any]:
        return 0, row


class Scan(Failing):
    """Yield rows, and keep them too, being in memory."""


class Kept:
    """Rows of a table by version, in memory; a frame is a list of rows."""

    def __init__(self, rows: Iterable[Any], key: str | None) -> None:
        self._versions: list[list[Pair]] = [[(row, 1) for row in rows]]
        self._key = attrgetter(key) if key else None
        self._batches: dict[str, int] = {}

    @property
    def version(self) -> int:
        return len(self._versions) - 1

    def check(self, row: Any) -> None:
        if row is None:
            raise OffloadError("None cannot be kept elsewhere")

    def append(self, pairs: Sequence[Pair]) -> int:
        self._versions.append(list(pairs))
        return self.version

    def append_frame(self, frame: Any, weight: int, once: Once | None = None) -> int:
        if self._came(once):
            return self.version
        return self.append([(row, weight) for row in frame])

    def replace(self, frame: Any, once: Once | None = None) -> int:
        if self._came(once):
            return self.version
        return self.append(consolidate([*negate(self.pairs()), *((row, 1) for row in frame)]))

    def _came(self, once: Once | None) -> bool:
        if once is None:
            return False
        query, batch = once
        before = self._batches.get(query, -1)
        self._batches[query] = max(before, batch)
        return before >= batch

    def upsert(self, rows: Any, once: Once | None = None) -> int:
        if self._came(once):
            return self.version
        assert self._key is not None
        keys = {self._key(row) for row in rows}
        gone = [(row, -weight) for row, weight in self.pairs() if self._key(row) in keys]
        return self.append([*gone, *((row, 1) for row in rows)])

    def since(self, after: int, upto: int) -> list[Pair]:
        return [pair for changes in self._versions[after + 1 : upto + 1] for pair in changes]

    def pairs(self) -> Iterator[Pair]:
        return iter(consolidate(self.since(-1, self.version)))

    def size(self) -> int:
        return sum(weight for _, weight in self.pairs())

    def stop(self) -> None: ...

    def steps(self, chain: Sequence[Any]) -> list[str]:
        return [f"{type(node).__name__}: in memory" for node in chain]

    def frame(self) -> Any:
        return list(repeat_by_weight(self.pairs()))


class Apart(BagStore):
    """Rows of a spilled table: other objects each time."""

    def __init__(self, rows: BagStore) -> None:
        super().__init__()
        for row, count in rows.take(len(rows)):
            super().add(row, count)

    def move(self, count: int) -> int:
        return 0

    def add(self, row: Any, count: int) -> Pair:
        super().add(row, count)
        return (row, count)

    def add_rows(self, rows: Sequence[Any]) -> Sequence[Any]:
        super().add_rows(rows)
        return rows

    def remove(self, row: Any, count: int) -> Pair:
        super().remove(row, count)
        return (row, -count)

    def remove_rows(self, rows: Sequence[Any]) -> Sequence[Any]:
        super().remove_rows(rows)
        return rows

    def pairs(self) -> Iterable[Pair]:
        return ((_another(row), count) for row, count in super().pairs())

    def close(self) -> None: ...


class ApartByKey(KeyedStore):
    """Rows of a spilled keyed table: other objects each time."""

    def __init__(self, rows: KeyedStore) -> None:
        super().__init__(rows.key)
        for row in rows.take(len(rows)):
            super().add(row, 1)

    def move(self, count: int) -> int:
        return 0

    def get(self, key: Any) -> Any:
        held = super().get(key)
        return None if held is None else _another(held)

    def pairs(self) -> Iterable[Pair]:
        return ((_another(row), count) for row, count in super().pairs())

    def close(self) -> None: ...


def _another(row: Any) -> Any:
    return canonical(pickle.loads(pickle.dumps(row)))
