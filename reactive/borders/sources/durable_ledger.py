"""What is noted of a source, in the store of a durable database: each batch once, across restarts.

    owner                     the rest of an entry
    ("token",)                the token, as plain values
    ("origin", "a.py")        the rows of it, as their tables write them, and what was left out

It is a table of the store like any other, so that an entry is written with the rows of its commit.

State:  none.
Cost:   of a commit that of one row more; of an origin that of its rows once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reactive.api.row_errors import Raised, RowError
from reactive.borders.durable.journal import Journal, KeptTable
from reactive.borders.durable.refusals import DAMAGED, damaged
from reactive.borders.durable.rows.declared import declared_by
from reactive.borders.durable.rows.row_codec import GivenCodec, RowCodec
from reactive.borders.durable.rows.values import Unstorable, known_in, pack, unpack
from reactive.borders.durable.schema_text import schema_of_text, text_of_schema
from reactive.borders.durable.store import Column, Schema, Values
from reactive.borders.sources.targets import Targets
from reactive.errors import DurabilityError, ReactiveError, SourceError

if TYPE_CHECKING:
    from reactive.borders.sources.ledger import Entry, Ledger

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
