"""Targets with a name in Spark's catalog, by which SQL of any session of it reads them.

    write_to("shop.towns")   a folder below the warehouse, and a view of the catalog over it:
                             SELECT * FROM parquet.`.../shop.towns.sink`

A view of the catalog reads the folder anew in each query, so it shows what the last batch has left.

State:  that of the folder.
Cost:   a statement of SQL per process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from reactive.borders.sinks.target import ChangeBatch, Changed, FrameTarget, Position
from reactive.engine.collections.zset import Pair
from reactive.errors import OffloadError
from spark_backend.cluster.session import Session

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
