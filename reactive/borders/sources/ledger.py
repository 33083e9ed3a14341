"""The ledger of a source: its token, the rows of each origin, and the refused rows.

    name of the source --> a table of entries, by their owners
        TOKEN                 the token
        ("token", k)          entry k of a token that is a dictionary, if given by its changes
        ("origin", o)         the rows of origin o that are in tables, and those left out
        ("origin", o, n)      rows appended to the origin later: parts of decreasing size
        ("key", n, k)         the row with key k that is left out of table n
        ("row", n, r)         a left-out row without a key, or whose key cannot be computed

The table is changed in the transaction of the batch, so its entries and the rows of the commit are
stored together or not at all. A store that records commits records the changes of this table with
the others, and so the token with the commit.

In a durable database the ledger is a table of the store, so that each batch is committed exactly
once across restarts:

    owner                     the other columns of the entry
    ("token",)                the token, as plain values
    ("origin", "a.py")        its rows, in the form of their tables, and those left out

State:  an entry per origin, with its rows; one per refused row, or entry of the token.
Cost:   O(1) per commit, and per origin that it changes; rows appended to an origin of n rows O(log
        n) each, as a part absorbs the later ones that are no larger; if durable, a commit writes
        one more row, and the rows of an origin a second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from reactive.api.internal_interface import keyed_of, statements_of
from reactive.api.literal import Raised, RowError
from reactive.api.table import Table
from reactive.api.view import View
from reactive.borders.durable.journal import Journal, KeptTable
from reactive.borders.durable.refusals import DAMAGED, damaged_row
from reactive.borders.durable.rows.declared import declared_by
from reactive.borders.durable.rows.row_codec import GivenCodec, RowCodec
from reactive.borders.durable.rows.values import Unstorable, class_names, pack_value, unpack_value
from reactive.borders.durable.store import Column, Schema, Values, schema_of_text, text_of_schema
from reactive.borders.sources.batch import Targets, Token
from reactive.engine.collections.zset import Row
from reactive.errors import ClosedError, DurabilityError, ReactiveError, SourceError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


Owner: TypeAlias = tuple[Any, ...]
TOKEN: Owner = ("token",)
ORIGIN = "origin"


def part_owner(origin: Hashable, number: int) -> Owner:
    """Return the owner of part `number` of an origin."""
    return (ORIGIN, origin, number) if number else (ORIGIN, origin)


class Entry:
    """An entry of a ledger, never changed.

    It is not a record, because the table would inspect the fields of a record: a token need have no
    hash, and no two entries are equal.

    owner: the owner.
    token: the token, or one entry of it.
    rows: the rows of an origin, by the numbers of tables.
    errors: the rows that are left out.
    """

    __slots__ = ("errors", "owner", "rows", "token")

    def __init__(
        self,
        owner: Owner,
        token: Token = None,
        rows: Mapping[int, tuple[Row, ...]] | None = None,
        errors: tuple[RowError, ...] = (),
    ) -> None:
        self.owner = owner
        self.token = token
        self.rows = rows
        self.errors = errors


class Ledger:
    """The ledger of the source of a name, in a database."""

    def __init__(self, engine: Engine, name: str, targets: Targets) -> None:
        self.name = name
        self.targets = targets
        self._engine = engine
        self.since: Token = None
        """The start position while the source has no token."""
        self.entries: Table[Entry, Owner] = self._table(Entry, f"source {name}", "owner")
        self.errors: Table[RowError] | None = None
        """The rows that were left out; None while a refused row stops the source."""
        self.view: View[RowError] | None = None
        if engine.journal is not None:
            with engine.shaping(to_write=True):
                adopt_ledger(engine.journal, self, Entry)

    @property
    def token(self) -> Token:
        """The token of the last commit that had one."""
        try:
            entry = self.entries.get(TOKEN)
            is_whole = entry is None or entry.rows is None
            every: Iterable[Entry] = () if is_whole else list(self.entries)
        except ClosedError:  # final: a closed database does not change
            entry, every = self.held(TOKEN), self._all_held()
        if entry is None or entry.rows is None:
            return None if entry is None else entry.token
        parts = {each.owner[1]: each.token for each in every if _is_part(each)}
        return {key: part for key, part in {**entry.token, **parts}.items() if part is not None}

    def has_come_to(self, token: Token) -> bool:
        """Return True if `token` is that of the last commit with a token; tokens have no order."""
        return bool(self.token == token)

    @property
    def origins(self) -> Origins:
        """The rows of each origin in the tables."""
        return Origins(self)

    def parts(self, origin: Hashable) -> list[Entry]:
        """Return the entries of an origin as of the open transaction, in order."""
        found: list[Entry] = []
        while (entry := self.held(part_owner(origin, len(found)))) is not None:
            found.append(entry)
        return found

    def keep_errors(self) -> None:
        """Allow rows to be left out from now on."""
        if self.errors is None:
            name = f"errors of {self.name}"
            self.errors = self._table(RowError, name, None)
            noted = [error for entry in self.entries for error in entry.errors]
            statements_of(self.errors).add_all(noted)
            self._engine.tables[self.errors.plan.number] = self.errors
            self.view = self.errors.materialize(name)

    def check_same(self, targets: Targets) -> None:
        """Raise `SourceError` if the source fed other tables before."""
        if [*map(id, targets.tables)] != [*map(id, self.targets.tables)]:
            raise SourceError(
                f"source {self.name!r} feeds {self.targets}, and its token is that of their rows, "
                f"not of {targets}\n  give it another name: db.ingest(source, table, name=...)"
            )

    def change(self, entries: Mapping[Owner, Entry | None]) -> None:
        """Replace entries by owner; None deletes the entry. Called inside a transaction."""
        known = (self.held(owner) for owner in entries)
        remove_rows(self.entries, [entry for entry in known if entry is not None])
        add_rows(self.entries, [entry for entry in entries.values() if entry is not None])

    def held(self, owner: Owner) -> Entry | None:
        """Return the entry of an owner as of the open transaction; None if there is none."""
        keyed = keyed_of(self.entries)
        return None if keyed is None else keyed.by_key.get(owner)

    def with_token(self, token: Token) -> dict[Owner, Entry | None]:
        """Return the entries that set a new token, with None for the parts of the old one.

        Called inside a transaction.
        """
        old = self.held(TOKEN)
        gone = () if old is None or old.rows is None else filter(_is_part, self._all_held())
        return {**{part.owner: None for part in gone}, TOKEN: Entry(TOKEN, token)}

    def with_token_changes(self, changes: Mapping[Any, Token]) -> dict[Owner, Entry | None]:
        """Return the entries that change parts of the token. Call it inside a transaction.

        Raises `SourceError` if the token is not a dictionary.
        """
        old = self.held(TOKEN)
        first = (self.since or {}) if old is None else old.token
        if not isinstance(first, Mapping):
            raise SourceError(
                f"source {self.name!r} is at token {first!r:.100}, which is no dictionary whose "
                "entries could change\n  give tokens by Batch(token=...)"
            )
        found: dict[Owner, Entry | None] = {}
        if old is None or old.rows is None:
            found[TOKEN] = Entry(TOKEN, first, {})
        for key, part in changes.items():
            owner = (*TOKEN, key)
            found[owner] = None if part is None and key not in first else Entry(owner, part)
        return found

    def _all_held(self) -> list[Entry]:
        keyed = keyed_of(self.entries)
        return [] if keyed is None else list(keyed.by_key.values())

    def change_errors(self, gone: Sequence[RowError], come: Sequence[RowError]) -> None:
        """Update the table of left-out rows. Called inside a transaction."""
        assert self.errors is not None or not (gone or come)
        if self.errors is not None:
            remove_rows(self.errors, gone)
            add_rows(self.errors, come)

    def _table(self, row_type: type[Any], name: str, key: str | None) -> Table[Any, Any]:
        with self._engine.shaping():
            number = next(self._engine.numbers)
            return Table(self._engine, number, row_type, name, key, True, identity=True)


def _is_part(entry: Entry) -> bool:
    """Return True if the entry is a part of the token."""
    return entry.owner[0] == TOKEN[0] and len(entry.owner) > 1


def remove_rows(table: Table[Any], rows: Sequence[Row]) -> None:
    """Remove rows; a single row by the faster statement."""
    if len(rows) == 1:
        table.remove(rows[0])
    elif rows:
        table.remove_all(rows)


def add_rows(table: Table[Any], rows: Sequence[Row]) -> None:
    """Add rows; a single row by the faster statement."""
    if len(rows) == 1:
        table.add(rows[0])
    elif rows:
        table.add_all(rows)


class Origins(Mapping[Hashable, tuple[Any, ...]]):
    """The rows of each origin of a source, as of the last commit.

    Created by `Ingestion.origins`.
    """

    __slots__ = ("_entries",)

    def __init__(self, ledger: Ledger) -> None:
        self._entries = ledger.entries

    def __getitem__(self, origin: Hashable) -> tuple[Any, ...]:
        found = [row for rows in self._parts(origin) for row in rows]
        if not found:
            raise KeyError(origin)
        return tuple(found)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(dict.fromkeys(entry.owner[1] for entry in self._entries if entry.rows))

    def _parts(self, origin: Hashable) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an origin by part and table; nothing for an unknown origin."""
        number = 0
        while (entry := self._entries.get(part_owner(origin, number))) is not None:
            yield from (entry.rows or {}).values()
            number += 1

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Origins({len(self)} origins)"


MakeEntry = Callable[..., "Entry"]


def adopt_ledger(journal: Journal, ledger: Ledger, entry: MakeEntry) -> None:
    """Make the ledger durable if its tables are, and fill it with the stored entries.

    Raises
    ------
    SourceError: only some of its tables are durable; or it fed other tables before.
    """
    tables = ledger.targets.tables
    kept = [journal.kept.get(table) for table in tables]
    if not any(kept):
        return
    if not all(kept):
        raise SourceError(
            f"source {ledger.name!r} feeds {ledger.targets}, of which some are durable and some "
            "are not: its token could not be that of both\n"
            "  make all of them durable, or none; or ingest into each by a source of its own"
        )
    codec = _ledger_codec(ledger, [each for each in kept if each is not None], entry)
    mine = KeptTable(codec.schema.table, codec, _storing_refusal(ledger.name))
    journal.settle()
    old = journal.store.tables().get(mine.name)
    if old is None:
        journal.store.create(codec.schema)
    else:
        try:
            _check_same(ledger, old)
            found = _read_stored(journal, ledger, old, codec, [each for each in kept if each])
            _ = {entry.owner for entry in found}
        except (Unstorable, *DAMAGED) as error:
            if isinstance(error, ReactiveError):
                raise
            told = damaged_row(journal.store.name, mine.name, "of a token or an origin")
            raise DurabilityError(told) from error
        statements_of(ledger.entries).add_all(found)
    journal.keep(ledger.entries, mine)


def _ledger_codec(ledger: Ledger, kept: Sequence[KeptTable], entry: MakeEntry) -> RowCodec:
    """Return the codec of a ledger's entries, with their rows in the form of the fed tables."""
    classes = _entry_classes(ledger.targets)
    names = class_names(classes)

    def write(noted: Any) -> Values:
        rows = None
        if noted.rows is not None:
            rows = {n: [*map(kept[n].codec.write, some)] for n, some in noted.rows.items()}
        parts = (noted.token, rows, noted.errors)
        return (_packed_owner(noted.owner, names), *(pack_value(part, names) for part in parts))

    def read(stored: Sequence[Values]) -> list[Any]:
        found = []
        for row in stored:
            owner, token, rows, errors = (unpack_value(value, classes) for value in row)
            if rows is not None:
                rows = {n: tuple(kept[n].codec.read(some)) for n, some in rows.items()}
            found.append(entry(owner, token, rows, errors))
        return found

    feeds = {each.name: text_of_schema(each.codec.schema) for each in kept}
    columns = tuple(Column(name, "Any", "plain") for name in ("owner", "token", "rows", "errors"))
    about = json.dumps({"feeds": feeds})
    return GivenCodec(Schema(f"source {ledger.name}", columns, "owner", about), write, read)


def _packed_owner(owner: Any, names: Mapping[type, str]) -> Any:
    return pack_value(owner, names)


def _entry_classes(targets: Targets) -> dict[str, type]:
    """Return the classes of values that entries may contain, by name."""
    found: dict[str, type] = {"RowError": RowError, "Raised": Raised}
    for table in targets.tables:
        try:
            known = declared_by(table.row_type)
        except Unstorable:  # the table has a codec
            continue
        found |= known.classes
        if known.shape == "record":
            found[known.kind.__name__] = known.kind
    return found


def _storing_refusal(source: str) -> Callable[[Any, Unstorable], Exception]:
    """Return the function that makes the error for an entry that cannot be stored."""

    def describe(noted: Any, misfit: Unstorable) -> Exception:
        return SourceError(
            f"what is noted of source {source!r} cannot be stored: {misfit}\n"
            "  give tokens, origins and keys of plain values, and tuples, lists and dictionaries "
            "of them"
        )

    return describe


def _feeds(schema: Schema) -> dict[str, str]:
    """Return the stored schema of each table that the source feeds, as text, by name."""
    found: dict[str, str] = json.loads(schema.about)["feeds"]
    return found


def _check_same(ledger: Ledger, old: Schema) -> None:
    """Raise `SourceError` if the stored source feeds other tables than the ledger's."""
    before = [*_feeds(old)]
    if before != [table.name for table in ledger.targets.tables]:
        raise SourceError(
            f"source {ledger.name!r} feeds {', '.join(before)}, and its token is that of their "
            f"rows, not of {ledger.targets}\n"
            "  give it another name: db.ingest(source, table, name=...)"
        )


def _read_stored(
    journal: Journal, ledger: Ledger, old: Schema, codec: RowCodec, kept: Sequence[KeptTable]
) -> list[Any]:
    """Return the stored entries; written to the store again if a table has other fields by now."""
    stored = [row for batch, _ in journal.store.rows(old.table) for row in batch]
    if old == codec.schema:
        return codec.read(stored)
    classes, again = _entry_classes(ledger.targets), []
    for row in stored:
        owner, token, rows, errors = (unpack_value(value, classes) for value in row)
        if rows is not None:
            rows = {n: _written_again(kept[n], old, some) for n, some in rows.items()}
        packed = (pack_value(part, class_names(classes)) for part in (owner, token, rows, errors))
        again.append(tuple(packed))
    journal.store.create(codec.schema, [(again, 1)])
    return codec.read(again)


def _written_again(kept: KeptTable, old: Schema, rows: Sequence[Values]) -> list[Values]:
    """Return stored rows of an origin in the form that their table has by now."""
    before = schema_of_text(kept.name, _feeds(old)[kept.name])
    if before == kept.codec.schema:
        return list(rows)
    return [kept.codec.write(row) for row in kept.again(before, rows)]
