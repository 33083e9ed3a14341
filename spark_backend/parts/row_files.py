"""Rows in numbered Parquet files, each found again by its place.

    write([row, row, ...]) -> place of the first         file 3, row 0 on
    fetch({place, ...})    -> the rows                   reads the row groups that they are in

Rows whose type is known are typed columns, so that nothing of a file is executed; others are
pickled. The files are for the process that wrote them.

State:  on disk; here the number of rows of each file.
Cost:   O(rows) to write; a look-up reads a row group, a batch of them each row group once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reactive.engine.collections.zset import Row
from reactive.errors import OffloadError
from spark_backend.cluster.files import local
from spark_backend.cluster.refusals import writing
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.codec import Codec, loads
from spark_backend.codec.fitting import fitting
from spark_backend.codec.schema import Pickled, kept_as

ROW_GROUP = 1_000
FILE = 1 << 32
"""How far places of one file are from those of the next."""


class RowFiles:
    """The rows in a folder.

    Parameters
    ----------
    folder: one of this machine.
    row_type: of the rows, as a table is given it.
    """

    def __init__(self, folder: str, row_type: Any) -> None:
        place = local(folder)
        self._files, self._root = place.files, place.root
        self._files.create_dir(self._root, recursive=True)
        self._kept = kept_as(row_type)
        self._fits = None if isinstance(self._kept, Pickled) else fitting(self._kept)
        self._dumps = Codec(stable=False).dumps
        self.written: dict[int, int] = {}
        """How many rows there are, by file."""

    def packed(self, row: Row) -> Any:
        """What `write` takes of a row: the row where it is in columns, else its bytes.

        Raises
        ------
        OffloadError: it would not come back as what it is.
        """
        if self._fits is None:
            return self._dumps(row)
        if not self._fits(row):
            raise OffloadError(f"{row!r:.100} is not just of its type")
        return row

    def unpacked(self, packed: Any) -> Row:
        """The row again."""
        return packed if self._fits is not None else loads(packed)

    def write(self, packed: Sequence[Any]) -> int:
        """Write rows to a new file; the place of the first one, which others follow.

        Raises
        ------
        OffloadError: it cannot be written; nothing has changed.
        """
        number = max(self.written, default=0) + 1
        if isinstance(self._kept, Pickled):
            array = pa.array(packed, pa.binary())
        else:
            array = to_arrow(self._kept, packed)
        path = self._path(number)
        with writing(self._root), self._files.open_output_stream(path) as stream:
            pq.write_table(pa.table({"row": array}), stream, row_group_size=ROW_GROUP)
        self.written[number] = len(packed)
        return number * FILE

    def fetch(self, places: Iterable[int]) -> dict[int, Row]:
        """The rows at some places."""
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place in places:
            groups[place // FILE, place % FILE // ROW_GROUP].append(place)
        found: dict[int, Row] = {}
        for number in sorted({number for number, _ in groups}):
            with self._files.open_input_file(self._path(number)) as opened:
                file = pq.ParquetFile(opened)
                for group in sorted(group for of, group in groups if of == number):
                    wanted = groups[number, group]
                    inside = [place % FILE - group * ROW_GROUP for place in wanted]
                    array = file.read_row_group(group)["row"].combine_chunks().take(inside)
                    found.update(zip(wanted, self._rows(array), strict=True))
        return found

    def rows(self, number: int) -> Iterator[tuple[int, Row]]:
        """All rows of a file, each with its place."""
        with self._files.open_input_file(self._path(number)) as opened:
            file = pq.ParquetFile(opened)
            for group in range(file.num_row_groups):
                array = file.read_row_group(group)["row"].combine_chunks()
                yield from enumerate(self._rows(array), number * FILE + group * ROW_GROUP)

    def drop(self, number: int) -> None:
        """Delete a file."""
        del self.written[number]
        with suppress(OSError):
            self._files.delete_file(self._path(number))

    def delete(self) -> None:
        """Delete all."""
        with suppress(OSError):
            self._files.delete_dir(self._root)

    def _rows(self, array: pa.Array) -> list[Row]:
        if isinstance(self._kept, Pickled):
            return [loads(data) for data in array.to_pylist()]
        return from_arrow(self._kept, array)

    def _path(self, number: int) -> str:
        return f"{self._root}/{number:08}.parquet"
