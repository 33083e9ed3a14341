"""The store of a path or an address, and the adoption of stored rows by a new table.

    "shop.db", Path("shop.db")      a SQLite file
    "postgresql://host/shop"        Postgres

A new table adopts the rows that the store has under its name:

    no table of that name           an empty one is created in the store
    one of the same class           its rows are read
    one of another class            its rows are converted to the current class
                                    (`rows/declared.py`), written, and read

Reading makes no commit, and writes nothing.

State:  none.
Cost:   a million rows of a `msgspec.Struct` take one or two seconds, half of it SQLite's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

from optimizer.errors import PlanError
from optimizer.expressions.members import row_of_instance
from optimizer.rewriting.columns import field_read
from reactive.api.internal_interface import RowChange, keyed_of, node_of, statements_of
from reactive.borders.durable import event_log
from reactive.borders.durable.journal import Journal, KeptTable, none_to_migrate, refusal_of
from reactive.borders.durable.refusals import DAMAGED, damaged_row
from reactive.borders.durable.rows.declared import (
    DeclaredRows,
    Migrate,
    StoredKinds,
    class_differences,
    declared_by,
    migrate_rows,
    misfit_message,
)
from reactive.borders.durable.rows.row_codec import RowCodec, codec_of, given_codec
from reactive.borders.durable.rows.values import DamagedValue, Unstorable
from reactive.borders.durable.store import Change, Rows, Schema, Store, Values
from reactive.engine.runtime.collector import make_old, pause_collector
from reactive.errors import DurabilityError, TableError

Durability: TypeAlias = Literal["commit", "group", "exit"]
"""The time at which a commit is written: before subscribers see it, soon after, or at the end."""
Synchronous: TypeAlias = Literal["normal", "full"]
""""full" if a commit waits for the disk."""
SCHEMES = {
    "postgres": ("reactive.borders.durable.postgres_store", "PostgresStore"),
    "postgresql": ("reactive.borders.durable.postgres_store", "PostgresStore"),
}
"""The module and the class of each scheme, called with the address and `synchronous=`."""


def store_of(path: str | os.PathLike[str], synchronous: Synchronous) -> Store:
    """Return the store of a path or an address; it is not open yet.

    Raises `PlanError` for what is not a path or an address of a known kind.

    >>> import os.path
    >>> os.path.basename(store_of("shop.db", "normal").name)
    'shop.db'
    """
    if not isinstance(path, str | os.PathLike):
        raise PlanError(f"a database is at a path, not at {path!r:.100}\n  {_path_remedy(path)}")
    text = os.fspath(path)
    if isinstance(text, bytes) or not text or text.startswith((":", "file:")):
        raise PlanError(
            f"a database is at the path of a file, not at {text!r:.100}\n"
            "  without a path it is in memory: Database(); and a path is a str or a Path"
        )
    scheme, separator, rest = text.partition("://")
    if not separator:
        from reactive.borders.durable.sqlite_store import SqliteStore

        return SqliteStore(text, synchronous=synchronous)
    if scheme.startswith("sqlite"):
        raise PlanError(
            f"a file is given by its path, not by the address {text!r:.100}\n"
            f"  write Database({rest.removeprefix('/') or 'shop.db'!r})"
        )
    if scheme not in SCHEMES:
        raise PlanError(
            f"there is no store for addresses that begin with {scheme}://\n"
            f"  there is one for {', '.join(SCHEMES)}; another one is given as Database(store=...)"
        )
    module, name = SCHEMES[scheme]
    made: Any = getattr(import_module(module), name)
    found: Store = made(text, synchronous=synchronous)
    return found


def read_only_store(path: Any) -> Any:
    """Return the read-only store of a path, which is not open yet.

    Raises `PlanError` if the path is not that of a file.
    """
    from reactive.borders.durable.sqlite_file import SqliteSnapshot
    from reactive.borders.durable.sqlite_store import SqliteStore

    found = store_of(path, "normal")
    if not isinstance(found, SqliteStore):
        raise PlanError(
            f"readonly=True is of a file, not of {found.name}\n"
            "  tables of Postgres are followed by db.ingest(PostgresSource(...))"
        )
    return SqliteSnapshot(found.name)


def _path_remedy(path: object) -> str:
    """Return the remedy for a value that is not a path."""
    if type(path).__module__.partition(".")[0] in ("sqlalchemy", "sqlite3"):
        return (
            "write Database('shop.db'); tables of SQLAlchemy become live ones by "
            "mirror(Database(), engine, Order)"
        )
    return "write Database('shop.db')"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The options of `Database` that choose the store and the durability."""

    path: str | os.PathLike[str] | None = None
    store: Store | None = None
    durability: Durability = "commit"
    synchronous: Synchronous = "normal"
    keep: int = 0
    readonly: bool = False

    def check(self) -> None:
        """Refuse unknown values, and options that do not fit together.

        Raises
        ------
        PlanError: an option has an unknown value, or does not fit another one.
        """
        if self.durability not in ("commit", "group", "exit"):
            raise PlanError(
                f"durability={self.durability!r} is none\n  write 'commit', 'group' or 'exit'"
            )
        if self.synchronous not in ("normal", "full"):
            raise PlanError(f"synchronous={self.synchronous!r} is none\n  write 'normal' or 'full'")
        if type(self.keep) is not int or self.keep < 0:
            raise PlanError(
                f"keep={self.keep!r:.50} is no number of commits\n  write an integer from 0 on"
            )
        if self.path is not None and self.store is not None:
            raise PlanError("a database has a path or a store, not both\n  leave one of them out")
        if self.path is None and self.store is None:
            raise PlanError(
                f"a database in memory has no use for {self._others()}\n"
                "  give it a path: Database('shop.db', ...)"
            )
        if self.readonly and self._others() != "readonly=True":
            raise PlanError(
                f"a database that is read alone has no use for {self._others()}\n"
                "  write Database(path, readonly=True); the process that writes has the others"
            )
        if self.store is not None and self.synchronous != "normal":
            raise PlanError(
                f"synchronous={self.synchronous!r} is of a path, and this database has a store\n"
                "  leave it out; the store waits for its disk, or does not, as it was made"
            )

    def _others(self) -> str:
        """List the options given beside the path."""
        pairs = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        pairs = (pair for pair in pairs if pair[0] != "path")
        return ", ".join(f"{name}={given!r}" for name, given, usual in pairs if given != usual)


BATCH = 2000
"""The converted rows that are written together."""


def adopt(
    engine: Any,
    table: Any,
    durable: bool | None,
    codec: Any,
    migrate: Migrate | None,
) -> None:
    """Make a new table durable, if it is to be, and fill it with the stored rows.

    durable: None for the usual: stored tables of a database with a file are. codec, migrate: as
    given to `Database.table`.

    Raises
    ------
    PlanError: the table cannot be durable, or the stored rows do not fit its class.
    DurabilityError: the store cannot be read or written.
    """
    journal: Journal | None = engine.journal
    try:
        if not _is_durable(journal, table, durable):
            if codec is not None or migrate is not None:
                raise none_to_migrate(table.name)
            return
        assert journal is not None
        known, rows = _choose_codec(table, codec)
        if table.plan.stored:
            _adopt(journal, Adoption(table, journal.store.name, known, rows, migrate))
        else:
            _adopt_events(journal, table, known, rows, migrate)
    except BaseException:
        engine.graph.drop_source(node_of(table))
        raise


def _adopt(journal: Journal, adoption: Adoption) -> None:
    """Fill a table from the store, or create it there; its commits are written from now on."""
    table, store = adoption.table, journal.store
    journal.settle()
    if table.name in store.tables():
        with pause_collector():
            if journal.writes:
                adoption.write_again(store)
            adoption.fill(store)
            make_old(least=1)
    else:
        store.create(adoption.codec.schema)
    journal.keep(table, adoption.kept())
    if not journal.writes:
        journal.register_table(table, adoption)  # type: ignore[attr-defined]


def _adopt_events(
    journal: Journal,
    table: Any,
    known: DeclaredRows | None,
    codec: RowCodec,
    migrate: Migrate | None,
) -> None:
    """Keep the events of a stream in the store from now on, beside those that it has."""
    numbers = event_log.Numbers()
    made = event_log.numbered(codec, numbers)
    adoption = Adoption(table, journal.store.name, known, made, migrate)
    journal.settle()
    with pause_collector():
        log = event_log.keep_events(journal, adoption, numbers)
    journal.keep(table, replace(adoption.kept(), log=log))


def _is_durable(journal: Journal | None, table: Any, durable: bool | None) -> bool:
    """Return True if a table is to be stored. Raises `PlanError` if `durable=True` cannot be."""
    if durable is False or (durable is None and (journal is None or not table.plan.stored)):
        return False
    if journal is None:
        raise PlanError(
            f"table {table.name!r} cannot be durable: its database is in memory\n"
            "  give the database a path: Database('shop.db')"
        )
    if not table.plan.stored and not table._keeps_events:
        raise PlanError(
            f"table {table.name!r} cannot be durable: its rows are not stored\n"
            "  leave out stored=False, or durable=True"
        )
    if not table.plan.stored and not journal.writes:
        raise PlanError(
            f"stream {table.name!r} cannot be durable: its database is open for reading alone\n"
            "  make it in the process that writes the file"
        )
    return True


def _choose_codec(table: Any, codec: Any) -> tuple[DeclaredRows | None, RowCodec]:
    """Return what the row type declares, None with a given codec; and the codec of the rows.

    Raises `PlanError` if the rows have no stored form.
    """
    key_of, field = _key_or_field(table, codec)
    if codec is not None:
        encode, decode = _pair(table, codec)
        return None, given_codec(table.name, encode, decode, key_of)
    try:
        known = declared_by(table.row_type)
    except Unstorable as misfit:
        raise PlanError(
            f"table {table.name!r} cannot be stored: {misfit}, which has no plain form\n"
            "  give db.table(..., codec=): an object with encode(row) -> bytes or str, and decode; "
            "or keep the table out with durable=False"
        ) from None
    return known, codec_of(table.name, known, field, key_of)


def _key_or_field(table: Any, codec: Any) -> tuple[Callable[[Any], Any] | None, str | None]:
    """Return the function of the key, or the name of the field that is the key.

    One of the two is None; both are for a table without a key.
    """
    if table.plan.key is None:
        return None, None
    key = table.plan.key.function
    field = None if codec is not None else field_read(key)
    if field is not None and field in _record_fields(table.row_type):
        return None, field
    return key, None


def _record_fields(row_type: Any) -> Any:
    """Return the declared fields of a record class; none for any other row type."""
    try:
        known = declared_by(row_type)
    except Unstorable:
        return ()
    return known.fields if known.shape == "record" else ()


def _pair(table: Any, codec: Any) -> tuple[Any, Any]:
    """Return the functions `encode` and `decode` of `codec=`. Raises `PlanError` if it has none."""
    pair = codec if isinstance(codec, tuple) and len(codec) == 2 else None
    encode, decode = pair or (getattr(codec, "encode", None), getattr(codec, "decode", None))
    if not callable(encode) or not callable(decode):
        raise PlanError(
            f"codec= of table {table.name!r} is {codec!r:.100}\n"
            "  give an object with encode(row) -> bytes or str, and decode; or the two in a tuple"
        )
    return encode, decode


@dataclass(frozen=True, slots=True)
class Adoption:
    """The conversion of stored rows to the rows of a table.

    table: the table, still empty.
    where: the name of the store.
    known: the declared class of its rows; None if a codec of the user's writes them.
    codec: the current encoder and decoder of rows.
    migrate: the user's function that converts rows of an earlier class.
    """

    table: Any
    where: str
    known: DeclaredRows | None
    codec: RowCodec
    migrate: Migrate | None

    def kept(self) -> KeptTable:
        """Return the entry of the journal for the table."""
        name = self.table.name
        return KeptTable(name, self.codec, refusal_of(name), self._again)

    def write_again(self, store: Store) -> None:
        """Rewrite the stored rows in the current form, if it differs or they are changed.

        Raises
        ------
        PlanError: they do not fit the current class.
        """
        name, schema = self.table.name, self.codec.schema
        if store.tables()[name] != schema:
            store.create(schema, self._converted(store))
        elif isinstance(self.migrate, RowChange):
            before, after = list(store.rows(name)), self._converted(store)
            if store.history(0):
                store.create(schema, before)  # which ends the history of these rows
            self.migrate.write([_change_between(schema, before, after)])

    def rows(self, store: Store) -> Rows:
        """Return the stored rows in their current form.

        Raises
        ------
        PlanError: they do not fit the current class.
        """
        name = self.table.name
        old, new = store.tables()[name], self.codec.schema
        return store.rows(name) if old == new else self._converted(store)

    def _converted(self, store: Store) -> Rows:
        """Return the stored rows, converted. Raises `PlanError` if they do not fit the class."""
        name = self.table.name
        old, new = store.tables()[name], self.codec.schema
        self._check_about(old)
        if _is_of_codec(old) is not _is_of_codec(new):
            which = "was" if _is_of_codec(old) else "was not"
            raise PlanError(
                f"table {name!r} in {self.where} {which} written by a codec\n"
                "  read it as it was written, and add its rows to a table of another name"
            )
        self._check_fits(old)
        return self._by_weight(self._written_today(store, old))

    def fill(self, store: Store) -> None:
        """Fill the empty table with the stored rows.

        Raises `DurabilityError` if a row is refused or cannot be read.
        """
        kinds = StoredKinds(self.codec.schema)
        once, often = self.read(store, kinds)
        do, name = statements_of(self.table), self.table.name
        is_plain = self.codec.read_plain is not None
        try:
            do.add_all(once, kinds.test_of(once) if is_plain else None, is_new=False)
            for row, weight in often:
                do.add(row, weight, is_new=False)
            do.gate.check_restored([*once, *(row for row, _ in often)], self.where)
        except TableError as error:
            raise DurabilityError(
                f"a row of table {name!r} in {self.where} is refused: {error}"
            ) from error
        except TypeError as error:  # such as a row that has no hash
            row = next((row for row in once if not _has_hash(row)), once[:1])
            raise DurabilityError(damaged_row(self.where, name, row)) from error

    def read(
        self, store: Store, kinds: StoredKinds | None = None
    ) -> tuple[list[Any], list[tuple[Any, int]]]:
        """Return the rows that are stored once, and those stored several times with their counts.

        Raises `DurabilityError` for a damaged row, `PlanError` if values or keys do not fit
        the class.

        kinds: records the classes of their values.
        """
        once: list[Any] = []
        often: list[tuple[Any, int]] = []
        key, name = self.codec.key, self.table.name
        read_plain = self.codec.read_plain
        kinds = kinds or StoredKinds(self.codec.schema)
        for batch, weight in self.rows(store):
            is_plain = read_plain is not None and kinds.are_plain(batch)
            read = read_plain if read_plain and is_plain else self.codec.read
            try:
                made = read(batch)
            except (Unstorable, *DAMAGED) as misfit:
                if isinstance(misfit, Unstorable) and not isinstance(misfit, DamagedValue):
                    raise _unreadable(self.table, misfit) from None
                row = _first_unread(read, batch)
                raise DurabilityError(damaged_row(self.where, name, row)) from misfit
            if key is not None and [key(row) for row in made] != [row[-1] for row in batch]:
                raise PlanError(
                    f"the key of table {name!r} gives other keys than those in {self.where}\n"
                    "  give it another name, and add the rows of this one"
                )
            if weight == 1:
                once += made
            else:
                often += [(row, weight) for row in made]
        return once, often

    def _again(self, old: Schema, rows: Sequence[Values]) -> list[Any]:
        """Convert rows stored elsewhere under another schema to rows of the current class."""
        self._check_fits(old)
        return [row for row, _ in self._migrate(old, rows)]

    def _check_about(self, old: Schema) -> None:
        """Raise if the description of the stored schema cannot be read."""
        try:
            _is_of_codec(old)
        except DAMAGED as error:
            entry = {"name": old.table, "about": old.about}
            raise DurabilityError(damaged_row(self.where, "reactive_tables", entry)) from error

    def _check_fits(self, old: Schema) -> None:
        """Raise `PlanError` if rows of a schema do not fit, and there is no `migrate`."""
        try:
            found = class_differences(old, self.codec.schema, self.known)
        except DAMAGED as error:
            entry = {"name": old.table, "about": old.about}
            raise DurabilityError(damaged_row(self.where, "reactive_tables", entry)) from error
        if found and self.migrate is None:
            raise PlanError(misfit_message(self.table.name, self.where, self.table.row_type, found))

    def _migrate(self, old: Schema, rows: Sequence[Values]) -> Any:
        """Convert stored rows; of those that fit the class, only a `RowChange` is called."""
        changes = isinstance(self.migrate, RowChange)
        differs = changes or class_differences(old, self.codec.schema, self.known)
        migrate = self.migrate if differs else None
        return _report_misfits(self.table, self.where, migrate_rows(old, self.known, migrate, rows))

    def _by_codec(self, rows: Sequence[Values]) -> Iterator[tuple[Any, int]]:
        yield from ((row, n) for n, row in enumerate(self.codec.read(rows)))

    def _written_today(self, store: Store, old: Schema) -> dict[Values, int]:
        """Return the rows in their current form, with counts: two old rows may become equal.

        Raises `TableError` if a row is refused, or cannot be stored in that form.
        """
        refused = refusal_of(self.table.name)
        found: dict[Values, int] = {}
        for batch, weight in list(store.rows(self.table.name)):
            if self.known is None:
                made: Any = _report_misfits(self.table, self.where, self._by_codec(batch))
            else:
                made = list(self._migrate(old, batch))
            for given, _ in made:
                row = row_of_instance(given)
                try:
                    statements_of(self.table).check(row)
                    values = self.codec.write(row)
                except Unstorable as misfit:
                    raise refused(row, misfit) from None
                found[values] = found.get(values, 0) + weight
        return found

    def _by_weight(self, found: Mapping[Values, int]) -> Rows:
        """Return the rows in batches, each of rows with one count.

        Raises `TableError` if a row of a table with a key has a count other than 1.
        """
        by_weight: dict[int, list[Values]] = {}
        for values, weight in found.items():
            by_weight.setdefault(weight, []).append(values)
        if keyed_of(self.table) is not None and by_weight.keys() - {1}:
            row = next(rows[0] for weight, rows in by_weight.items() if weight > 1)
            raise TableError(
                f"two rows of table {self.table.name!r} in {self.where} become one, {row!r:.200}, "
                "and its key is to be its own\n"
                "  make the table as it was before, and remove one of them; or leave it out by "
                "migrate="
            )
        return [
            (rows[start : start + BATCH], weight)
            for weight, rows in by_weight.items()
            for start in range(0, len(rows), BATCH)
        ]


def _change_between(schema: Schema, before: Rows, after: Rows) -> Change:
    """Return the change from stored rows to others of the same form."""
    old, new = ({row: n for batch, n in rows for row in batch} for rows in (before, after))
    if schema.key is not None:
        gone, come = [r for r in old if r not in new], [r for r in new if r not in old]
        return Change(schema.table, gone, come)
    counts = [(row, old.get(row, 0), new.get(row, 0)) for row in {**old, **new}]
    return Change(schema.table, counted=[each for each in counts if each[1] != each[2]])


def _is_of_codec(schema: Schema) -> bool:
    return bool(json.loads(schema.about or "{}").get("codec"))


def _first_unread(read: Callable[[Sequence[Values]], Any], batch: Sequence[Values]) -> Any:
    """Return the first row of a batch that cannot be read; a list with one row if each can."""
    for row in batch:
        try:
            read([row])
        except (Unstorable, *DAMAGED):
            return row
    return batch[:1]


def _has_hash(row: Any) -> bool:
    """Return True if a row can be hashed."""
    try:
        hash(row)
    except TypeError:
        return False
    return True


def _report_misfits(table: Any, where: str, made: Any) -> Any:
    """Yield the items of `made`; convert the error of a value that cannot be read.

    Raises `DurabilityError` for a damaged value, `PlanError` for one that does not fit.
    """
    try:
        yield from made
    except DamagedValue as misfit:
        raise DurabilityError(damaged_row(where, table.name, str(misfit))) from misfit
    except Unstorable as misfit:
        raise _unreadable(table, misfit) from None


def _unreadable(table: Any, misfit: Unstorable) -> PlanError:
    """Return the error for a stored row with a value that the row type cannot hold."""
    return PlanError(
        f"a row of table {table.name!r} holds {misfit}\n"
        "  have a field declared to hold it, or give db.table(..., migrate=)"
    )
