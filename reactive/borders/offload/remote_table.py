"""Tables whose rows are elsewhere from the start, and what they feed there without coming by.

    changes of the table --> waiting --save--> a version, where the rows are
    a part that reads it <---------- the rows of versions a to b, through a chain of plan nodes

What is committed waits in the process until the next flush and is then saved as one version.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from optimizer.errors import PlanError
from reactive.api.table import Table
from reactive.engine.collections.zset import Pair, Row, consolidate, negate
from reactive.engine.remote.external import ExternalRows, Once
from reactive.engine.storage.store import Store
from reactive.engine.transactions import patches
from reactive.errors import MissingKeyError, OffloadError, TableError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.patches import Patch

T = TypeVar("T")


class RemoteTable(Table[T, Any]):
    """A table whose rows are elsewhere. Made by `Database.spark_table`.

    Reads and writes like any other table, but what is removed is not looked for: to remove a row
    that is not there is an error that nobody reports. Reading fetches rows, or counts them there.
    """

    def __init__(
        self,
        engine: Engine,
        number: int,
        row_type: Any,
        name: str | None,
        key: str | Callable[[T], Hashable] | None,
        rows: Callable[[str], ExternalRows],
    ) -> None:
        self._open = rows
        super().__init__(engine, number, row_type, name, key, True)
        self._keyed = None

    def _new_store(self, hashable: Any) -> Store:
        self.rows = self._open(self.name)
        """Where the rows are."""
        self._waiting = RemoteStore(self.rows)
        return self._waiting

    def save(self) -> int:
        """Give what has been committed a version; the number of the last one. Inside the lock."""
        pending = self._engine.pending
        open_changes = [] if pending is None else pending.of(self)
        return self._waiting.save(open_changes)

    def add_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Add the rows of a DataFrame, in a commit of its own; they do not pass the process.

        Parameters
        ----------
        once: a query, by its name or id, and the number of its batch, which count up. A batch that
            comes again, as after a failure, changes nothing: it is noted together with the rows,
            and with a checkpoint a later process knows it too.

        Returns
        -------
        Whether it has come; False of a batch that came before.

        Raises
        ------
        TableError: its columns or values do not fit the row type.
        TransactionError: inside a transaction.
        PlanError: `once` is no query with a number.
        """
        _check_once(once)
        return self._bulk("add_frame", lambda: self.rows.append_frame(frame, 1, once))

    def remove_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Delete the rows of a DataFrame, with their multiplicities; else as `add_frame`."""
        _check_once(once)
        return self._bulk("remove_frame", lambda: self.rows.append_frame(frame, -1, once))

    def upsert_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Put the rows of a DataFrame in the place of those that have their keys; a scan.

        Else as `add_frame`.
        """
        self._need_own_key("upsert_frame")
        _check_once(once)
        return self._bulk("upsert_frame", lambda: self.rows.upsert(frame, once))

    def replace_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Make the rows of a DataFrame those of the table; only the difference is a change.

        For snapshots, such as a table of another database that is read by JDBC now and then. Else
        as `add_frame`.

        Raises
        ------
        TableError: as `add_frame`; or the table has a key, and two of the rows have the same one.

        Cost: a scan of both, which are grouped by row on Spark.
        """
        _check_once(once)
        return self._bulk("replace_frame", lambda: self.rows.replace(frame, once))

    def upsert(self, row: T) -> None:
        """Put a row in the place of the one that has its key; a scan of the table."""
        self.upsert_all([row])

    def upsert_all(self, rows: Iterable[T]) -> None:
        """`upsert` each row, in one commit and one scan."""
        self._need_own_key("upsert")
        given = list(rows)
        for row in given:
            self.rows.check(row)
        self._bulk("upsert", lambda: self.rows.upsert(given))

    def delete(self, key: Hashable) -> None:
        """Remove the row of a key; a scan of the table."""
        self.remove(self[key])

    def pop(self, key: Hashable, *default: Any) -> Any:
        """Remove the row of a key and return it; a scan of the table."""
        found = self.get(key, *default) if default else self[key]
        if not default or found is not default[0]:
            self.remove(found)
        return found

    def _change(self, key: Hashable, fields: dict[str, Any]) -> None:
        old = self[key]
        patches.check_fields(self.name, old, fields)
        self.update(old, patches.with_fields(old, fields))

    def __getitem__(self, key: Hashable) -> T:
        """The row of a key; a scan of the table."""
        found: T | None = self.get(key)
        if found is None:
            raise MissingKeyError(f"table {self.name!r} has no row with key {key!r}", key)
        return found

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The row of a key, or the default; a scan of the table."""
        of = self._need_own_key("get")
        with self._reading():
            return next((row for row, _ in self._store.pairs() if of(row) == key), default)

    def __contains__(self, item: object) -> bool:
        """Whether a row is there; of a keyed table, whether a key is."""
        if self.plan.key is not None:
            return self.get(item) is not None
        return super().__contains__(item)

    def _patch(self, given: list[Patch]) -> list[T]:
        raise OffloadError(
            f"patch of table {self.name!r}: its rows are on Spark, where bags are arrays\n"
            "  update(old, new) the row; or hold the table in the process, by db.table(...)"
        )

    def to_spark(self) -> Any:
        """All rows as a DataFrame, with a column per field."""
        with self._reading():
            self.save()
            return self.rows.frame()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, version {self.rows.version})"

    def _bulk(self, what: str, change: Callable[[], int]) -> bool:
        """A change that is a commit and a version of its own; whether it was one."""
        engine = self._engine
        with engine.inside(to_write=True):
            if engine.pending is not None:
                raise TransactionError(
                    f"{what} of table {self.name!r} is a commit of its own\n"
                    "  make it outside the transaction"
                )
            before = self.save()
            if change() == before:
                return False
            engine.committed([self], 1)
            return True

    def _need_own_key(self, what: str) -> Callable[[Row], Any]:
        if self.plan.key is None:
            raise TableError(
                f"{what} of table {self.name!r}, which has no key\n"
                "  make it with db.spark_table(..., key=...)"
            )
        found: Callable[[Row], Any] = self.plan.key.function
        return found

    def _held(self) -> int:
        return len(self._store)

    def _all(self) -> Iterable[Pair]:
        self.save()
        return self.rows.pairs()

    def _contents(self) -> list[Pair]:
        """Nothing: a part that is made now is fed what there is."""
        return []


def _check_once(once: Any) -> None:
    match once:
        case None:
            return
        case (str(), int(batch)) if batch >= 0 and not isinstance(batch, bool):
            return
    raise PlanError(
        f"once={once!r:.100} is no batch of a query\n"
        '  give the name or id of the query and the number of the batch: once=("orders", 7)'
    )


class RemoteStore:
    """What has been changed and not been saved yet; the rest is read where it is."""

    interns: ClassVar[bool] = False

    def __init__(self, rows: ExternalRows) -> None:
        self._rows = rows
        self._unsaved: list[Pair] = []

    def save(self, open_changes: Sequence[Pair]) -> int:
        """Give all changes but those of a transaction that is open a version."""
        closed = consolidate([*self._unsaved, *negate(open_changes)])
        if closed:
            self._rows.append(closed)
        self._unsaved = list(open_changes)
        return self._rows.version

    def add(self, row: Row, count: int) -> Pair:
        hash(row)
        self._rows.check(row)
        self._unsaved.append((row, count))
        return (row, count)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        for row in rows:
            hash(row)
            self._rows.check(row)
        self._unsaved += [(row, 1) for row in rows]
        return rows

    def remove(self, row: Row, count: int) -> Pair:
        return self.add(row, -count)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        for row in rows:
            self.remove(row, 1)
        return rows

    def recount(self) -> None: ...

    def revert(self, changes: Iterable[Pair]) -> None:
        self._unsaved += negate(changes)

    def count(self, row: Row) -> int:
        return sum(weight for found, weight in self.pairs() if found == row)

    def pairs(self) -> Iterable[Pair]:
        saved: Iterable[Pair] = self._rows.pairs()
        return consolidate([*saved, *self._unsaved]) if self._unsaved else saved

    def __len__(self) -> int:
        return self._rows.size() + sum(weight for _, weight in self._unsaved)

    def bytes(self) -> int:
        return 0
