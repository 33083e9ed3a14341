"""Methods of tables and views that need a border: data frames, and state that outlives the process.

Needs: pyarrow, imported by `reactive.borders.frames` at the first use.
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
    """Base of views, which may be made with `kept=True`."""

    __slots__: tuple[str, ...] = ()
    _engine: Engine
    _node: Any
    _reading: Callable[[], Any]

    def kept_state(self) -> KeptState | None:
        """Return the origin of the state with which the operators began; None if it is not kept.

        The state is "read" or "computed", with the reason, the version and bytes of the stored
        state, and the seconds that it took.

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
    """Make a view whose state is kept, from the stored state if there is one.

    Raises
    ------
    PlanError: the view cannot be kept.
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
    """Conversions of a table or view to data frames."""

    def to_arrow(self) -> Any:
        """Return the current rows as a `pyarrow.Table`; collections and nested rows are lists.

        The columns are the fields of a record, and its nested rows; the bindings, by name or
        position; the items of a plain tuple, by position; otherwise `value`. Column types are the
        declared ones, for empty relations too, else those of the values. A Decimal is a
        `decimal128(38, 18)`, a time with a zone one in UTC, an Enum its name.

        Cost: 0.1 to 1 us per value.

        Raises
        ------
        PlanError: pyarrow is not installed; a value is not of the type that its field declares; or
            Arrow has no type for it, as for an integer beyond 64 bits or a complex number.
        """
        return _export().arrow_of(self)

    def to_pandas(self) -> Any:
        """Return the current rows as a `pandas.DataFrame`; list columns have lists of dictionaries.

        Raises
        ------
        PlanError: as for `to_arrow`; or pandas is not installed.
        """
        return _export().pandas_of(self)

    def to_polars(self) -> Any:
        """Return the current rows as a `polars.DataFrame`.

        Raises
        ------
        PlanError: as for `to_arrow`; or polars is not installed.
        """
        return _export().polars_of(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the current rows as a stream of Arrow record batches.

        polars, DuckDB, pyarrow and others read it: `pl.DataFrame(view)`, `duckdb.sql("from view")`,
        `pa.table(view)`.
        """
        return _export().stream(self, requested_schema)

    def __narwhals_dataframe__(self) -> Any:
        """Return a frame for narwhals, marimo and altair: `nw.from_native(view)`."""
        return _export().narwhals_frame(self)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """Return the current rows by the dataframe interchange protocol, which seaborn uses."""
        return _export().interchange(self, nan_as_null=nan_as_null, allow_copy=allow_copy)

    @property
    def __array__(self) -> Callable[..., Any]:
        """A function that returns the rows as a structured NumPy array.

        It exists only if the rows themselves do not name their columns:
        `pandas.DataFrame(view)` reads the names from it. Other rows have no such attribute,
        and pandas iterates over them.
        """
        found: Callable[..., Any] = _export().numpy_rows(self)
        return found


def _export() -> Any:
    from reactive.api.borders import export

    return export


@boundary
class KeepsChanges(KeepsState):
    """Methods of a view about its last commits, and about an earlier process."""

    _history: Any = None
    """The deltas of its last commits, recorded after the first call of `keep_changes` or
    `changes_since`.
    """

    def keep_changes(self, commits: int = 1000) -> None:
        """Record the changes of the next commits, for `changes_since`.

        Parameters
        ----------
        commits: the number of recorded commits, the last ones that changed the view.

        State: their deltas, while the view is open.

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
        """Return the net change of the view since a version: inserted and deleted rows.

        Changes are recorded since `keep_changes`, or since the first call of this method. Older
        changes, for example from before a restart, are computed from the commits of a durable
        database (`Database(path, keep=1000)`), if it has all commits since then, and the view reads
        only durable tables.

        Parameters
        ----------
        version: an earlier `db.version`, or the `version` of the last returned changes.

        The result iterates over (row, weight), and is a frame: `to_arrow()`, `to_polars()` and
        `to_pandas()` have the columns of the view and `weight`.

        Cost: O(changes since); for older ones that of evaluating the view.

        Raises
        ------
        PlanError: changes since that version are not recorded; the message names the oldest
            version.

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
    """Methods of a table that take data frames."""

    row_type: Any
    _frame: Any = None
    """The columns of the last frame, if there was one."""

    def add_arrow(self, data: Any) -> None:
        """Add the rows of a frame, in one commit, as `add_all` does.

        Columns become fields by name, or tuple items by position; columns that are not fields are
        ignored. Structs become records, lists a `Bag`, tuple or frozenset, as the row class
        declares. This is the inverse of `View.to_arrow`.

        Parameters
        ----------
        data: a `pyarrow.Table`, for example from `pyarrow.parquet.read_table`, a record batch, or
            any object with `__arrow_c_stream__`.

        Raises
        ------
        PlanError: pyarrow is not installed; or a field without a default has no column.
        TableError: a row is refused.
        """
        _loading().add_frame(self, data)

    def sync(self, frame: Any, key: str | Sequence[str] | None = None) -> Synced:
        """Replace the rows of the table by those of a frame, comparing columns instead of rows.

        Only changed rows become Python objects, whatever the order of the frame. If the key of the
        table is a field, rows are compared by key; otherwise as a multiset.

        Parameters
        ----------
        frame: as for `Database.table_from`, with a column for each field.
        key: for a table without a key, the field or fields by which a changed row is counted and
            reported as `updated`. For a table with a key, only that key.

        Return the number of rows `added`, `removed` and `updated` (the key existed).

        State: the columns of the frame, until the next one, and 8 bytes for each row.

        Cost: O(values), 5 to 50 ns for each, plus the work of the difference; 0.3 us for each at
            the first call, and after the table changed in another way, to make columns of the rows.

        Raises
        ------
        PlanError: `frame` is not a frame, a field has no column, or the table has another key.
        TableError: two rows have one key, or a row is refused; the table is unchanged.

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
        """Add many rows and report progress; return the number of added rows.

        Parameters
        ----------
        rows: an iterable of rows, such as a generator; or a frame, as for `Database.table_from`; or
            the path of a Parquet, CSV, Feather or JSON Lines file. Parquet is read batch by batch.
        progress: True for a progress bar, shown on a terminal after a second. Or a callable, (done,
            total) -> ignored, with the number of added rows and of all rows, or None if that is
            unknown; it is called every `batch` or 10,000 rows.
        batch: the number of rows of a commit. By default all rows are one commit, all or nothing.
            With a number, the batches before a refused one are kept, which a note of the error
            says, and at most one batch is in memory beside the table.

        Raises
        ------
        TableError: a row is refused.
        PlanError: `rows` is of none of these kinds; or a field without a default has no column.

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
