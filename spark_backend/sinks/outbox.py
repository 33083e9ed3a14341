"""Outboxes of changes, named targets in the catalog, and changes as DataFrames.

`FileOutbox` stores the batches that wait for a receiver in files, and the sum of all batches:

    manifest.json               the last batch, whether it is delivered, and the files
    000000000012.parquet        the changes of batch 12; without `.parquet`, a folder of Spark files
    sum-000000000011.parquet    the net changes of earlier batches

The manifest is written aside and renamed. Files are merged as they grow: each change is written
about log(changes) times, and the files have about as many rows as the view.

State:  on disk.
Cost:   a batch O(its changes); reading all changes, O(rows of the view), once per process.
Source: the transactional outbox; log-structured merge trees.

`CatalogTarget` gives a target a name in Spark's catalog, so that SQL of any session can read it:

    write_to("shop.towns")   a folder below the warehouse, and a view of the catalog over it:
                             SELECT * FROM parquet.`.../shop.towns.sink`

A view of the catalog reads the folder again in each query, so it shows the last batch.

State:  that of the folder.
Cost:   a SQL statement per process.

`FramesTarget` passes changes as DataFrames to a function that writes with Spark:

    batch n: files of the outbox  -->  function(DataFrame of the row's columns and `weight`, n)

The function reads the files of the batch: rows of a view on Spark do not pass through the driver.

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

from reactive.borders.sinks.durable_outbox import ChangeBatch, ChangedRows, FrameTarget, Position
from reactive.engine.collections.zset import Pair, consolidate, negate
from reactive.errors import OffloadError
from spark_backend.cluster.files import (
    count_rows,
    list_parquet,
    locate,
    read_table,
    replace_file,
    with_literal_paths,
)
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Typed
from spark_backend.sinks.changes_folder import (
    Note,
    check_plain_name,
    make_note,
    parse_note,
    read_json,
    unreadable_error,
)
from spark_backend.sinks.rows import ROW_TYPE, WEIGHT, RowColumns

MANIFEST = "manifest.json"
MOST_FILES = 8
"""The number of files from that files are merged; the last is the file of the last batch."""
Files = tuple[tuple[str, int], ...]
"""The names of files, with their numbers of rows."""


@dataclass(frozen=True, slots=True)
class _Manifest:
    """The current files. The last one has the changes of the last batch."""

    note: Note
    delivered: bool
    files: Files
    has_classes: bool


class FileOutbox:
    """An `Outbox` in a folder.

    Parameters
    ----------
    folder: a path, or a URI of a file system that the session knows; without a session, that
        pyarrow knows.
    row_type: the type of the rows; by default it is inferred.
    """

    def __init__(
        self, folder: str, *, row_type: Any = None, session: Session | None = None
    ) -> None:
        place = locate(folder, session)
        self._files, self._root, self._uri = place.files, place.root, place.uri
        self._columns = RowColumns(row_type, (WEIGHT,))
        self.expect = self._columns.expect
        self._found: _Manifest | None = None

    def open(self, plan: str) -> Position | None:
        """Return the position of the outbox, None if it has no batch; delete files that no manifest
        names.

        Raises
        ------
        OffloadError: it has the changes of another query, or cannot be read.
        """
        self._files.create_dir(self._root, recursive=True)
        self._found = self._read_manifest()
        self._sweep()
        if self._found is None:
            return None
        self._found.note.check(plan, self._root)
        self._read_files(self._found.files[-1][0])
        return self._found.note.position

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the difference from the sum of all batches to `rows`."""
        wanted = list(rows)
        self._columns.learn([row for row, _ in wanted])
        return consolidate([*wanted, *negate(self._sum(self._segments()))])

    def stage(self, batch: ChangeBatch) -> None:
        """Store a batch."""
        table = self._columns.weighted_columns(batch.changes)
        name = f"{batch.number:012}.parquet"
        self._write(name, table)
        self._publish(
            batch, (*self._merge_files(batch.number, self._write_sum), (name, table.num_rows))
        )

    def difference_frame(self, rows: Any) -> Any:
        """Return the difference as `difference` does, for rows on Spark."""
        files = self._segments()
        return rows.without_changes(self._uris(files), sum(rows for _, rows in files))

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """Stage a batch as `stage` does, for changes on Spark, which writes them."""
        of, changes = self._columns.typed(batch.changes.kept), batch.changes
        found = self._write_on_spark(changes, of, f"{batch.number:012}")
        if not found[1]:
            self._sweep()
            return False

        def added_up(name: str, files: Files) -> tuple[str, int]:
            some = changes.only_changes(self._uris(files), sum(rows for _, rows in files))
            return self._write_on_spark(some, of, name)

        self._publish(batch, (*self._merge_files(batch.number, added_up), found))
        return True

    def staged_files(self) -> tuple[int, list[str]] | None:
        """Return the number and the file URIs of the last batch.

        Return None if it is delivered, or there is none.
        """
        found = self._found
        if found is None or found.delivered:
            return None
        return found.note.position.batch, self._uris(found.files[-1:])

    def staged(self) -> ChangeBatch | None:
        """Return the last batch; None if it is delivered, or there is none.

        Raises
        ------
        OffloadError: an earlier process stored it, and the class of its rows is unknown.
        """
        found = self._found
        if found is None or found.delivered:
            return None
        if found.has_classes and not self._columns.is_known:
            raise OffloadError(
                f"batch {found.note.position.batch} in {self._root} has rows of a class of yours, "
                f"and the view has none now\n{ROW_TYPE}"
            )
        changes = self._columns.pairs(self._read_files(found.files[-1][0]))
        at = found.note.position
        return ChangeBatch(at.batch, changes, found.note.plan, at.version)

    def mark_delivered(self) -> None:
        """Mark the batch as delivered."""
        assert self._found is not None
        self._write_manifest(replace(self._found, delivered=True))

    def _segments(self) -> Files:
        return () if self._found is None else self._found.files

    def _publish(self, batch: ChangeBatch, files: Files) -> None:
        """Publish files, with the changes of a batch in the last one."""
        note = Note(batch.position, batch.plan)
        self._write_manifest(_Manifest(note, False, files, self._columns.has_classes))
        self._sweep()

    def _merge_files(self, number: int, written: Callable[[str, Files], tuple[str, int]]) -> Files:
        """Return the files of all batches before one; the last files are merged if there are many.

        Parameters
        ----------
        written: writes the sum of some files.
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

    def _write_sum(self, name: str, files: Files) -> tuple[str, int]:
        """Write the sum of some files to a file."""
        summed = self._sum(files)
        self._write(f"{name}.parquet", self._columns.weighted_columns(summed))
        return f"{name}.parquet", len(summed)

    def _write_on_spark(self, changes: Any, of: Typed, name: str) -> tuple[str, int]:
        """Write changes on Spark to a folder."""
        with suppress(FileNotFoundError):
            self._files.delete_dir(f"{self._root}/{name}")
        changes.write_changes(of, f"{self._uri}/{name}")
        paths = list_parquet(self._files, f"{self._root}/{name}")
        return name, sum(count_rows(self._files, path) for path in paths)

    def _paths(self, name: str) -> list[str]:
        """Return the paths of a name in the manifest."""
        path = f"{self._root}/{name}"
        return [path] if name.endswith(".parquet") else list_parquet(self._files, path)

    def _uris(self, files: Files) -> list[str]:
        found = [path for name, _ in files for path in self._paths(name)]
        return [f"{self._uri}{path.removeprefix(self._root)}" for path in found]

    def _sum(self, files: Iterable[tuple[str, int]]) -> list[Pair]:
        """Return the rows of some files with their weights; copies of a row are added up."""
        found = [self._read_files(name) for name, _ in files]
        return self._columns.pairs(pa.concat_tables(found)) if found else []

    def _read_manifest(self) -> _Manifest | None:
        """Return the manifest; None if there is none. Raises `OffloadError` if it is invalid."""
        path = f"{self._root}/{MANIFEST}"
        try:
            found = read_json(self._files, path)
            files = tuple((check_plain_name(name), int(rows)) for name, rows in found["files"])
            if not files:
                raise ValueError("it names no files")
            flags = bool(found["delivered"]), bool(found["classes"])
            return _Manifest(parse_note(found), flags[0], files, flags[1])
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable_error(path, error) from error

    def _write_manifest(self, manifest: _Manifest) -> None:
        """Publish a manifest."""
        at = manifest.note.position
        note = make_note(ChangeBatch(at.batch, (), manifest.note.plan, at.version))
        rest = {"delivered": manifest.delivered, "classes": manifest.has_classes}
        found = {**note, **rest, "files": list(manifest.files)}
        replace_file(self._files, f"{self._root}/{MANIFEST}", json.dumps(found).encode())
        self._found = manifest

    def _sweep(self) -> None:
        """Delete files that the manifest does not name."""
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

    def _read_files(self, name: str) -> pa.Table:
        """Return the rows of a file or folder, in the columns of the outbox, which are learnt from
        the first file if they are unknown."""
        found = [read_table(self._files, path) for path in self._paths(name)]
        if self._columns.schema is None:
            self._columns.wrote(found[0].schema)
        return pa.concat_tables(map(self._columns.as_written, found))


WAREHOUSE = "spark.sql.warehouse.dir"


class CatalogTarget:
    """A `Target` in a folder, with a name.

    Parameters
    ----------
    name: the name of the table, perhaps with that of its database.
    made: makes the target of a folder.
    """

    def __init__(self, session: Session, name: str, made: Callable[[str], FrameTarget]) -> None:
        self._session = session
        self._name = name
        self._folder = f"{_local_path(session.spark.conf.get(WAREHOUSE))}/{name}.sink"
        self._target = made(self._folder)
        self.expect = getattr(self._target, "expect", None)
        self._has_files = self._is_shown = False

    def open(self, plan: str) -> Position | None:
        """Return the position of the folder; None if the folder has no batch.

        Raises
        ------
        OffloadError: the name is that of a table, or of a view that this sink has not made.
        """
        self._check_name()
        position = self._target.open(plan)
        self._has_files, self._is_shown = position is not None, False
        return position

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the difference from the folder."""
        return self._target.difference(rows)

    def stage(self, batch: ChangeBatch) -> None:
        """Stage a batch in the folder."""
        self._target.stage(batch)
        self._has_files = True

    def difference_frame(self, rows: Any) -> Any:
        """Return the difference from the folder, for rows on Spark."""
        return self._target.difference_frame(rows)

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """Stage a batch of changes on Spark in the folder."""
        is_staged = self._target.stage_frame(batch)
        self._has_files = self._has_files or is_staged
        return is_staged

    def deliver(self) -> None:
        """Publish the batch in the folder, and the folder in the catalog."""
        self._target.deliver()
        if self._has_files and not self._is_shown:
            self._session.restart()
            self._session.spark.sql(f"CREATE OR REPLACE VIEW {self._name} AS {self._text}")
            self._is_shown = True

    @property
    def _text(self) -> str:
        return f"SELECT * FROM parquet.`{self._folder}`"

    def _check_name(self) -> None:
        """Refuse a name of the catalog that is a table, or a view over another folder."""
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


def _local_path(warehouse: str) -> str:
    """Return a warehouse as a path, if it is on this machine."""
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
        """Return the position of the outbox; None if it has no batch."""
        return self._outbox.open(plan)

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the difference from the batches of the outbox to `rows`."""
        return self._outbox.difference(rows)

    def difference_frame(self, rows: Any) -> Any:
        """Return the difference as `difference` does, for rows on Spark."""
        return self._outbox.difference_frame(rows)

    def stage(self, batch: ChangeBatch) -> None:
        """Store a batch."""
        self._outbox.stage(batch)

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """Stage a batch as `stage` does, for changes on Spark, which writes them."""
        return self._outbox.stage_frame(batch)

    def deliver(self) -> None:
        """Call the function with the stored batch, if there is one."""
        found = self._outbox.staged_files()
        if found is not None:
            self._session.restart()
            number, uris = found
            self._function(with_literal_paths(self._session.spark.read).parquet(*uris), number)
            self._outbox.mark_delivered()
