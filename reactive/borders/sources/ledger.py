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
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from reactive.api.row_errors import RowError
from reactive.api.table import Table
from reactive.api.view import View
from reactive.borders.sources import durable_ledger
from reactive.borders.sources.batch import Token
from reactive.borders.sources.targets import Targets
from reactive.engine.collections.zset import Row
from reactive.errors import ClosedError, SourceError

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
                durable_ledger.adopt(engine.journal, self, Entry)

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
