"""Views elsewhere whose rows are read there: in memory, with files as Spark would write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reactive import OffloadError
from reactive.engine.collections.zset import Pair, Pairs, consolidate, repeat_by_weight
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Entry, ExternalInput, Remote
from spark_backend.codec.arrow import from_arrow
from spark_backend.codec.schema import Record, Typed
from spark_backend.sinks.rows import WEIGHT, RowColumns
from spark_backend.sinks.rows_folder import BUCKET, HashedRows
from tests.borders.offload.elsewhere import Elsewhere
from tests.borders.sinks.histories import bag
from tests.engine.remote.test_quiet import Telling

NO_VIEWS: Mapping[str, str] = MappingProxyType({})


@dataclass
class Away(Elsewhere):
    """Move parts into remotes whose rows are readable in place, unless `mute`."""

    kept: Any = None
    """The row type of views."""
    step: Callable[[], None] = lambda: None
    """Called between the steps of writing."""
    mute: bool = False
    written: list[int] = field(default_factory=list)
    """Number of rows written by each job."""

    def begin(
        self, fragment: Fragment, name: str, views: Mapping[str, str] = NO_VIEWS, of: object = None
    ) -> Remote:
        remote = Readable(fragment, self)
        self.begun.append(remote)
        return remote


class Readable(Telling):
    """Keep the sum of all `apply` calls for readers."""

    def __init__(self, part: Fragment, of: Away) -> None:
        super().__init__(part, of)
        self.away = of
        self.readers: list[Reader] = []
        self.is_closed = False

    @property
    def is_followable(self) -> bool:
        return not self.away.mute

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        super().apply(number, entries, fed, quiet=quiet)
        pairs = self._last[1]
        for reader in self.readers:
            reader.later += pairs
        return () if quiet else pairs

    def follow(self) -> Reader:
        self.readers.append(Reader(self, list(self.contents())))
        return self.readers[-1]

    def close(self) -> None:
        self.is_closed = True
        super().close()


class Reader:
    """The rows that one reader has read."""

    def __init__(self, of: Readable, first: list[Pair]) -> None:
        self._of, self._first = of, first
        self.later: list[Pair] = []
        self._taken = 0

    @property
    def is_over(self) -> bool:
        return self._of.is_closed

    @property
    def waiting(self) -> int:
        return len(self.later)

    def rows(self) -> Rows:
        return Rows(self._of.away, tuple(self._first))

    def changes(self) -> Rows | None:
        self._taken = len(self.later)
        return Rows(self._of.away, tuple(self.later)) if self.later else None

    def forget(self) -> None:
        self._first = []
        del self.later[: self._taken]

    def close(self) -> None:
        self._of.readers.remove(self)


@dataclass(frozen=True)
class Rows:
    """A stand-in for `FrameRows`."""

    away: Away
    pairs: tuple[Pair, ...]

    @property
    def kept(self) -> Typed:
        kept: Typed = self.away.kept
        return kept

    @property
    def rows(self) -> int:
        return len(self.pairs)

    def with_rows(self, more: Rows) -> Rows:
        return replace(self, pairs=(*self.pairs, *more.pairs))

    def without_changes(self, uris: Sequence[str], rows: int) -> Rows:
        return self._with(uris, rows, -1)

    def without_rows_in(self, uris: Sequence[str], rows: int) -> Rows:
        return self._with(uris, rows, -1)

    def with_rows_in(self, uris: Sequence[str], rows: int) -> Rows:
        return self._with(uris, rows, 1)

    def only_changes(self, uris: Sequence[str], rows: int) -> Rows:
        return self.of_changes(uris, rows)

    def of_changes(self, uris: Sequence[str], rows: int) -> Rows:
        return replace(self, pairs=())._with(uris, rows, 1)

    def _with(self, uris: Sequence[str], rows: int, sign: int) -> Rows:
        more = [(row, sign * n) for uri in uris for row, n in self._in(uri)]
        assert rows == len(more)
        return replace(self, pairs=(*self.pairs, *more))

    def write_changes(self, of: Typed, folder: str, buckets: HashedRows | None = None) -> None:
        net = consolidate(self.pairs)
        self.away.written.append(len(net))
        if buckets is None:
            half = (len(net) + 1) // 2
            for number, rows in enumerate((net[:half], net[half:])):
                if rows or not number:
                    path = f"{folder}/part-{number:05}.parquet"
                    self._write(path, self._columns().weighted_columns(rows), number)
        else:
            for bucket, pairs in self._placed(net, buckets).items():
                self._write(
                    f"{folder}/{BUCKET}={bucket}/p.parquet", self._columns().weighted_columns(pairs)
                )

    def write_rows(self, of: Typed, folder: str, buckets: HashedRows, whose: str) -> None:
        net = consolidate(self.pairs)
        self.away.written.append(len(net))
        for bucket, pairs in self._placed(net, buckets).items():
            if any(n < 0 for _, n in pairs):
                raise OffloadError("a row is to go that is not there")
            rows = list(repeat_by_weight(pairs))
            self._write(f"{folder}/{BUCKET}={bucket}/p.parquet", self._columns().table(rows))

    def _placed(self, pairs: Sequence[Pair], buckets: HashedRows) -> dict[int, list[Pair]]:
        found: dict[int, list[Pair]] = {}
        for row, n in pairs:
            found.setdefault(hash(bag([row]).popitem()[0]) % buckets.count, []).append((row, n))
        return found

    def _in(self, path: str) -> list[Pair]:
        table = pq.ParquetFile(path.removeprefix("file://")).read()
        columns = [table.column(n).combine_chunks() for n in table.column_names if n != WEIGHT]
        weights = table.column(WEIGHT).to_pylist() if WEIGHT in table.column_names else None
        assert isinstance(self.kept, Record)
        rows = from_arrow(self.kept, pa.StructArray.from_arrays(columns, self.kept.names))
        return list(zip(rows, weights or [1] * len(rows), strict=True))

    def _columns(self) -> RowColumns:
        made = RowColumns(None, (WEIGHT,))
        made._kept = self.kept
        return made

    def _write(self, path: str, table: pa.Table, before: int = 0) -> None:
        """Write a part of a job, which may end in the middle; `before` files are there already."""
        place = Path(path.removeprefix("file://"))
        self.away.step()
        if place.parent.exists() and len(list(place.parent.iterdir())) != before:
            raise OffloadError(f"{place.parent} is there already")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"half of")
        self.away.step()
        pq.write_table(table, place)
        self.away.step()


class Session:
    """Read files as Spark would: a frame is a list of rows with weights."""

    @property
    def spark(self) -> Any:
        reader: Any = SimpleNamespace(parquet=self._read)
        reader.option = lambda name, value: reader
        return SimpleNamespace(read=reader)

    def restart(self) -> None: ...

    def _read(self, *uris: str) -> list[tuple[tuple[Any, ...], int]]:
        tables = [pq.ParquetFile(uri.removeprefix("file://")).read() for uri in uris]
        rows = [row for table in tables for row in zip(*table.to_pydict().values(), strict=True)]
        return [(row[:-1], row[-1]) for row in rows]
