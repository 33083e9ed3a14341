"""What a mirror is made of: kinds, their tables, and a follower for each engine."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import groupby
from typing import Any

from sqlalchemy import Engine, inspect, util
from sqlalchemy import Table as SqlTable

from optimizer.errors import PlanError
from reactive.api import dropping
from reactive.api.table import Table
from reactive.borders.mirrors import related as relations
from reactive.borders.mirrors.following import Follower
from reactive.borders.mirrors.kinds import Kind, kind_of
from reactive.borders.mirrors.publishing import Publishing
from reactive.borders.mirrors.sessions import engines_of
from reactive.borders.mirrors.touching.statements import Watched
from reactive.borders.two_commits.rereading import rereading
from reactive.engine.transactions.guarded import Guarded
from reactive.errors import ClosedError, TableError

IS_MIRROR = "is a mirror, and changes when the SQL database does"
REMEDY = "write through a session: session.add(...), and session.commit()"


class Mirrored:
    """Of one mirror.

    Parameters
    ----------
    db: the database.
    parts: of each engine the kinds and their tables.
    """

    def __init__(self, db: Any, parts: list[tuple[Engine, list[tuple[Kind, Any]]]]) -> None:
        self._db = db
        self._parts = [Publishing(db._engine, engine, each) for engine, each in parts]
        for part in self._parts:
            watched = _watched(part.tables)
            part.follower = Follower(part.source, watched, part.publish, part.read_again)
            if not part.source.dialect.is_async:
                by = rereading(db._engine).by
                by |= {table: partial(part.rows, kind) for kind, table in part.tables}
        db._engine.mirrors += self._parts
        self._tables = {kind.owner: table for _, each in parts for kind, table in each}
        self.is_async = any(part.source.dialect.is_async for part in self._parts)
        self.is_loaded = not self.is_async

    @property
    def tables(self) -> list[Any]:
        return list(self._tables.values())

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or all its tables were replaced by those of another one."""
        return all(part.follower.is_stopped for part in self._parts)

    @property
    def is_behind(self) -> bool:
        return any(part.behind is not None for part in self._parts)

    def table(self, owner: Any) -> Any:
        if not self.is_loaded:
            raise PlanError(
                "the mirror has no rows yet: of an asynchronous engine it is awaited\n"
                "  write m = await mirror(db, Session, ...)"
            )
        found: Any = self._tables.get(owner)
        if found is None:
            names = ", ".join(map(_name, self._tables))
            raise PlanError(
                f"{_name(owner)} is not mirrored by {self!r}\n"
                f"  name it too: mirror(db, Session, {names}, {_name(owner)})"
            )
        return found

    def related(self, relationship: Any, *, outer: bool) -> Any:
        return relations.joined(relations.path_of(relationship), self.table, outer=outer)

    def nested(self, relationship: Any) -> Any:
        return relations.nested(relations.path_of(relationship), self.table)

    def load(self) -> None:
        if self.is_closed:
            raise ClosedError(
                "the mirror is closed\n  make another one with mirror(db, Session, ...)"
            )
        for part in self._parts:
            part.load()
        self.is_loaded = True

    async def load_async(self) -> None:
        try:
            await util.greenlet_spawn(self.load)
        except BaseException:
            if not any(map(len, self.tables)):
                self.discard()
            raise

    def close(self) -> None:
        for part in self._parts:
            part.stop()

    def discard(self) -> None:
        """It could not be loaded: as if it had never been."""
        self.close()
        engine = self._db._engine
        for table in self.tables:
            there: Any = engine.tables.get(table.plan.number)
            if there is table:
                with engine.shaping(to_write=True):
                    dropping.drop(engine, there, views=True, why="a mirror could not be loaded")

    def __repr__(self) -> str:
        each = [f"{_name(owner)}: {_rows(table)}" for owner, table in self._tables.items()]
        engines = ", ".join(str(part.source.url) for part in self._parts)
        state = "closed" if self.is_closed else f"of {engines}"
        return f"Mirror({', '.join(each)}; {state}{'; behind' if self.is_behind else ''})"


def mirrored(db: Any, sessions: Any, classes: Iterable[Any], *, replace: bool) -> Mirrored:
    """Make tables and followers; nothing is loaded yet."""
    kinds: list[Kind] = []
    for each in {id(each): each for each in classes}.values():
        kinds.append(kind_of(each, [kind.name for kind in kinds]))
    owned = {table for kind in kinds for table in kind.places}
    mappers = [inspect(kind.owner) for kind in kinds if not isinstance(kind.owner, SqlTable)]
    between = [table for table in relations.secondaries(mappers) if table not in owned]
    kinds += [kind_of(table, ()) for table in between]
    engines = engines_of(sessions, kinds)
    tables = _tables(db, kinds, replace=replace)
    for part in [part for part in db._engine.mirrors if part.has_no_tables()]:
        part.stop()
        for _, table in part.tables:
            rereading(db._engine).by.pop(table, None)
    made = list(zip(engines, zip(kinds, tables, strict=True), strict=True))
    grouped = groupby(sorted(made, key=lambda pair: id(pair[0])), key=lambda pair: pair[0])
    return Mirrored(db, [(engine, [each for _, each in pairs]) for engine, pairs in grouped])


def _tables(db: Any, kinds: list[Kind], *, replace: bool) -> list[Table[Any]]:
    """A table for each; none if one cannot be made."""
    made: list[Table[Any]] = []
    try:
        for kind in kinds:
            made.append(_table(db, kind, replace=replace))
    except BaseException:
        for table in made:
            db.drop(table)
        raise
    return made


def _table(db: Any, kind: Kind, *, replace: bool) -> Table[Any]:
    key: Any = kind.key[0] if len(kind.key) == 1 else relations._getter(kind.key)
    table: Table[Any] = db.table(
        kind.record.row, name=kind.name, key=key, replace=replace, durable=False
    )
    Guarded(table, IS_MIRROR, REMEDY)
    return table


def _watched(mirrored: list[tuple[Kind, Any]]) -> Watched:
    kinds = [kind for kind, _ in mirrored]
    own = {table for kind in kinds for table in kind.places}
    known = {table: None for each in own for table in each.metadata.tables.values()}
    return Watched(kinds, dict.fromkeys([*known, *own]))


def _name(owner: Any) -> str:
    return str(getattr(owner, "__name__", None) or getattr(owner, "name", owner))


def _rows(table: Any) -> str:
    try:
        size = len(table)
    except TableError:
        return "dropped"
    except ClosedError:
        return "closed"
    return f"{size} row" + "s" * (size != 1)
