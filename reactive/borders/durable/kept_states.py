"""State of views in the store of a durable database: two tables for each view.

    kept NAME        the header, as JSON: of which query, version and tables; each part and its cost
    kept-0 NAME      the bytes of the states of operators (`rows/packed.py`), in pieces; or 1, for
                     the generation after it

The bytes are written in small transactions, between which others commit, and the header after
them. So a view is stored as a whole, or is what it was before; and never without the commit that it
is of. The tables are beside those of the user: no commit changes them. Bytes that are not those
that were written are found by their hash.

State:  what was read of a view, until it is made.
Cost:   one read of the table; of each state that is asked for, its hash and O(its rows).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from reactive.borders.durable.rows.packed import Packer, Unpacker, Unreadable
from reactive.borders.durable.store import KEPT, Change, Column, Schema, Store
from reactive.errors import DurabilityError

State: TypeAlias = Mapping[str, Any]
"""The state of an operator: lists are columns of values, other values are plain."""
FORMAT = 2
"""The number of the form of the table and of the states; another form has another number."""
PIECE = 1 << 17
"""The most bytes in a row of the table."""
COLUMNS = (Column("part", "int", "plain"), Column("data", "bytes", "plain"))


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds that an operator takes to be computed, and to be read; None if nobody knows."""

    computing: float | None = None
    reading: float | None = None

    @property
    def pays(self) -> bool:
        """True if its state is to be stored, and read."""
        return self.computing is None or self.reading is None or self.reading <= self.computing


@dataclass(frozen=True, slots=True)
class Header:
    """The facts about a stored view.

    query: the fingerprint of the query, the library and Python.
    version: of the last commit that the states are of.
    generation: 0 or 1, which of two tables has the bytes.
    tables: by name, the schema and the number of rows.
    costs: of each operator, by its name.
    parts: the operators that are stored: their names, with the number of bytes and the hash.
    """

    query: str
    version: int
    generation: int
    tables: Mapping[str, Sequence[Any]]
    costs: Mapping[str, Cost] = field(default_factory=dict)
    parts: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of all states together."""
        return sum(size for size, _ in self.parts.values())

    def text(self) -> bytes:
        """The header as it is stored."""
        costs = {name: [cost.computing, cost.reading] for name, cost in self.costs.items()}
        found = {**asdict(self), "costs": costs, "format": FORMAT}
        return json.dumps(found).encode()


class StoredStates:
    """The states of a view as they are in the store.

    Raises `Unreadable` of what `write` has not written.
    """

    def __init__(self, store: Store, view: str) -> None:
        self.header = _header_of(_pieces(store, table_of(view)).get(0))
        pieces = _pieces(store, table_of(view, self.header.generation))
        body = b"".join(pieces[part] for part in sorted(pieces))
        self._parts: dict[str, tuple[bytes, str]] = {}
        start = 0
        for name, (size, digest) in self.header.parts.items():
            self._parts[name] = body[start : start + size], digest
            start += size

    def state(self, name: str) -> State | None:
        """The state of an operator, if there is one.

        Raises
        ------
        Unreadable: it is damaged.
        Unstorable: it is of a class that the process does not have.
        """
        if name not in self._parts:
            return None
        data, digest = self._parts[name]
        if _digest(data) != digest:
            raise Unreadable("its bytes are not those that were written")
        return unpacked(data)


def table_of(view: str, generation: int | None = None) -> str:
    """The name of the table of a view: of its header, or of the bytes of a generation."""
    return f"kept {view}" if generation is None else f"kept-{generation} {view}"


def is_taken(store: Store, name: str) -> bool:
    """Return True if the store has a table of this name that is of no view."""
    found = store.tables().get(name)
    return found is not None and not found.about.startswith(KEPT)


def begin(store: Store, view: str, generation: int) -> None:
    """Make an empty table for the bytes of a generation.

    Raises
    ------
    DurabilityError: a table of the user has the name of that of a view.
    """
    for name in (table_of(view), table_of(view, 0), table_of(view, 1)):
        if is_taken(store, name):
            raise DurabilityError(
                f"{store.name} has a table {name!r} of another kind\n"
                "  give the table or the view another name"
            )
    store.create(_schema(table_of(view, generation), view))


def pieces_of(view: str, generation: int, packed: Mapping[str, bytes]) -> Iterator[Change]:
    """Yield the changes that write states, one small change after the other."""
    body, name = b"".join(packed.values()), table_of(view, generation)
    for part, start in enumerate(range(0, len(body), PIECE)):
        yield Change(name, (), [(part, body[start : start + PIECE])])


def finish(store: Store, view: str, header: Header) -> None:
    """Make a generation the state of a view, and drop the other one."""
    store.create(_schema(table_of(view), view), [([(0, header.text())], 1)])
    store.drop(table_of(view, 1 - header.generation))


def parts_of(packed: Mapping[str, bytes]) -> dict[str, Sequence[Any]]:
    """Return the entries of a header about states."""
    return {name: (len(data), _digest(data)) for name, data in packed.items()}


def pack(state: State) -> tuple[bytes, float]:
    """The bytes of a state, and the seconds that this took without those of other threads.

    Raises
    ------
    Unstorable: it has a value that could not be read again.
    """
    packer = Packer(rests=True)
    packer.plain([(name, isinstance(value, list)) for name, value in state.items()])
    for value in state.values():
        (packer.column if isinstance(value, list) else packer.plain)(value)
    return packer.bytes(), packer.seconds


def unpacked(data: bytes) -> State:
    """The state of its bytes.

    Raises
    ------
    Unreadable: they are none.
    """
    unpacker = Unpacker(data)
    names = unpacker.plain()
    return {name: unpacker.column() if is_column else unpacker.plain() for name, is_column in names}


def _schema(name: str, view: str) -> Schema:
    return Schema(name, COLUMNS, "part", KEPT + json.dumps(view) + "}")


def _pieces(store: Store, name: str) -> dict[int, bytes]:
    if name not in store.tables():
        raise Unreadable("a part of it is missing")
    return {part: data for rows, _ in store.rows(name) for part, data in rows}


def _header_of(text: Any) -> Header:
    try:
        found = json.loads(text)
        if found.pop("format") != FORMAT:
            raise Unreadable("it was written by another version")
        costs = {name: Cost(*seconds) for name, seconds in found.pop("costs").items()}
        header = Header(**found, costs=costs)
        if header.generation not in (0, 1):
            raise Unreadable("its header is damaged")
        for size, digest in header.parts.values():
            if type(size) is not int or type(digest) is not str:
                raise Unreadable("its header is damaged")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise Unreadable("its header is damaged") from error
    return header


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
