"""Methods of tables and views that need a border: data frames, and state that outlives the process.

What tables and views give to libraries of data frames, and what tables take of frames.

Needs: pyarrow; what knows of it (`reactive.borders.frames`) is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.errors import PlanError
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.left_out import optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive.api.view import AnyView
    from reactive.borders.durable.kept_views import KeptState
    from reactive.borders.frames.export import NetChanges
    from reactive.borders.frames.loading import OnProgress, Synced
    from reactive.engine.transactions.engine import Engine


# State of a view that outlives the process: how such a view is made, and what it tells of that.


@boundary
class KeepsState:
    """A view that may be made with `kept=True`."""

    __slots__: tuple[str, ...] = ()
    _engine: Engine
    _node: Any
    _reading: Callable[[], Any]

    def kept_state(self) -> KeptState | None:
        """Return the origin of the state that its operators began with; None if it is not kept.

        The state is "read" or "computed"; with why, the version and the bytes of what is stored,
        and how many seconds it took.

        >>> import tempfile
        >>> from reactive import Database, Sum
        >>> db = Database(tempfile.mkdtemp() + "/shop.db")
        >>> sales = db.table(tuple[str, int], name="sales")
        >>> totals = sales.group_by(lambda s: s[0]).aggregate(Sum(lambda s: s[1]))
        >>> view = totals.materialize("totals", kept=True)
        >>> view.kept_state().state, view.kept_state().why
        ('computed', 'nothing is stored of it yet')
        """
        with self._reading():
            kept = getattr(self._engine.journal, "kept_views", None)
            found: KeptState | None = None if kept is None else kept.state_of(self._node.rank)
            return found


def made_or_read(
    engine: Engine, name: str | None, node: plan.Node, make: Callable[[], AnyView]
) -> AnyView:
    """Make a view of a query whose state is kept with what is stored of it.

    Raises
    ------
    PlanError: it cannot be kept.
    """
    journal = engine.journal
    if journal is None:
        raise PlanError(
            "a view of a database in memory cannot be kept\n"
            "  give the database a path: Database('shop.db')"
        )
    if journal.kept_views is None:
        journal.kept_views = optional("borders.durable.kept_views").KeptViews(engine)
    view: AnyView = journal.kept_views.make(name, node, make)
    return view


@boundary
class ToFrames:
    """What a table and a view are to libraries of data frames."""

    def to_arrow(self) -> Any:
        """The rows of now as a `pyarrow.Table`; collections and what is inside are list columns.

        Columns are the fields of a record, and beside them what is inside; of rows of several
        bindings these, by their names or places; of plain tuples the places; else `value`. Their
        types are what the classes declare, also of no rows, or else those of the values. A
        Decimal is a `decimal128(38, 18)`, a time with a zone one in UTC, an Enum its name.

        Costs some 0.1 to 1 us per value.

        Raises
        ------
        PlanError: pyarrow is not installed; or a value is not what its field declares, or nothing
            that Arrow has: an integer beyond 64 bits, a complex number.
        """
        return _export().arrow_of(self)

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`; list columns have lists of dictionaries.

        Raises
        ------
        PlanError: as `to_arrow`; or pandas is not installed.
        """
        return _export().pandas_of(self)

    def to_polars(self) -> Any:
        """The same as a `polars.DataFrame`.

        Raises
        ------
        PlanError: as `to_arrow`; or polars is not installed.
        """
        return _export().polars_of(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows of now as Arrow's stream of record batches, which polars, DuckDB, pyarrow and
        others read: `pl.DataFrame(view)`, `duckdb.sql("from view")`, `pa.table(view)`."""
        return _export().stream(self, requested_schema)

    def __narwhals_dataframe__(self) -> Any:
        """For narwhals, and what reads frames by it: `nw.from_native(view)`, marimo, altair."""
        return _export().narwhals_frame(self)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """The rows of now by the dataframe interchange protocol, which seaborn asks for."""
        return _export().interchange(self, nan_as_null=nan_as_null, allow_copy=allow_copy)

    @property
    def __array__(self) -> Callable[..., Any]:
        """Of rows that do not say themselves how their columns are called, records that do: so does
        `pandas.DataFrame(view)` learn of them. Of others there is none: they are iterated over."""
        found: Callable[..., Any] = _export().numpy_rows(self)
        return found


def _export() -> Any:
    from reactive.api.borders import export

    return export


@boundary
class KeepsChanges(KeepsState):
    """The methods of a view about its last commits, and about an earlier process."""

    _history: Any = None
    """The deltas of its last commits, once somebody has asked for them."""

    def keep_changes(self, commits: int = 1000) -> None:
        """Keep what the next commits change, for `changes_since`; of the last `commits` of them
        that have changed the view.

        State: their deltas, as long as there is the view.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> short = words.where(lambda w: len(w) < 3).materialize("short")
        >>> short.keep_changes()
        >>> words.add_all(["to", "be", "that"])
        >>> words.remove("to")
        >>> short.changes_since(0).items()
        (('be', 1),)
        """
        _history().keep(self, commits)

    def changes_since(self, version: int) -> NetChanges:
        """What the view has changed from a version until now: rows that came and went, net.

        Changes are kept from `keep_changes` on, or else from the first call of this. Older ones, as
        of before a restart, come of the commits that a durable database keeps
        (`Database(path, keep=1000)`), if it keeps all since then, and all tables that the view
        reads are durable.

        Parameters
        ----------
        version: of the database, as `db.version` was, or `version` of the changes asked for last.

        Returns what iterates over (row, weight), and is a frame: `to_arrow()`, `to_polars()` and
        `to_pandas()` have the columns of the view and `weight`.

        Raises
        ------
        PlanError: the changes since then are not kept; the message says from which version on they
            are.

        Cost: O(changes since); of older ones that of evaluating the view.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> view = words.materialize()
        >>> known = view.changes_since(db.version)
        >>> words.add_all(["to", "to", "be"])
        >>> list(view.changes_since(known.version))
        [('to', 2), ('be', 1)]
        """
        found: NetChanges = _history().changes_since(self, version)
        return found


def _history() -> Any:
    from reactive.api.borders import history

    return history


@boundary
class FromFrames:
    """What a table takes of data frames."""

    row_type: Any
    _frame: Any = None
    """The columns of the last frame, if there was one."""

    def add_arrow(self, data: Any) -> None:
        """Add the rows of a frame, in one commit, as `add_all` does.

        Columns are fields by their names, or the places of a tuple; columns that are no field are
        left out. Structs become records, lists a `Bag`, tuple or frozenset, as the class of the
        rows declares. So what `View.to_arrow` gives is rows again.

        Parameters
        ----------
        data: a `pyarrow.Table`, as `pyarrow.parquet.read_table` gives, a record batch, or anything
            that has `__arrow_c_stream__`.

        Raises
        ------
        PlanError: pyarrow is not installed; or a field without a default has no column.
        TableError: a row is refused.
        """
        _loading().add_frame(self, data)

    def sync(self, frame: Any, key: str | Sequence[str] | None = None) -> Synced:
        """Make the rows of a frame the rows of the table: as `replace_all`, found by columns.

        Rows that are in both become no Python objects, in whatever order the frame has them. Of a
        table with a key that is a field, rows are compared by it; of others as a multiset.

        Parameters
        ----------
        frame: as of `Database.table_from`, with a column for each field.
        key: of a table without a key, a field, or several, by which subscribers are told, and it is
            counted, what was `updated`. Of others it is the key.

        Returns how many rows were `added`, `removed` and `updated`, whose key was there.

        Raises
        ------
        PlanError: it is no frame, a field has no column, or the table has another key.
        TableError: a key is there twice, or a row is refused; the table is unchanged.

        State: the columns of the frame, until the next one, and 8 bytes for each row.

        Cost: O(values), 5 to 50 ns for each, and what the difference takes. The first time, and
            when rows were changed otherwise since, 0.3 us for each: columns are made of the rows.

        >>> from reactive import Database
        >>> db = Database()
        >>> stock = db.table_from([{"id": 1, "n": 3}, {"id": 2, "n": 5}], key="id", name="stock")
        >>> stock.sync([{"id": 3, "n": 9}, {"id": 2, "n": 6}])
        Synced(added=1, removed=1, updated=1)
        """
        from reactive.api.borders import sync

        return sync.sync(self, frame, key)

    def load(
        self, rows: Any, *, progress: bool | OnProgress = False, batch: int | None = None
    ) -> int:
        """Add many rows, and tell how far it has come; how many rows were added.

        Parameters
        ----------
        rows: an iterable of rows, such as a generator; or a frame, as of `Database.table_from`; or
            the path of a file of Parquet, of which a batch is read at a time, CSV, Feather or JSON
            lines.
        progress: True for a bar on the terminal, from a second on; where the output is no terminal
            nothing is printed. Or a callable, (done, total) -> anything, with the rows that are
            there so far, and how many there are or None; it is called every `batch` or 10,000 rows.
        batch: rows of a commit. Without it all rows are one commit, all or nothing. With it,
            batches before one that is refused stay, which a note of the error says; and no more
            than a batch is held beside the table.

        Raises
        ------
        TableError: a row is refused.
        PlanError: what is given is none of these; or a field without a default has no column.

        >>> from reactive import Database
        >>> words = Database().table(str, name="words")
        >>> words.load((w for w in "to be or not".split()), batch=3, progress=print)
        0 None
        3 None
        4 None
        4
        """
        done: int = _loading().load(self, rows, progress, batch)
        return done


def _loading() -> Any:
    from reactive.api.borders import loading

    return loading
