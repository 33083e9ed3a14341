"""Outboxes of changes, named targets in the catalog, and changes as DataFrames.

Batches that wait for a receiver, in files of a checkpoint, and what all of them come to.

    manifest.json               up to which batch, which of them is delivered, and the files
    000000000012.parquet        the changes of batch 12; without `.parquet`, a folder of files of
    sum-000000000011.parquet    those of batches before it, added up                      Spark's

The manifest is written aside and renamed. Files are added up as they grow: each change is written
some log(changes) times, and what is kept is about what the view holds.

State:  on disk.
Cost:   a batch O(its changes); what was given, O(rows of the view), once per process.
Source: the transactional outbox; log-structured merge trees.

Targets with a name in Spark's catalog, by which SQL of any session of it reads them.

    write_to("shop.towns")   a folder below the warehouse, and a view of the catalog over it:
                             SELECT * FROM parquet.`.../shop.towns.sink`

A view of the catalog reads the folder anew in each query, so it shows what the last batch has left.

State:  that of the folder.
Cost:   a statement of SQL per process.

Changes as DataFrames, for functions that write with Spark.

    batch n: files of the outbox  -->  function(DataFrame of the row's columns and `weight`, n)

What the function is given are the files of the batch, whoever has written them: of a view that is
on Spark no row of it comes by here.

State:  that of the outbox.
Source: Spark's `foreachBatch`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from reactive.borders.sinks.durable_outbox import ChangeBatch, Changed, FrameTarget, Position
from reactive.engine.collections.zset import Pair, consolidate, negate
from reactive.errors import OffloadError
from spark_backend.cluster.files import by_name, located, parquet_in, put, rows_in, table_in
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Typed
from spark_backend.sinks.changes_folder import (
    Note,
    note_of,
    noted,
    plain_name,
    read_json,
    unreadable,
)
from spark_backend.sinks.rows import ROW_TYPE, WEIGHT, RowColumns

MANIFEST = "manifest.json"
MOST_FILES = 8
"""So many files, the last of which is that of the last batch."""
Files = tuple[tuple[str, int], ...]
"""The names, with how many rows each has."""


@dataclass(frozen=True, slots=True)
class _Manifest:
    """What counts. The last file has the changes of the last batch."""

    note: Note
    delivered: bool
    files: Files
    has_classes: bool


class FileOutbox:
    """An `Outbox` in a folder.

    Parameters
    ----------
    folder: a path, or a URI of a file system that the session knows; without one, that pyarrow
        knows.
    row_type: what the rows are; by default what they look like.
    """

    def __init__(
        self, folder: str, *, row_type: Any = None, session: Session | None = None
    ) -> None:
        place = located(folder, session)
        self._files, self._root, self._uri = place.files, place.root, place.uri
        self._columns = RowColumns(row_type, (WEIGHT,))
        self.expect = self._columns.expect
        self._found: _Manifest | None = None

    def open(self, plan: str) -> Position | None:
        """Where it is; what no manifest names is deleted.

        Raises
        ------
        OffloadError: it has the changes of another query, or cannot be read.
        """
        self._files.create_dir(self._root, recursive=True)
        self._found = self._manifest()
        self._sweep()
        if self._found is None:
            return None
        self._found.note.check(plan, self._root)
        self._read(self._found.files[-1][0])
        return self._found.note.position

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """What leads from all that was staged to these rows."""
        wanted = list(rows)
        self._columns.learn([row for row, _ in wanted])
        return consolidate([*wanted, *negate(self._sum(self._segments()))])

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch."""
        table = self._columns.weighted(batch.changes)
        name = f"{batch.number:012}.parquet"
        self._write(name, table)
        self._count(batch, (*self._added_up(batch.number, self._written), (name, table.num_rows)))

    def difference_frame(self, rows: Any) -> Any:
        """As `difference`, of rows that Spark has."""
        files = self._segments()
        return rows.without_changes(self._uris(files), sum(rows for _, rows in files))

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """As `stage`, of changes that Spark has, which writes them."""
        of, changes = self._columns.typed(batch.changes.kept), batch.changes
        found = self._written_by(changes, of, f"{batch.number:012}")
        if not found[1]:
            self._sweep()
            return False

        def added_up(name: str, files: Files) -> tuple[str, int]:
            some = changes.only_changes(self._uris(files), sum(rows for _, rows in files))
            return self._written_by(some, of, name)

        self._count(batch, (*self._added_up(batch.number, added_up), found))
        return True

    def staged_files(self) -> tuple[int, list[str]] | None:
        """The number and the files, as Spark is told of them, of what `staged` gives."""
        found = self._found
        if found is None or found.delivered:
            return None
        return found.note.position.batch, self._uris(found.files[-1:])

    def staged(self) -> ChangeBatch | None:
        """The batch that was kept last, if it is not delivered.

        Raises
        ------
        OffloadError: an earlier process has kept it, and nobody says of what class its rows are.
        """
        found = self._found
        if found is None or found.delivered:
            return None
        if found.has_classes and not self._columns.is_known:
            raise OffloadError(
                f"batch {found.note.position.batch} in {self._root} has rows of a class of yours, "
                f"and the view has none now\n{ROW_TYPE}"
            )
        changes = self._columns.pairs(self._read(found.files[-1][0]))
        at = found.note.position
        return ChangeBatch(at.batch, changes, found.note.plan, at.version)

    def delivered(self) -> None:
        """The receiver has it."""
        assert self._found is not None
        self._put(replace(self._found, delivered=True))

    def _segments(self) -> Files:
        return () if self._found is None else self._found.files

    def _count(self, batch: ChangeBatch, files: Files) -> None:
        """Let files count, the last of which has the changes of a batch."""
        note = Note(batch.position, batch.plan)
        self._put(_Manifest(note, False, files, self._columns.has_classes))
        self._sweep()

    def _added_up(self, number: int, written: Callable[[str, Files], tuple[str, int]]) -> Files:
        """The files of all batches before one, those together that are of about the same size.

        Parameters
        ----------
        written: writes what some files come to.
        """
        files = list(self._segments())
        if len(files) < MOST_FILES:
            return tuple(files)
        last, rows = [files.pop()], 0
        rows = last[0][1]
        while files and files[-1][1] <= 2 * rows:
            last.append(files.pop())
            rows += last[-1][1]
        if len(last) > 1:
            last = [written(f"sum-{number - 1:012}", tuple(last))]
        return (*files, *last)

    def _written(self, name: str, files: Files) -> tuple[str, int]:
        """What some files come to, in a file."""
        summed = self._sum(files)
        self._write(f"{name}.parquet", self._columns.weighted(summed))
        return f"{name}.parquet", len(summed)

    def _written_by(self, changes: Any, of: Typed, name: str) -> tuple[str, int]:
        """Changes that Spark has, in a folder that it writes."""
        with suppress(FileNotFoundError):
            self._files.delete_dir(f"{self._root}/{name}")
        changes.write_changes(of, f"{self._uri}/{name}")
        paths = parquet_in(self._files, f"{self._root}/{name}")
        return name, sum(rows_in(self._files, path) for path in paths)

    def _paths(self, name: str) -> list[str]:
        """The files of a name in the manifest."""
        path = f"{self._root}/{name}"
        return [path] if name.endswith(".parquet") else parquet_in(self._files, path)

    def _uris(self, files: Files) -> list[str]:
        found = [path for name, _ in files for path in self._paths(name)]
        return [f"{self._uri}{path.removeprefix(self._root)}" for path in found]

    def _sum(self, files: Iterable[tuple[str, int]]) -> list[Pair]:
        found = [self._read(name) for name, _ in files]
        return self._columns.pairs(pa.concat_tables(found)) if found else []

    def _manifest(self) -> _Manifest | None:
        path = f"{self._root}/{MANIFEST}"
        try:
            found = read_json(self._files, path)
            files = tuple((plain_name(name), int(rows)) for name, rows in found["files"])
            if not files:
                raise ValueError("it names no files")
            flags = bool(found["delivered"]), bool(found["classes"])
            return _Manifest(note_of(found), flags[0], files, flags[1])
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable(path, error) from error

    def _put(self, manifest: _Manifest) -> None:
        """Let a manifest count."""
        at = manifest.note.position
        note = noted(ChangeBatch(at.batch, (), manifest.note.plan, at.version))
        rest = {"delivered": manifest.delivered, "classes": manifest.has_classes}
        found = {**note, **rest, "files": list(manifest.files)}
        put(self._files, f"{self._root}/{MANIFEST}", json.dumps(found).encode())
        self._found = manifest

    def _sweep(self) -> None:
        """Delete what does not count."""
        kept = {MANIFEST, *(name for name, _ in self._segments())}
        for info in self._files.get_file_info(fs.FileSelector(self._root)):
            if info.base_name not in kept:
                is_folder = info.type == fs.FileType.Directory
                delete = self._files.delete_dir if is_folder else self._files.delete_file
                with suppress(FileNotFoundError):
                    delete(f"{self._root}/{info.base_name}")

    def _write(self, name: str, table: pa.Table) -> None:
        with self._files.open_output_stream(f"{self._root}/{name}") as stream:
            pq.write_table(table, stream)

    def _read(self, name: str) -> pa.Table:
        found = [table_in(self._files, path) for path in self._paths(name)]
        if self._columns.schema is None:
            self._columns.wrote(found[0].schema)
        return pa.concat_tables(map(self._columns.as_written, found))


WAREHOUSE = "spark.sql.warehouse.dir"


class CatalogTarget:
    """A `Target` in a folder, with a name.

    Parameters
    ----------
    name: of the table, perhaps with that of its database before it.
    made: gives the target in a folder.
    """

    def __init__(self, session: Session, name: str, made: Callable[[str], FrameTarget]) -> None:
        self._session = session
        self._name = name
        self._folder = f"{_local(session.spark.conf.get(WAREHOUSE))}/{name}.sink"
        self._target = made(self._folder)
        self.expect = getattr(self._target, "expect", None)
        self._has_files = self._is_shown = False

    def open(self, plan: str) -> Position | None:
        """Where the folder is.

        Raises
        ------
        OffloadError: there is a table of that name, or a view that is none of ours.
        """
        self._check_name()
        position = self._target.open(plan)
        self._has_files, self._is_shown = position is not None, False
        return position

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """As of the folder."""
        return self._target.difference(rows)

    def stage(self, batch: ChangeBatch) -> None:
        """As of the folder."""
        self._target.stage(batch)
        self._has_files = True

    def difference_frame(self, rows: Any) -> Any:
        """As of the folder."""
        return self._target.difference_frame(rows)

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """As of the folder."""
        is_staged = self._target.stage_frame(batch)
        self._has_files = self._has_files or is_staged
        return is_staged

    def deliver(self) -> None:
        """Have the batch be in the folder, and the folder in the catalog."""
        self._target.deliver()
        if self._has_files and not self._is_shown:
            self._session.restart()
            self._session.spark.sql(f"CREATE OR REPLACE VIEW {self._name} AS {self._text}")
            self._is_shown = True

    @property
    def _text(self) -> str:
        return f"SELECT * FROM parquet.`{self._folder}`"

    def _check_name(self) -> None:
        spark = self._session.spark
        if not spark.catalog.tableExists(self._name):
            return
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {self._name}").collect()
        if not any(row[0] == "View Text" and row[1] == self._text for row in rows):
            raise OffloadError(
                f"there is a table {self._name} already, which this sink has not made\n"
                "  give it another name; to change this table, write a MERGE in a function of "
                "frames: view.changes_to(function, frames=True), as in docs/writing.md"
            )


def _local(warehouse: str) -> str:
    """A warehouse as a path, if it is on this machine."""
    path = warehouse.rstrip("/")
    if path.startswith("file:"):
        return "/" + unquote(path.removeprefix("file:")).lstrip("/")
    return path if "://" in path else str(Path(path).absolute())


class FramesTarget:
    """A `FrameTarget` that calls a function.

    Parameters
    ----------
    function: callable, (DataFrame, number).
    """

    def __init__(
        self, session: Session, function: Callable[[Any, int], object], outbox: FileOutbox
    ) -> None:
        self._session, self._function, self._outbox = session, function, outbox
        self.expect = outbox.expect

    def open(self, plan: str) -> Position | None:
        """Where the outbox is."""
        return self._outbox.open(plan)

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """What the function has not been told of these rows."""
        return self._outbox.difference(rows)

    def difference_frame(self, rows: Any) -> Any:
        """As `difference`, of rows that Spark has."""
        return self._outbox.difference_frame(rows)

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch."""
        self._outbox.stage(batch)

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """As `stage`, of changes that Spark has, which writes them."""
        return self._outbox.stage_frame(batch)

    def deliver(self) -> None:
        """Call the function with the batch that is kept, if there is one."""
        found = self._outbox.staged_files()
        if found is not None:
            self._session.restart()
            number, uris = found
            self._function(by_name(self._session.spark.read).parquet(*uris), number)
            self._outbox.delivered()
