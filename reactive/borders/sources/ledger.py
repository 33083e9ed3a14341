"""What is noted of a source beside its rows: its token, what came of each origin, what was refused.

    name of the source --> a table of entries, by their owners
        TOKEN                 where to go on
        ("token", k)          the entry k of a token that is a dictionary, if told by its changes
        ("origin", o)         the rows of origin o that are in tables, and those that are not
        ("origin", o, n)      the same of what was appended to it: parts of ever fewer rows
        ("key", n, k)         the row of key k that table n does not have, although the source does
        ("row", n, r)         the same of a row without key, or whose key cannot be told

The table is changed in the transaction of the batch, so an entry is there if and only if the rows
of its commit are, whatever happens in between. What keeps commits elsewhere keeps the changes of
this table with those of the others, and so has the token in the record of the commit.

State:  an entry per origin, with its rows; one per row that was refused, or entry of the token.
Cost:   O(1) per commit, and per origin that it changes; of rows that are appended to an origin of
        n, O(log n) for each, as a part takes in those after it that are no larger.

What is noted of a source, in the store of a durable database: each batch once, across restarts.

    owner                     the rest of an entry
    ("token",)                the token, as plain values
    ("origin", "a.py")        the rows of it, as their tables write them, and what was left out

It is a table of the store like any other, so that an entry is written with the rows of its commit.

State:  none.
Cost:   of a commit that of one row more; of an origin that of its rows once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from reactive.api.literal import Raised, RowError
from reactive.api.table import Table
from reactive.api.view import View
from reactive.borders.durable.journal import Journal, KeptTable
from reactive.borders.durable.refusals import DAMAGED, damaged
from reactive.borders.durable.rows.declared import declared_by
from reactive.borders.durable.rows.row_codec import GivenCodec, RowCodec
from reactive.borders.durable.rows.values import Unstorable, known_in, pack, unpack
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
    """Whose a part of what is noted of an origin is."""
    return (ORIGIN, origin, number) if number else (ORIGIN, origin)


class Entry:
    """What is noted, and never changed. No record, whose fields the table would look at: a token
    need have no hash, and one entry equals no other.

    owner: whose it is.
    token: where to go on.
    rows: those of an origin, by the numbers of tables.
    errors: what is left out.
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
    """What is noted of the source of a name, in a database."""

    def __init__(self, engine: Engine, name: str, targets: Targets) -> None:
        self.name = name
        self.targets = targets
        self._engine = engine
        self.since: Token = None
        """Where the source goes on while it has no token."""
        self.entries: Table[Entry, Owner] = self._table(Entry, f"source {name}", "owner")
        self.errors: Table[RowError] | None = None
        """The rows that were left out; None while a row that is refused stops the source."""
        self.view: View[RowError] | None = None
        if engine.journal is not None:
            with engine.shaping(to_write=True):
                adopt(engine.journal, self, Entry)

    @property
    def token(self) -> Token:
        """That of the last commit that had one."""
        try:
            entry = self.entries.get(TOKEN)
            is_whole = entry is None or entry.rows is None
            every: Iterable[Entry] = () if is_whole else list(self.entries)
        except ClosedError:  # nobody changes it any more
            entry, every = self.held(TOKEN), self._all_held()
        if entry is None or entry.rows is None:
            return None if entry is None else entry.token
        parts = {each.owner[1]: each.token for each in every if _is_part(each)}
        return {key: part for key, part in {**entry.token, **parts}.items() if part is not None}

    def has_come_to(self, token: Token) -> bool:
        """Whether the last commit with a token had this one; tokens have no order."""
        return bool(self.token == token)

    @property
    def origins(self) -> Origins:
        """The rows of each origin that are in tables."""
        return Origins(self)

    def parts(self, origin: Hashable) -> list[Entry]:
        """What is noted of an origin in the transaction that is open, in order."""
        found: list[Entry] = []
        while (entry := self.held(part_owner(origin, len(found)))) is not None:
            found.append(entry)
        return found

    def keep_errors(self) -> None:
        """From now on rows may be left out."""
        if self.errors is None:
            name = f"errors of {self.name}"
            self.errors = self._table(RowError, name, None)
            noted = [error for entry in self.entries for error in entry.errors]
            self.errors._do.add_all(noted)
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
        """Note other things; None: nothing any more. Inside a transaction."""
        known = (self.held(owner) for owner in entries)
        remove(self.entries, [entry for entry in known if entry is not None])
        add(self.entries, [entry for entry in entries.values() if entry is not None])

    def held(self, owner: Owner) -> Entry | None:
        """What is noted of an owner in the transaction that is open."""
        keyed = self.entries._keyed
        return None if keyed is None else keyed.by_key.get(owner)

    def with_token(self, token: Token) -> dict[Owner, Entry | None]:
        """What to note if a token is another one. Inside a transaction."""
        old = self.held(TOKEN)
        gone = () if old is None or old.rows is None else filter(_is_part, self._all_held())
        return {**{part.owner: None for part in gone}, TOKEN: Entry(TOKEN, token)}

    def with_token_changes(self, changes: Mapping[Any, Token]) -> dict[Owner, Entry | None]:
        """What to note if entries of the token are others. Inside a transaction."""
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
        keyed = self.entries._keyed
        return [] if keyed is None else list(keyed.by_key.values())

    def change_errors(self, gone: Sequence[RowError], come: Sequence[RowError]) -> None:
        """Rows are left out no more, and others are. Inside a transaction."""
        assert self.errors is not None or not (gone or come)
        if self.errors is not None:
            remove(self.errors, gone)
            add(self.errors, come)

    def _table(self, row_type: type[Any], name: str, key: str | None) -> Table[Any, Any]:
        with self._engine.shaping():
            number = next(self._engine.numbers)
            return Table(self._engine, number, row_type, name, key, True, identity=True)


def _is_part(entry: Entry) -> bool:
    """Whether it is an entry of the token."""
    return entry.owner[0] == TOKEN[0] and len(entry.owner) > 1


def remove(table: Table[Any], rows: Sequence[Row]) -> None:
    """Remove rows; a single one by the quicker statement."""
    if len(rows) == 1:
        table.remove(rows[0])
    elif rows:
        table.remove_all(rows)


def add(table: Table[Any], rows: Sequence[Row]) -> None:
    """Add rows; a single one by the quicker statement."""
    if len(rows) == 1:
        table.add(rows[0])
    elif rows:
        table.add_all(rows)


class Origins(Mapping[Hashable, tuple[Any, ...]]):
    """The rows of each origin of a source, as of the last commit. Made by `Ingestion.origins`."""

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
        number = 0
        while (entry := self._entries.get(part_owner(origin, number))) is not None:
            yield from (entry.rows or {}).values()
            number += 1

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Origins({len(self)} origins)"


MakeEntry = Callable[..., "Entry"]


def adopt(journal: Journal, ledger: Ledger, entry: MakeEntry) -> None:
    """Have what is noted of a source be durable, if its tables are, and as it was stored.

    Raises
    ------
    SourceError: some of its tables are durable, and some are not; or it fed other tables before.
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
    codec = _codec(ledger, [each for each in kept if each is not None], entry)
    mine = KeptTable(codec.schema.table, codec, _refusal(ledger.name))
    journal.settle()
    old = journal.store.tables().get(mine.name)
    if old is None:
        journal.store.create(codec.schema)
    else:
        try:
            _check_same(ledger, old)
            found = _stored(journal, ledger, old, codec, [each for each in kept if each])
            _ = {entry.owner for entry in found}
        except (Unstorable, *DAMAGED) as error:
            if isinstance(error, ReactiveError):
                raise
            told = damaged(journal.store.name, mine.name, "of a token or an origin")
            raise DurabilityError(told) from error
        ledger.entries._do.add_all(found)
    journal.keep(ledger.entries, mine)


def _codec(ledger: Ledger, kept: Sequence[KeptTable], entry: MakeEntry) -> RowCodec:
    classes = _classes(ledger.targets)
    names = known_in(classes)

    def write(noted: Any) -> Values:
        rows = None
        if noted.rows is not None:
            rows = {n: [*map(kept[n].codec.write, some)] for n, some in noted.rows.items()}
        parts = (noted.token, rows, noted.errors)
        return (_packed_owner(noted.owner, names), *(pack(part, names) for part in parts))

    def read(stored: Sequence[Values]) -> list[Any]:
        found = []
        for row in stored:
            owner, token, rows, errors = (unpack(value, classes) for value in row)
            if rows is not None:
                rows = {n: tuple(kept[n].codec.read(some)) for n, some in rows.items()}
            found.append(entry(owner, token, rows, errors))
        return found

    feeds = {each.name: text_of_schema(each.codec.schema) for each in kept}
    columns = tuple(Column(name, "Any", "plain") for name in ("owner", "token", "rows", "errors"))
    about = json.dumps({"feeds": feeds})
    return GivenCodec(Schema(f"source {ledger.name}", columns, "owner", about), write, read)


def _packed_owner(owner: Any, names: Mapping[type, str]) -> Any:
    return pack(owner, names)


def _classes(targets: Targets) -> dict[str, type]:
    """The classes of what may be noted, by name."""
    found: dict[str, type] = {"RowError": RowError, "Raised": Raised}
    for table in targets.tables:
        try:
            known = declared_by(table.row_type)
        except Unstorable:  # it has a codec
            continue
        found |= known.classes
        if known.shape == "record":
            found[known.kind.__name__] = known.kind
    return found


def _refusal(source: str) -> Callable[[Any, Unstorable], Exception]:
    def describe(noted: Any, misfit: Unstorable) -> Exception:
        return SourceError(
            f"what is noted of source {source!r} cannot be stored: {misfit}\n"
            "  give tokens, origins and keys of plain values, and tuples, lists and dictionaries "
            "of them"
        )

    return describe


def _feeds(schema: Schema) -> dict[str, str]:
    found: dict[str, str] = json.loads(schema.about)["feeds"]
    return found


def _check_same(ledger: Ledger, old: Schema) -> None:
    before = [*_feeds(old)]
    if before != [table.name for table in ledger.targets.tables]:
        raise SourceError(
            f"source {ledger.name!r} feeds {', '.join(before)}, and its token is that of their "
            f"rows, not of {ledger.targets}\n"
            "  give it another name: db.ingest(source, table, name=...)"
        )


def _stored(
    journal: Journal, ledger: Ledger, old: Schema, codec: RowCodec, kept: Sequence[KeptTable]
) -> list[Any]:
    """The entries that are stored; written again if a table has other fields since."""
    stored = [row for batch, _ in journal.store.rows(old.table) for row in batch]
    if old == codec.schema:
        return codec.read(stored)
    classes, again = _classes(ledger.targets), []
    for row in stored:
        owner, token, rows, errors = (unpack(value, classes) for value in row)
        if rows is not None:
            rows = {n: _written_again(kept[n], old, some) for n, some in rows.items()}
        packed = (pack(part, known_in(classes)) for part in (owner, token, rows, errors))
        again.append(tuple(packed))
    journal.store.create(codec.schema, [(again, 1)])
    return codec.read(again)


def _written_again(kept: KeptTable, old: Schema, rows: Sequence[Values]) -> list[Values]:
    """Rows of an origin as their table writes them today."""
    before = schema_of_text(kept.name, _feeds(old)[kept.name])
    if before == kept.codec.schema:
        return list(rows)
    return [kept.codec.write(row) for row in kept.again(before, rows)]
