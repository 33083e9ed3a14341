"""A folder of numbered Parquet files: what was ever given to a part, in the order in which it was.

    manifest.json                   which generation counts, and the number of its first file
    000003/kept/000000000041.parquet    the first file: all that was given up to number 41
    000003/kept/000000000042.parquet    what came with number 42
    000003/inbox/                       what the query is to read next
    000003/checkpoint/                  what the query knows

Files are written aside and renamed, and so is the manifest: whatever is killed, and whenever, a
file is there or it is not. Rows are sorted by bucket, in small row groups, so that those of a
bucket are found without reading the rest.

Cost:   O(entries) to write, O(entries of some row groups per file) to look up a bucket.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from spark_backend.cluster.files import file_system

Fold = Callable[[pa.Table], pa.Table]
ROW_GROUP = 16_384
RANGE = 100_000
_LEAST, _ENTRIES = -(1 << 63), 1 << 64


@dataclass
class Mailbox:
    """The files of a part; each has the columns of the schema, `bucket` and `version` among them.

    `folder` is a path, or a URI of a file system that pyarrow and Spark know.
    """

    folder: str
    schema: pa.Schema
    generation: int = field(init=False)
    base: int = field(init=False)
    """The number of the first file of this generation."""

    def __post_init__(self) -> None:
        self._files, self._root = file_system(self.folder)
        self._fragments: dict[int, Any] = {}
        self._open()

    @property
    def inbox(self) -> str:
        """The folder that the query reads, as Spark is given it."""
        return self._uri("inbox")

    @property
    def checkpoint(self) -> str:
        """The folder of what the query knows, as Spark is given it."""
        return self._uri("checkpoint")

    def numbers(self) -> list[int]:
        """The numbers of the files of this generation, ascending."""
        return sorted(self._fragments)

    def put(self, number: int, table: pa.Table) -> None:
        """Keep what came with a number; once."""
        if number in self._fragments or number < self.base:
            return
        table = table.select(self.schema.names).cast(self.schema).sort_by("bucket")
        self._write(self._path("kept", number), [table])
        self._fragments[number] = self._fragment(number)

    def put_frame(self, number: int, frame: Any) -> None:
        """The same of a Spark DataFrame, whose rows do not come by here."""
        if number in self._fragments or number < self.base:
            return
        name = f"kept/_{number:012}"
        rows = frame.select(*self.schema.names).repartition(1).sortWithinPartitions("bucket")
        options = rows.write.mode("overwrite").option("parquet.block.size", 1 << 20)
        options.parquet(self._uri(name))
        (written,) = (n for n in self._names(name) if n.endswith(".parquet"))
        self._files.move(f"{self._of(name)}/{written}", self._path("kept", number))
        self._files.delete_dir(self._of(name))
        self._fragments[number] = self._fragment(number)

    def paths(self, upto: int) -> list[str]:
        """The files up to a number, as Spark is given it."""
        return [f"{self._uri('kept')}/{n:012}.parquet" for n in self.numbers() if n <= upto]

    def post(self, number: int) -> None:
        """Let the query read the file of a number."""
        aside = self._path("inbox", number, aside=True)
        self._files.copy_file(self._path("kept", number), aside)
        self._files.move(aside, self._path("inbox", number))

    def take_out(self, before: int) -> None:
        """Remove from the inbox what has been read: all below a number."""
        for name in self._names("inbox"):
            if _number(name) < before:
                with suppress(FileNotFoundError):
                    self._files.delete_file(f"{self._of('inbox')}/{name}")

    def ranges(self, upto: int, *, rows: int = RANGE) -> Iterator[pa.Table]:
        """All entries, in ranges of buckets of about `rows` rows, each bucket in one of them."""
        data = self._dataset(upto)
        count = max(1, -(-data.count_rows() // rows))
        limits = [_LEAST + _ENTRIES * i // count for i in range(count)]
        for low, high in zip(limits, [*limits[1:], None], strict=True):
            found = pc.field("bucket") >= low
            found = found if high is None else found & (pc.field("bucket") < high)
            yield data.to_table(filter=found) if count > 1 else data.to_table()

    def at(self, bucket: int, upto: int) -> pa.Table:
        """The entries of a bucket."""
        return self._dataset(upto).to_table(filter=pc.field("bucket") == bucket)

    def total(self, column: str, upto: int) -> int:
        """The sum of a column."""
        table = self._dataset(upto).to_table(columns=[column])
        return pc.sum(table[column]).as_py() or 0

    def rows(self) -> tuple[int, int]:
        """How many entries the first file has, and all others together."""
        counts = {number: f.metadata.num_rows for number, f in self._fragments.items()}
        first = counts.pop(self.base, 0)
        return first, sum(counts.values())

    def bytes(self) -> int:
        """What the files take, and what the query knows."""
        found = self._files.get_file_info(fs.FileSelector(self._of(""), recursive=True))
        return sum(info.size or 0 for info in found)

    def batches(self, kind: str) -> int:
        """The number of the last batch that the query has planned (`offsets`) or done
        (`commits`); -1 if there is none."""
        selector = fs.FileSelector(self._of(f"checkpoint/{kind}"), allow_not_found=True)
        names = [info.base_name for info in self._files.get_file_info(selector)]
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def renew(self, fold: Fold, upto: int) -> None:
        """Begin a new generation: what was given up to a number is folded into its first file.

        Each range of buckets is folded on its own. Later files go along. A kill in the middle
        leaves the old generation in force.
        """
        old, later = self._of(""), [n for n in self.numbers() if n > upto]
        has_base = any(number <= upto for number in self._fragments)
        folded = (fold(table) for table in self.ranges(upto)) if has_base else ()
        generation = self.generation + 1
        self._clear(generation)
        base = upto if has_base else min(later, default=self.base)
        if has_base:
            self._write(
                self._path("kept", upto, of=generation),
                (table.sort_by("bucket") for table in folded),
            )
        for number in later:
            self._files.copy_file(
                self._path("kept", number), self._path("kept", number, of=generation)
            )
        self._write_manifest(generation, base)
        self._open()
        self._files.delete_dir(old)

    def delete(self) -> None:
        """Remove all."""
        with suppress(FileNotFoundError):
            self._files.delete_dir(self._root)

    def _open(self) -> None:
        """Take up the generation that counts; make the first one where there is none."""
        manifest = f"{self._root}/manifest.json"
        if self._files.get_file_info(manifest).type == fs.FileType.NotFound:
            self._clear(0)
            self._write_manifest(0, 0)
        with self._files.open_input_stream(manifest) as stream:
            found = json.loads(stream.read())
        self.generation, self.base = found["generation"], found["base"]
        numbers = map(_number, self._names("kept"))
        self._fragments = {number: self._fragment(number) for number in numbers}

    def _clear(self, generation: int) -> None:
        """The folders of a generation, empty."""
        with suppress(FileNotFoundError):
            self._files.delete_dir(self._of("", generation))
        for name in ("kept", "inbox"):
            self._files.create_dir(self._of(name, generation), recursive=True)

    def _write_manifest(self, generation: int, base: int) -> None:
        aside = f"{self._root}/_manifest.json"
        with self._files.open_output_stream(aside) as stream:
            stream.write(json.dumps({"generation": generation, "base": base}).encode())
        self._files.move(aside, f"{self._root}/manifest.json")

    def _write(self, path: str, tables: Iterable[pa.Table]) -> None:
        folder, _, name = path.rpartition("/")
        aside = f"{folder}/_{name}"
        to: dict[str, Any] = {"filesystem": self._files, "compression": "lz4"}
        with pq.ParquetWriter(aside, self.schema, **to) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=ROW_GROUP)
        self._files.move(aside, path)

    def _dataset(self, upto: int) -> Any:
        fragments = [f for number, f in self._fragments.items() if number <= upto]
        return ds.FileSystemDataset(fragments, self.schema, ds.ParquetFileFormat(), self._files)

    def _fragment(self, number: int) -> Any:
        return ds.ParquetFileFormat().make_fragment(self._path("kept", number), self._files)

    def _names(self, name: str) -> Iterable[str]:
        selector = fs.FileSelector(self._of(name), allow_not_found=True)
        names = (info.base_name for info in self._files.get_file_info(selector))
        return [name for name in names if not name.startswith(("_", "."))]

    def _path(self, name: str, number: int, *, aside: bool = False, of: int | None = None) -> str:
        return f"{self._of(name, of)}/{'_' * aside}{number:012}.parquet"

    def _of(self, name: str, generation: int | None = None) -> str:
        generation = self.generation if generation is None else generation
        return f"{self._root}/{generation:06}/{name}".rstrip("/")

    def _uri(self, name: str) -> str:
        start = "file://" + self._root if "://" not in self.folder else self.folder.rstrip("/")
        return f"{start}/{self.generation:06}/{name}"


def _number(name: str) -> int:
    return int(name.partition(".")[0])
