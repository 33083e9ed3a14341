"""Tables: base collections of rows, and where all changes begin.

Each method outside a transaction is a commit of its own, and each is all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from optimizer import plan
from optimizer.errors import PlanError
from reactive import display
from reactive.annotations import is_hashable
from reactive.callables import taken
from reactive.collector import in_pause
from reactive.errors import TableError
from reactive.gate import Gate
from reactive.keyed_store import KeyedStore
from reactive.lock_free import lock_free
from reactive.relation import Relation
from reactive.rows import check_row_type, checked_key, key_function, name_of_table
from reactive.statements import Statements
from reactive.stats import Stats
from reactive.store import BagStore, NoStore, Store, rows_of
from reactive.zset import Pair, canonical, consolidate, negate

if TYPE_CHECKING:
    from reactive.database import Database

T = TypeVar("T")


_NEAR = "self._is_near and not self._db._closed"
"""When the rows of a table can be read in place: they are stored, and in this process."""
_ROW = "self._keyed.by_key.get(key)"
"""The row of a key, or None."""


class Table(Relation[T], Collection[T]):
    """A base collection: a multiset of rows, or with a key at most one row per key.

    Made by `Database.table`. It is a `Relation`, so queries start from it, and a collection, so
    it can be read. Rows must be hashable, are compared by `==` and must not change; equal rows
    are kept once, as one object. A frozen, slotted dataclass is a good row.

    >>> from reactive import Database
    >>> words = Database().table(str, name="words")
    >>> words.add("to")
    >>> words.add("be", 2)
    >>> len(words), words.count("be"), "not" in words
    (3, 2, False)
    """

    plan: plan.Table

    def __init__(
        self,
        db: Database,
        number: int,
        row_type: Any,
        name: str | None,
        key: str | Callable[[T], Hashable] | None,
        stored: bool,
    ) -> None:
        check_row_type(row_type)
        if key is not None and not stored:
            raise PlanError("a keyed table must be stored: its keys are what it is asked for")
        self.name: str = name_of_table({table.name for table in db._tables}, row_type, name)
        self.row_type: Any = row_type
        chosen = None if key is None else taken(key_function(row_type, key), 1, "the key of table")
        super().__init__(db, plan.Table(number, self.name, chosen, stored, row_type))
        self._gate = db._gate
        self._flowed = False
        self._keyed = None if chosen is None else KeyedStore(checked_key(chosen, self.name))
        hashable = row_type if is_hashable(row_type) else None
        self._do = Statements(self)
        self._add, self._remove = self._do.add, self._do.remove
        self._move_to(self._new_store(hashable))
        self._node = db._graph.source(self._contents, self.plan)

    # Changes.

    def add(self, row: T, count: int = 1) -> None:
        """Add a row, `count` times.

        Raises
        ------
        TableError: not of the table's row type, not hashable, its key is taken, or `count` is
            less than 1.

        Cost: O(1), and what the views that depend on it do.
        """
        statement = self._add
        self._db._write(self, statement if count == 1 else partial(statement, count=count), row)

    def add_all(self, rows: Iterable[T]) -> None:
        """Add rows, in one commit; all of them or, if one is refused, none."""
        self._write_many(self._do.add_all, rows)

    def remove(self, row: T, count: int = 1) -> None:
        """Remove `count` copies of a row.

        Raises
        ------
        TableError: there are not so many. A table that is not stored cannot know.
        """
        statement = self._remove
        self._db._write(self, statement if count == 1 else partial(statement, count=count), row)

    def remove_all(self, rows: Iterable[T]) -> None:
        """Remove rows, in one commit; all of them or, if one is absent, none."""
        self._write_many(self._do.remove_all, rows)

    def discard(self, row: T) -> None:
        """Remove one copy of a row if there is one."""
        self._check_stored("discard")
        self._db._write(self, self._do.discard, row)

    def update(self, old: T, new: T) -> None:
        """Replace one copy of a row by another row, in one commit.

        Raises
        ------
        TableError: `old` is not there, or `new` is refused.
        """
        self._db._write(self, partial(self._do.update, old), new)

    def replace_all(self, rows: Iterable[T]) -> None:
        """Make these the rows of the table; only the difference is a change."""
        self._check_stored("replace_all")
        self._write_many(self._do.replace_all, rows)

    def clear(self) -> None:
        """Remove all rows."""
        self.replace_all(())

    def upsert(self, row: T) -> None:
        """Put a row in the place of the one with its key, or add it. Only for keyed tables."""
        self._need_key("upsert")
        self._db._write(self, self._do.upsert, row)

    def upsert_all(self, rows: Iterable[T]) -> None:
        """`upsert` each row, in one commit."""
        self._need_key("upsert_all")
        self._write_many(self._do.each, self._do.upsert, rows)

    def delete(self, key: Hashable) -> None:
        """Remove the row of a key. Only for keyed tables.

        Raises
        ------
        TableError: there is none.
        """
        self._need_key("delete")
        self._db._write(self, lambda key: self._do.remove(self[key]), key)

    def __iadd__(self, row: T) -> Self:  # type: ignore[override, misc]
        """`table += row` is `table.add(row)`."""
        if isinstance(row, Relation):
            raise TableError(f"+= adds one row, not a relation\n  {_COPY}")
        self.add(row)
        return self

    def __isub__(self, row: T) -> Self:  # type: ignore[override, misc]
        """`table -= row` is `table.remove(row)`."""
        if isinstance(row, Relation):
            raise TableError(f"-= removes one row, not a relation\n  {_COPY}")
        self.remove(row)
        return self

    # Reading.

    @lock_free("len(self._store)", ready=_NEAR)
    def __len__(self) -> int:
        self._check_stored("len")
        with self._reading():
            return len(self._store)

    def __iter__(self) -> Iterator[T]:
        """The rows of now; of the transaction so far, inside one."""
        self._check_stored("iteration")
        with self._reading():
            return iter(rows_of(self._store))

    @lock_free(
        "self._store.count(item) if self._keyed is None else item in self._keyed.by_key",
        ready=f"{_NEAR} and (self._keyed is not None or item.__class__ is self.row_type)",
        if_found="found",
        give="True",
    )
    def __contains__(self, item: object) -> bool:
        """Whether a row is there; of a keyed table, whether a key is."""
        return (self._find(item) is not None) if self._keyed is not None else self.count(item) > 0

    @lock_free(
        "self._store.count(row)",
        ready=f"{_NEAR} and row.__class__ is self.row_type",
        if_found="found",
    )
    def count(self, row: object) -> int:
        """How often a row is there."""
        self._check_stored("count")
        if not self._do.is_row(row):
            return 0
        with self._reading():
            return self._store.count(canonical(row))

    def items(self) -> list[tuple[T, int]]:
        """Each different row with how often it is there."""
        self._check_stored("items")
        with self._reading():
            return list(self._store.pairs())

    @lock_free(_ROW, ready=_NEAR, if_found="found is not None")
    def __getitem__(self, key: Hashable) -> T:
        """The row of a key. Only for keyed tables."""
        row = self._find(key)
        if row is None:
            self._need_key("table[key]")
            raise TableError(f"table {self.name!r} has no row with key {key!r}\n  {self._holds()}")
        found: T = row
        return found

    @lock_free(_ROW, ready=_NEAR, if_found="found is not None")
    def get(self, key: Hashable) -> T | None:
        """The row of a key, or None. Only for keyed tables."""
        found: T | None = self._find(key)
        if found is None:
            self._need_key("get")
        return found

    def _find(self, key: Hashable) -> Any:
        """The row of a key, or None; None too if there are no keys."""
        self._db._check_open()
        with self._gate.reading():
            return None if self._keyed is None else self._keyed.get(key)

    def stats(self) -> Stats:
        """Rows that the table holds, and the bytes of what holds them, without the rows."""
        with self._reading():
            return Stats(self._held(), self._store.bytes(), self._db.version, 0)

    def show(self, limit: int = 20) -> None:
        """Print the first rows as a table."""
        display.show(self, limit)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {self._held()} rows)"

    def __rich__(self) -> Any:
        return display.table(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    # How the above is done.

    def _new_store(self, hashable: Any) -> Store:
        if self._keyed is not None:
            return self._keyed
        return BagStore() if self.plan.stored else NoStore(hashable=hashable)

    def _write_many(self, statement: Callable[..., Sequence[Pair]], *arguments: Any) -> None:
        def change(given: tuple[Any, ...]) -> Sequence[Pair]:
            return in_pause(partial(statement, *given), self._store.revert)

        self._db._write(self, change, arguments)

    def _reading(self) -> Gate:
        self._db._check_open()
        return self._db._gate

    def _check_stored(self, what: str) -> None:
        if not self.plan.stored:
            raise TableError(
                f"{what} of table {self.name!r}: its rows are not stored\n"
                "  make the table with stored=True, or materialize a view before rows flow"
            )

    def _need_key(self, what: str) -> KeyedStore:
        if self._keyed is None:
            raise TableError(
                f"{what} of table {self.name!r}, which has no key\n"
                "  make it with db.table(..., key=...)"
            )
        return self._keyed

    def _held(self) -> int:
        return len(self._store)

    def _holds(self) -> str:
        held = self._held()
        return f"the table holds {held} row" + "s" * (held != 1)

    def _move_to(self, store: Store) -> None:
        """Keep the rows in a store, which has them."""
        self._store: Store = store
        self._is_near = isinstance(store, BagStore | KeyedStore)
        self._do.store = store  # a statement may be waiting to begin

    def _all(self) -> Iterable[Pair]:
        """The rows as of the last commit."""
        return self._contents()

    def _contents(self) -> list[Pair]:
        """The rows as of the last commit, for views that are made now."""
        if self._flowed and not self.plan.stored:
            raise TableError(
                f"table {self.name!r} is not stored, and rows have flowed already\n"
                "  make its views before the first row, or the table with stored=True"
            )
        if not self.plan.stored:
            return []
        pairs = list(self._store.pairs())
        pending = self._db._pending
        return consolidate([*pairs, *negate(pending.of(self))]) if pending else pairs


_COPY = "add_all(view) copies the rows of a view"
