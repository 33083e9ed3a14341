"""Tables: base collections of rows, where all changes begin.

Each method outside a transaction is a commit of its own, and is all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

from typing_extensions import TypeVar

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.check_reads import check_callable
from reactive.api import commits, display
from reactive.api import stats as statistics
from reactive.api.columns import take_callable
from reactive.api.each_row import each_row
from reactive.api.framed import FromFrames, ToFrames
from reactive.api.keyed_rows import NEAR, KeyedRows, optimistic_read
from reactive.api.relation import Relation
from reactive.engine.collections.zset import (
    Pair,
    canonical,
    consolidate,
    is_hashable,
    negate,
    repeat_by_weight,
)
from reactive.engine.compiler.lineage import lost_of
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.runtime.closeable import Uncopyable, hint
from reactive.engine.runtime.collector import in_pause
from reactive.engine.runtime.foreign_names import OF_TABLES
from reactive.engine.storage import watched_store
from reactive.engine.storage.no_store import NoMore, NoStore
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.rows import check_row_type, checked_key, key_function, name_of_table
from reactive.engine.storage.store import BagStore, RowStore, stored_rows
from reactive.engine.transactions import followers, patches
from reactive.engine.transactions.row_gate import CommittedRows, rows_at_rest
from reactive.engine.transactions.statements import Statements
from reactive.errors import NoLength, TableError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.followers import Followers
    from reactive.engine.transactions.patches import Patch

T = TypeVar("T")
K = TypeVar("K", default=Any)


@boundary
class Table(KeyedRows[T, K], ToFrames, FromFrames, Relation[T], Collection[T], Generic[T, K]):
    """A base collection: a multiset of rows, or with a key at most one row per key.

    `Database.table` creates it. It is a `Relation` that queries start from, and a collection
    that can be read. Rows must be hashable and must not change; they are compared by `==`, and
    equal rows are stored as one object with a count. A frozen, slotted dataclass is a good row.

    A table with a key is a mapping, too: `keys`, `values`, `items`, `get`, `table[key]` and `in`
    use the key, but iteration and `len` are about rows, as in every table. `zset()` returns rows
    with their weights.

    >>> from reactive import Database
    >>> words = Database().table(str, name="words")
    >>> words.add("to")
    >>> words.add("be", 2)
    >>> len(words), words.count("be"), "not" in words
    (3, 2, False)
    """

    plan: plan.Table
    _keeps_events: ClassVar[bool] = False
    """True for a stream, or its late events, which a log may keep."""

    def __init__(
        self,
        engine: Engine,
        number: int,
        row_type: Any,
        name: str | None,
        key: str | Sequence[str] | Callable[[T], K] | None,
        stored: bool,
        identity: bool = False,
        replaces: Table[Any] | None = None,
    ) -> None:
        check_row_type(row_type)
        if key is not None and not stored:
            raise PlanError("a keyed table must be stored: its keys are what it is asked for")
        self.name: str = name_of_table(engine.tables, row_type, name, replaces)
        self.row_type: Any = row_type
        self.identity = identity
        """True if the caller promised that rows do not change in place, whatever their class."""
        chosen = (
            None
            if key is None
            else take_callable(key_function(row_type, key), 1, "the key of table")
        )
        super().__init__(engine, self._plan_of(number, chosen, stored))
        if chosen is not None:
            check_callable(chosen, self.plan)
        self._db_lock = engine.db_lock
        self._flowed = False
        self._log: Any = None
        """The log of a durable stream in the store (`durable/event_log.py`)."""
        self._followers: Followers | None = None
        self._origins: Any = None
        """The ingestion that takes the rows of origins, after the first `replace_origin`."""
        self._keyed: Any = (
            None if chosen is None else KeyedStore(checked_key(chosen, self.name), chosen.function)
        )
        hashable = row_type if is_hashable(row_type) else None
        self._do = Statements(self, engine)
        self._move_to(self._new_store(hashable))
        self._node = engine.graph.source(self._contents, self.plan, lambda: len(self._store))
        if engine.log is not None:
            engine.log.follow(self)

    def _plan_of(self, number: int, key: Any, stored: bool) -> Any:
        return plan.Table(number, self.name, key, stored, self.row_type)

    # Changes.

    def add(self, row: T, count: int = 1) -> None:
        """Add a row, `count` times.

        Cost: O(1), and the work of the views that depend on it.

        Raises
        ------
        TableError: the row is not of the table's row type, or not hashable; its key is taken; or
            `count` is less than 1.
        """
        try:
            do = self._do
            add = do.add_one if count == 1 else partial(do.add, count=count)
            self._engine.write(self, add, row)
        except Exception as error:
            hide(error)
            raise

    def add_all(self, rows: Iterable[T]) -> None:
        """Add rows, in one commit; all of them or, if one is refused, none.

        The iterable is consumed before the database is locked.
        """
        some = list(rows)
        if len(some) == 1:
            self._engine.write(self, self._do.add_one, some[0])
        else:
            self._write_many(self._do.add_all, some)

    def remove(self, row: T, count: int = 1) -> None:
        """Remove `count` copies of a row.

        Raises
        ------
        TableError: the table has fewer copies. A table that is not stored cannot detect this.
        """
        try:
            do = self._do
            remove = do.remove_one if count == 1 else partial(do.remove, count=count)
            self._engine.write(self, remove, row)
        except Exception as error:
            hide(error)
            raise

    def remove_all(self, rows: Iterable[T]) -> None:
        """Remove rows, in one commit; all of them or, if one is absent, none."""
        some = list(rows)
        if len(some) == 1:
            self._engine.write(self, self._do.remove_one, some[0])
        else:
            self._write_many(self._do.remove_all, some)

    def discard(self, row: T) -> None:
        """Remove one copy of a row, if there is one."""
        try:
            self._check_stored("discard")
            self._engine.write(self, self._do.discard, row)
        except Exception as error:
            hide(error)
            raise

    def patch(
        self,
        key: K | T,
        path: Any,
        *,
        added: Iterable[Any] | Mapping[Any, int] = (),
        removed: Iterable[Any] | Mapping[Any, int] = (),
    ) -> T:
        """Add and remove values of a `Bag` in a field of a row, and return the new row.

        Parameters
        ----------
        key: the key of the row; in a table without a key, the row: one copy of it is changed.
        path: the name of the field that is a bag, or its position in a plain tuple. For a nested
            bag a tuple, from outside to inside: a field, a row in its bag, a field of that row, and
            so on. Give an inner row as its current value, or as a callable, row -> truth value,
            that is true for one of them.
        added, removed: iterables of values, or mappings from values to counts. A value in both is
            netted.

        Cost: O(log n) per changed value in a bag of n, on each level of the path; O(n) the first
            time for a bag made from a list. A callable in the path is called for each row of its
            bag. For a view that iterates over the bag, by `unnest` or in a comprehension, and
            otherwise reads only fields of the row, the work is that of the changed values.

        Raises
        ------
        TableError: the row, field or inner row does not exist; the field is not a bag; a removed
            value is absent, or an added one not hashable; or the rows are not stored. Nothing has
            changed.

        >>> from typing import NamedTuple
        >>> from reactive import Bag, Database
        >>> class Customer(NamedTuple):
        ...     id: int
        ...     orders: Bag[str]
        >>> customers = Database().table(Customer, key="id")
        >>> orders = customers.unnest(lambda c: c.orders).select(lambda c, order: (c.id, order))
        >>> subscription = orders.subscribe(lambda delta: print(delta.added, delta.removed))
        >>> customers.add(Customer(1, Bag(["tea", "rum"])))
        ((1, 'tea'), (1, 'rum')) ()
        >>> customers.patch(1, "orders", removed=["rum"])
        () ((1, 'rum'),)
        Customer(id=1, orders=Bag({'tea': 1}))
        """
        return self._patch([patches.Patch(key, path, added, removed)])[0]

    def patch_all(self, given: Iterable[Patch]) -> None:
        """Patch several rows, in one commit; all of them or, if one is refused, none.

        Parameters
        ----------
        given: an iterable of `Patch(key, path, added, removed)`, see `patch`. All paths refer to
            the rows before the first patch. Patches of one bag are added up, and each row changes
            once.
        """
        self._patch([patches.Patch(*each) for each in given])

    def _patch(self, given: list[Patch]) -> list[T]:
        """Apply patches of rows as one write, and return the new rows."""
        self._check_stored("patch")
        made: list[T] = []
        self._write_many(patches.patch, self._do, given, made)
        return made

    def replace_origin(self, origin: Hashable, rows: Iterable[T]) -> None:
        """Replace the rows that came from an origin, such as a file; only the difference changes.

        A row that several origins have has a copy of each. Rows that were added otherwise stay.

        Parameters
        ----------
        origin: the name of the place that the rows come from.
        rows: all rows of it; none to remove it.

        State: the rows by their origins. Cost: O(rows of the origin), and the work of the views for
        the rows that differ.

        Raises
        ------
        TableError: a row is refused. Nothing has changed.
        TransactionError: a transaction is open.

        >>> from reactive import Database
        >>> uses = Database().table(tuple[str, int], name="uses")
        >>> uses.replace_origin("a.py", [("os", 1), ("re", 2)])
        >>> uses.replace_origin("b.py", [("os", 1)])
        >>> uses.replace_origin("a.py", [("os", 1), ("re", 3)])
        >>> sorted(uses), uses.origins()["b.py"]
        ([('os', 1), ('os', 1), ('re', 3)], (('os', 1),))
        """
        self._check_stored("replace_origin")
        commits.replace_origin(self, origin, rows)

    def origins(self) -> Mapping[Hashable, tuple[T, ...]]:
        """Return the rows by the origins that `replace_origin` was given, as of now."""
        return commits.origins_of(self)

    def replace_all(self, rows: Iterable[T]) -> None:
        """Replace the rows of the table by `rows`; only the difference is a change."""
        self._check_stored("replace_all")
        self._write_many(self._do.replace_all, list(rows))

    def replace_where(self, predicate: Callable[[T], object], rows: Iterable[T]) -> None:
        """Replace the rows that satisfy a predicate; only the difference is a change.

        Parameters
        ----------
        predicate: callable, row -> truth value. It must not change tables.
        rows: the new rows, which must satisfy `predicate`.

        Cost: `predicate` is called for every row of the table. If its first condition compares a
            field with plain values by `==` or `in`, as in `lambda c: c.file == file`, it is called
            only for rows with such a value, from the third call on: an index of the field is kept.

        Raises
        ------
        TableError: `predicate` is false for one of `rows`; or a row is refused, for example because
            another row has its key. Nothing has changed.

        >>> from reactive import Database
        >>> prices = Database().table(tuple, name="prices")
        >>> prices.add_all([("ann", 1), ("ann", 2), ("bob", 3)])
        >>> prices.replace_where(lambda p: p[0] == "ann", [("ann", 2), ("ann", 5)])
        >>> sorted(prices)
        [('ann', 2), ('ann', 5), ('bob', 3)]
        """
        self._check_stored("replace_where")
        if not callable(predicate):
            raise PlanError(
                f"replace_where takes a callable, row -> true or false, not {predicate!r:.100}\n"
                "  replace_all(rows) replaces all rows"
            )
        self._write_many(self._do.replace_where, predicate, rows)

    def clear(self) -> None:
        """Remove all rows."""
        self.replace_all(())

    def __iadd__(self, row: T) -> Self:  # type: ignore[override, misc]
        """`table += row` is `table.add(row)`."""
        try:
            if isinstance(row, Relation):
                raise TableError(f"+= adds one row, not a relation\n  {_COPY}")
            self.add(row)
            return self
        except Exception as error:
            hide(error)
            raise

    def __isub__(self, row: T) -> Self:  # type: ignore[override, misc]
        """`table -= row` is `table.remove(row)`."""
        try:
            if isinstance(row, Relation):
                raise TableError(f"-= removes one row, not a relation\n  {_COPY}")
            self.remove(row)
            return self
        except Exception as error:
            hide(error)
            raise

    # Reading.

    @optimistic_read("len(self._store)", ready=NEAR)
    def __len__(self) -> int:
        self._check_stored("len", NoLength)
        with self._reading():
            return len(self._visible())

    def __iter__(self) -> Iterator[T]:
        """Iterate over the current rows; inside a transaction, over its own."""
        return each_row(self, self._rows_of_now)

    def _rows_of_now(self) -> Iterable[T]:
        """Return the rows that the caller sees; raises if rows are not stored."""
        self._check_stored("iteration")
        with self._reading():
            return stored_rows(self._visible())

    @optimistic_read(
        "self._store.count(item) if self._keyed is None else item in self._keyed.by_key",
        ready=f"{NEAR} and (self._keyed is not None or item.__class__ is self.row_type)",
        if_found="found",
        give="True",
    )
    def __contains__(self, item: object) -> bool:
        """Return True if the table has the row; with a key, if it has the key."""
        return (self._find(item) is not None) if self._keyed is not None else self.count(item) > 0

    @optimistic_read(
        "self._store.count(row)",
        ready=f"{NEAR} and row.__class__ is self.row_type",
        if_found="found",
    )
    def count(self, row: object) -> int:
        """Return the number of copies of a row."""
        self._check_stored("count")
        is_row = self._do.gate.is_row(row := self._do.gate.to_row(row))
        with self._reading():
            return int(self._visible().count(canonical(row))) if is_row else 0

    def verify(self) -> None:
        """Check the values of all rows against the annotations of their fields.

        SQL and compiled callables rely on these annotations. A table of `Database(strict=True)`
        checks rows when they are added. An int is accepted for a float, a bool for an int, and an
        instance of a subclass for its base class.

        Raises
        ------
        VerificationError: a value is of another class than its field declares, or None in a field
            that is not optional.
        TableError: the table is not stored.

        >>> from reactive import Database
        >>> pairs = Database().table(tuple[int, str], name="pairs")
        >>> pairs.add(("7", "a"))
        >>> pairs.verify()
        Traceback (most recent call last):
        reactive.errors.VerificationError: table 'pairs' has the row ('7', 'a'): item 0 is the str \
'7', and is declared int
          give a value of that type, or declare another one
        """
        self._do.gate.verify(self._pairs())

    def _first_rows(self, n: int) -> list[T]:
        self._check_stored("head")
        with self._reading():
            return list(islice(repeat_by_weight(self._visible().pairs()), n))

    def _find(self, key: Any) -> Any:
        """Return the row of a key; None if there is none, or if the table has no key."""
        if self._keyed is None:
            return None
        with self._reading():
            return self._visible().get(canonical(key))

    def stats(self) -> statistics.Stats:
        """Return the number of rows, and the bytes of their containers without the rows."""
        with self._reading():
            return statistics.Stats(
                len(self._visible()), self._store.bytes(), self._engine.version, 0
            )

    def show(self, limit: int = 20) -> None:
        """Print the first `limit` rows as a table."""
        display.show(self, limit)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        with self._db_lock.inside():
            if isinstance(self._store, NoMore):
                return f"Table({self.name!r}, dropped)"
            return f"Table({self.name!r}, {len(self._visible())} rows)"

    def __rich__(self) -> Any:
        return display.table(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    __copy__ = Uncopyable.__copy__
    _copy_instead = "make another one with db.table(...), and add_all(rows)"
    _pickle_instead = "pickle list(table), its rows"

    def _called(self) -> str:
        return f"table {self.name!r}"

    # How the above is done.

    def _new_store(self, hashable: Any) -> RowStore:
        """Return an empty store of the kind that the table needs."""
        if not self.plan.stored:
            return NoStore(hashable=hashable)
        store: RowStore = BagStore() if self._keyed is None else self._keyed
        return watched_store.WatchedStore(store, self.name) if self._engine.strict else store

    def _write(self, statement: Callable[[Any], Sequence[Pair]], of: Any) -> None:
        self._engine.write(self, statement, of)

    def _write_many(self, statement: Callable[..., Sequence[Pair]], *arguments: Any) -> None:
        """Write what a statement over many rows changes; it runs with the collector paused."""

        def change(given: tuple[Any, ...]) -> Sequence[Pair]:
            return in_pause(lambda: statement(*given), self._store.revert)

        self._engine.write(self, change, arguments)

    def _reading(self) -> AbstractContextManager[None]:
        self._engine.check_open()
        return self._db_lock.inside()

    def _visible(self) -> Any:
        """Return the rows that the running thread or task sees: with its own transaction only."""
        pending = self._engine.pending
        if pending is None or self._db_lock.is_mine:
            return self._store
        key = None if self._keyed is None else self._keyed.key
        return CommittedRows(self._store, pending.net_changes(self), key)

    def _check_stored(self, what: str, error: type[TableError] = TableError) -> None:
        """Refuse `what` if the rows of the table are not stored."""
        if not self.plan.stored:
            raise error(
                f"{what} of table {self.name!r}: its rows are not stored\n"
                "  make the table with stored=True, or materialize a view before rows flow"
            )

    def _held(self) -> int:
        return len(self._store)

    def _holds(self) -> str:
        return f"the table holds {(held := self._held())} row" + "s" * (held != 1)

    def _move_to(self, store: RowStore, keyed: Any = None) -> None:
        """Store the rows in `store`, which has them already; `keyed` finds them by their keys."""
        self._store: RowStore = store
        if self._followers is not None:
            self._followers.forget()
        self._is_near = isinstance(store, BagStore | KeyedStore)
        if keyed is not None:
            self._keyed = keyed
        self._do.move_to(store)  # a statement may be waiting to begin

    def _give_up(self, why: str) -> None:
        """Discard the rows of a dropped table; each later use raises an error that says `why`."""
        if self._keyed is not None:
            self._keyed = KeyedStore(self._keyed.key)
        self._move_to(NoMore(f"{why}\n  use the table that is there now: see db.tables()"))

    def _fill(self, pairs: Iterable[Pair], follower: Any) -> None:
        """Add rows to the empty table, and then let a follower check all changes."""
        self.add_all(row for row, weight in pairs for _ in range(weight))
        followers.followers_of(self).expiry = follower

    def changes_since(self, version: int) -> Any:
        """Return the net change of the table since a version: rows with the change of their copies.

        The result is as that of `View.changes_since`. The commits since then must be kept:
        `Database(keep=1000)`, in memory or in a file, or `Database.journal`.

        Cost: O(changes since).

        Raises
        ------
        PlanError: not all commits since then are kept.

        >>> from reactive import Database
        >>> db = Database(keep=100)
        >>> words = db.table(str, name="words")
        >>> words.add_all(["to", "be"])
        >>> words.remove("to")
        >>> words.changes_since(1).items()
        (('to', -1),)
        """
        return commits.changes_of_table(self, version)

    def _all(self) -> Iterable[Pair]:
        """Return the rows as of the last commit, or as they are supposed to be."""
        if self._engine.supposition is not None and self.plan.stored:
            return self._store.pairs()
        return self._contents()

    def _contents(self) -> Sequence[Pair]:
        """Return the rows as of the last commit, with which new views begin.

        Of a table without stored rows these are the rows of its log; without a log, return [], and
        raise once rows have passed through it.
        """
        if self._log is not None:
            return self._log.pairs()  # type: ignore[no-any-return]
        if self._flowed and not self.plan.stored:
            raise lost_of(self.name)
        if not self.plan.stored:
            return []
        pending = self._engine.pending
        if pending:
            return consolidate([*self._store.pairs(), *negate(pending.net_changes(self))])
        return rows_at_rest(self._store)


_COPY = "add_all(view) copies the rows of a view"


hint(Table, OF_TABLES)
