"""Export of tables and views to frames: all rows, or the net changes since a version.

`arrow_of` makes a `pyarrow.Table` of named columns, and other functions convert it further:

    rows of one class               a column for each field
    rows with inner levels          also a list column for each level: list<struct<...>>
    pairs of a join, groups         a column for each binding, called by its name or place
    plain tuples                    a column for each place
    others                          the column "value"

`changes_since` adds up the deltas of the last commits of a view:

    version 41 --delta--> 42 --delta--> 43, the current one        changes_since(41) = their sum

Deltas are kept from the call of `keep_changes` or the first `changes_since` on; other views keep
none. A subscription delivers them after their commit; deltas in delivery are read from the delivery
queue.

For older versions, as after a restart, the commits that a durable database keeps are used: the view
is evaluated over the earlier rows of its tables, and compared with the current one.

Needs:  pyarrow, which only this room, `arrow_columns` and `arrow_rows` import.
State:  the deltas of at most `commits` commits.
Cost:   export some 0.1 to 1 us per value; O(1) per commit that changes the view; a request takes
        O(changes since), or for older versions one evaluation of the view.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass, make_dataclass
from functools import lru_cache
from typing import Any

from optimizer.errors import PlanError
from optimizer.expressions.text import RowsOf
from optimizer.kinds.fields import is_record
from optimizer.plans.declared_kinds import binding_types
from optimizer.plans.properties import binding_names, tables
from reactive.api.internal_interface import (
    contents_of,
    engine_of,
    history_of,
    keep_history,
    name_in_messages,
    node_of,
    read_context,
)
from reactive.api.subscriptions.subscribe import listen
from reactive.borders.durable import journal as durable_history
from reactive.engine.collections.inner_changes import is_nested_class
from reactive.engine.collections.zset import Pair, Row, consolidate, negate
from reactive.engine.dataflow.delta import Delta
from reactive.engine.reference.verify import evaluate_plan
from reactive.engine.runtime import needs

ONE = "value"
"""The column of rows that are neither records nor tuples."""


def arrow_of(shown: Any) -> Any:
    """Return the rows of a table or view as a `pyarrow.Table`; see `to_arrow`.

    Raises
    ------
    PlanError: pyarrow is not installed, or Arrow cannot hold a value.
    """
    needs.check_library(f"{name_in_messages(shown)}: to_arrow")
    return columns_of(shown, shown.snapshot() if hasattr(shown, "snapshot") else list(shown))


def columns_of(shown: Any, rows: Sequence[Any]) -> Any:
    """Return rows of a table or view, current or earlier, as a `pyarrow.Table`.

    Raises `PlanError` if Arrow cannot hold a value.
    """
    from reactive.borders.frames import arrow_columns

    try:
        made = _named_columns(arrow_columns, rows, shown)
        of_sql = getattr(shown, "schema", None)
        return arrow_columns.make_table(
            made if of_sql is None else arrow_columns.type_empty_columns(made, of_sql.hints)
        )
    except arrow_columns.UnfitColumnValue as misfit:
        column = ".".join(misfit.path) or ONE
        raise PlanError(
            f"{name_in_messages(shown)} is no Arrow table: column {column!r}, row {misfit.place}: "
            f"{misfit.reason}\n"
            f"  the row is {rows[misfit.place]!r:.200}\n"
            "  select what Arrow has, as str(value) or float(value), or declare the field as what "
            "it holds"
        ) from None


def weighted_frame(shown: Any, pairs: Sequence[tuple[Any, int]]) -> Any:
    """Return changes of a table or view as a `pyarrow.Table`, with weights as its last column."""
    from reactive.borders.frames import arrow_columns as arrow_delta

    return arrow_delta.with_weights(columns_of(shown, [row for row, _ in pairs]), pairs)


def stream(shown: Any, schema: Any = None) -> Any:
    """Return the capsule of `__arrow_c_stream__`."""
    return arrow_of(shown).__arrow_c_stream__(schema)


def pandas_of(shown: Any) -> Any:
    """Return the rows as a `pandas.DataFrame`; see `to_pandas`."""
    needs.check_library(f"{name_in_messages(shown)}: to_pandas", "pandas")
    return arrow_of(shown).to_pandas()


def polars_of(shown: Any) -> Any:
    """Return the rows as a `polars.DataFrame`; see `to_polars`."""
    needs.check_library(f"{name_in_messages(shown)}: to_polars", "polars")
    import polars as pl

    return pl.DataFrame(arrow_of(shown))


def narwhals_frame(shown: Any) -> Any:
    """Return the frame that narwhals requests from unknown objects.

    Marimo and altair use narwhals.
    """
    import narwhals as nw

    return nw.from_native(arrow_of(shown), eager_only=True)._compliant_frame


def interchange(shown: Any, *, nan_as_null: bool, allow_copy: bool) -> Any:
    """Return the object of the dataframe interchange protocol."""
    return arrow_of(shown).__dataframe__(nan_as_null=nan_as_null, allow_copy=allow_copy)


def numpy_rows(shown: Any) -> Any:
    """Return the `__array__` method of a table or view: an array of records with named fields.

    `pandas.DataFrame` calls it, for rows whose class does not name its columns.

    Raises
    ------
    AttributeError: the rows name their columns, or are plain values; libraries iterate over them.
    """
    if _says_names(shown):
        raise AttributeError("__array__")
    return lambda *_, **__: _records(shown)


def _records(shown: Any) -> Any:
    """Return the rows of a table or view as a NumPy array of records named as its columns."""
    needs.check_library(f"{name_in_messages(shown)}: an array", "numpy")
    import numpy as np

    table = arrow_of(shown)
    kind = _record_class(tuple(table.column_names))
    array = np.empty(table.num_rows, object)
    parts = zip(*(column.to_pylist() for column in table.columns), strict=True)
    array[:] = [kind(*part) for part in parts]
    return array


def _says_names(shown: Any) -> bool:
    """Return True if the class of the rows names columns for pandas, or rows are single values."""
    if getattr(shown, "nesting", None) is not None:
        return False
    types = binding_types(getattr(shown, "relation", shown).plan)
    if len(types) == 1 and is_record(types[0]):
        return is_dataclass(types[0]) or hasattr(types[0], "_fields")
    row = next(iter(shown), None)
    return not isinstance(row, tuple) or (
        hasattr(row, "_fields") and not is_nested_class(type(row))
    )


@lru_cache(maxsize=64)
def _record_class(names: tuple[str, ...]) -> Any:
    """Return a dataclass with fields of arbitrary names, as `dataclasses.asdict` shows them."""
    places = [f"field_{place}" for place in range(len(names))]
    made: Any = make_dataclass("Record", places, frozen=True)
    return made if not names else _rename_fields(made, dict(zip(places, names, strict=True)))


def _rename_fields(made: Any, names: dict[str, str]) -> Any:
    """Give the fields of a dataclass other names, in place; return the class."""
    fields = {}
    for field in made.__dataclass_fields__.values():
        field.name = names[field.name]
        fields[field.name] = field

    def __init__(self: Any, *values: Any) -> None:
        vars(self).update(zip(names.values(), values, strict=True))

    def __repr__(self: Any) -> str:
        return f"Record({', '.join(f'{n}={v!r}' for n, v in vars(self).items())})"

    made.__dataclass_fields__, made.__init__, made.__repr__ = fields, __init__, __repr__
    return made


def _named_columns(arrow: Any, rows: Sequence[Any], shown: Any) -> Any:
    """Return rows as Arrow columns, named by the row class, the view, the bindings or position."""
    node, nesting = getattr(shown, "relation", shown).plan, getattr(shown, "nesting", None)
    types: tuple[Any, ...] = binding_types(node)
    if nesting is not None:
        types = (RowsOf(nesting.types, nesting.columns, nesting.levels),)
    if isinstance(types[0], RowsOf):
        return arrow.columns(rows, types[0])
    names = getattr(shown, "columns", None) or binding_names(node)
    if len(types) == 1:
        found = arrow.of_tuples(rows, types[0])
        return found or arrow.of_binding(rows, types[0], names[0] or ONE)
    called = tuple(name or str(place) for place, name in enumerate(names))
    return arrow.columns(rows, RowsOf(types, called))


COMMITS = 1000
"""The default number of commits whose deltas are kept."""


class NetChanges:
    """The net changes of a view from one version to another: each changed row once.

    It iterates over (row, weight): the copies of a row inserted, or deleted if negative.

    >>> from reactive import Database
    >>> words = Database().table(str, name="words")
    >>> view = words.materialize()
    >>> view.keep_changes()
    >>> words.add_all(["to", "be"])
    >>> view.changes_since(0)
    NetChanges(0 to 1: {'to': +1, 'be': +1})
    """

    def __init__(self, view: Any, since: int, version: int, pairs: Sequence[Pair]) -> None:
        self._view = view
        self._pairs = pairs
        self.since = since
        """The version before the changes."""
        self.version = version
        """The version after the changes: pass it to `changes_since` the next time."""

    def items(self) -> tuple[tuple[Any, int], ...]:
        """Return each changed row with its signed weight."""
        return tuple(self._pairs)

    def to_arrow(self) -> Any:
        """Return the changes as a `pyarrow.Table`, with the weights in the last column.

        The columns are named as by `View.to_arrow`; then `weight`, or `weight_` if a row has a
        `weight`.
        """
        needs.check_library("changes_since(...).to_arrow")
        return weighted_frame(self._view, self._pairs)

    def to_polars(self) -> Any:
        """Return the changes as a `polars.DataFrame`, with the weights in the last column."""
        needs.check_library("changes_since(...).to_polars", "polars")
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_pandas(self) -> Any:
        """Return the changes as a `pandas.DataFrame`, with the weights in the last column."""
        needs.check_library("changes_since(...).to_pandas", "pandas")
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __repr__(self) -> str:
        pairs = ", ".join(f"{row!r}: {weight:+}" for row, weight in self._pairs[:3])
        more = ", ..." if len(self._pairs) > 3 else ""
        return f"NetChanges({self.since} to {self.version}: {{{pairs}{more}}})"


class History:
    """The deltas of the last commits of a view. Created and read inside the lock."""

    def __init__(self, engine: Any, leaf: Any, commits: int) -> None:
        self.commits = commits
        self.since = engine.version
        """The earliest version with known changes."""
        self._engine = engine
        self._deltas: deque[Delta[Any]] = deque()
        self._subscription, self._reference = listen(engine, leaf, self._add, None)

    def keep(self, commits: int) -> None:
        """Keep the deltas of the last `commits` commits from now on."""
        self.commits = commits
        self._forget()

    def deltas(self) -> list[Delta[Any]]:
        """Return the kept deltas, and the deltas in the delivery queue.

        Another thread may be delivering: a delta that has left the queue is among the kept ones.
        """
        queue = list(self._engine.delivery_queue)
        kept = list(self._deltas)
        known = set(map(id, kept))
        waiting = [delta for to, delta in queue if self._reference in to and id(delta) not in known]
        return kept + waiting

    def _add(self, delta: Delta[Any]) -> None:
        """Append a delta, unless it is the last one again; drop those beyond `commits`."""
        if not self._deltas or delta is not self._deltas[-1]:  # repeated after an interrupt
            self._deltas.append(delta)
        self._forget()

    _add.is_repeatable = True  # type: ignore[attr-defined]
    _add.needs_each = True  # type: ignore[attr-defined]

    def _forget(self) -> None:
        """Drop the oldest deltas beyond `commits`; set `since` to the last version dropped."""
        while len(self._deltas) > self.commits:
            self.since = self._deltas[0].version
            self._deltas.popleft()


def keep(view: Any, commits: int) -> None:
    """Keep the changes of a view from now on; see `View.keep_changes`.

    Raises
    ------
    PlanError: `commits` is not a positive integer.
    """
    if type(commits) is not int or commits < 1:
        raise PlanError(f"keep_changes takes a number of commits from 1 on, not {commits!r}")
    with read_context(view):
        _history_of(view, commits).keep(commits)


def changes_since(view: Any, version: int) -> NetChanges:
    """Return the net changes of a view; see `View.changes_since`.

    Raises
    ------
    PlanError: the changes since that version are not kept.
    """
    if type(version) is not int:
        raise PlanError(
            f"changes_since takes the number of a version, not {version!r:.100}\n"
            "  db.version is the one of now"
        )
    with read_context(view):
        engine, history = engine_of(view), _history_of(view, COMMITS)
        deltas = history.deltas()  # read first: a delivery may advance `history.since`
        if 0 <= version < history.since:
            return NetChanges(view, version, engine.version, _from_file(view, history, version))
        if not history.since <= version <= engine.version:
            raise PlanError(_unknown_version(view, history, version, engine.version))
        pairs = [pair for delta in deltas if delta.version > version for pair in delta.items()]
        return NetChanges(view, version, engine.version, consolidate(pairs))


def _from_file(view: Any, history: History, version: int) -> list[Pair]:
    """Return the changes since an older version, by the commits that a durable database keeps.

    Raises `PlanError` if the database does not keep the commits since.

    Cost: one evaluation of the view over the earlier rows.
    """
    engine, node = engine_of(view), view.relation.plan
    read = tables(node)
    then = durable_history.rows_at(engine.journal, version, [engine.table_of(t) for t in read])
    if isinstance(then, str):
        raise PlanError(_unknown_version(view, history, version, engine.version, then))
    before = dict(zip(read, then, strict=True))
    with engine.graph.running():
        rows = evaluate_plan(engine.queries.base(node), before.__getitem__)
    return consolidate([*contents_of(view).items(), *negate(rows.items())])


def _unknown_version(view: Any, history: History, version: int, now: int, why: str = "") -> str:
    """Return the message for changes since a version that is in the future or no longer kept."""
    if version > now:
        return f"{name_in_messages(view)} has no version {version} yet\n  db.version is {now}"
    return (
        f"{name_in_messages(view)} keeps its changes from version {history.since} on, "
        f"not from {version}\n"
        f"  read all rows, and ask from db.version, {now}, on; keep_changes(commits=...), before, "
        f"keeps those of more than {history.commits} commits"
        + (f"\n  they are not known from the file either: {why}" if why else "")
    )


def _history_of(view: Any, commits: int) -> History:
    """Return the history of a view; created if missing, to keep the deltas of `commits` commits."""
    found: History | None = history_of(view)
    if found is None:
        found = History(engine_of(view), node_of(view), commits)
        keep_history(view, found)
    return found
