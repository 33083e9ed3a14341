"""The parts of a mirror: kinds, tables, a follower for each engine; and relationships as joins.

Relationships of mapped classes are joins of their tables:

    many to one, one to many      order.customer_id == customer.id
    many to many                  post.id == post_tags.post_id,  post_tags.tag_id == tag.id

Needs: a relationship by foreign keys only: its condition is a conjunction of equal columns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Column, Connection, Engine, inspect, util
from sqlalchemy import Table as SqlTable
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Mapper, RelationshipProperty, Session
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BinaryExpression, BooleanClauseList

from optimizer.errors import PlanError
from reactive.api import family
from reactive.api.internal_interface import engine_of
from reactive.api.table import Table
from reactive.borders.mirrors.following import Follower
from reactive.borders.mirrors.kinds import MirrorKind, column_field, mirror_kind_of
from reactive.borders.mirrors.publishing import MirrorPublisher
from reactive.borders.mirrors.touching.statements import WatchedTables
from reactive.borders.two_commits.rereading import rereading
from reactive.engine.transactions.patches import StatementGuard
from reactive.errors import ClosedError, TableError

IS_MIRROR = "is a mirror, and changes when the SQL database does"
REMEDY = "write through a session: session.add(...), and session.commit()"


class MirrorParts:
    """The parts of one mirror.

    Parameters
    ----------
    db: the database.
    parts: for each engine, the kinds and their tables.
    """

    def __init__(self, db: Any, parts: list[tuple[Engine, list[tuple[MirrorKind, Any]]]]) -> None:
        self._db = db
        self._parts = [MirrorPublisher(engine_of(db), engine, each) for engine, each in parts]
        for part in self._parts:
            watched = _watched_tables(part.tables)
            part.follower = Follower(part.source, watched, part.publish, part.read_again)
            if not part.source.dialect.is_async:
                by = rereading(engine_of(db)).by
                by |= {table: partial(part.rows, kind) for kind, table in part.tables}
        engine_of(db).mirrors += self._parts
        self._tables = {kind.owner: table for _, each in parts for kind, table in each}
        self.is_async = any(part.source.dialect.is_async for part in self._parts)
        self.is_loaded = not self.is_async

    @property
    def tables(self) -> list[Any]:
        return list(self._tables.values())

    @property
    def is_closed(self) -> bool:
        """True if it was closed, or another mirror replaced all its tables."""
        return all(part.follower.is_stopped for part in self._parts)

    @property
    def is_behind(self) -> bool:
        return any(part.behind is not None for part in self._parts)

    def table(self, owner: Any) -> Any:
        """Return the table that mirrors a class.

        Raises `PlanError` if the class is not mirrored, or the mirror has not been loaded.
        """
        if not self.is_loaded:
            raise PlanError(
                "the mirror has no rows yet: of an asynchronous engine it is awaited\n"
                "  write m = await mirror(db, Session, ...)"
            )
        found: Any = self._tables.get(owner)
        if found is None:
            names = ", ".join(map(_owner_name, self._tables))
            raise PlanError(
                f"{_owner_name(owner)} is not mirrored by {self!r}\n"
                f"  name it too: mirror(db, Session, {names}, {_owner_name(owner)})"
            )
        return found

    def related(self, relationship: Any, *, outer: bool) -> Any:
        return related_pairs(path_of(relationship), self.table, outer=outer)

    def nested(self, relationship: Any) -> Any:
        return nested_rows(path_of(relationship), self.table)

    def load(self) -> None:
        """Load all rows of all parts. Raises `ClosedError` if the mirror is closed."""
        if self.is_closed:
            raise ClosedError(
                "the mirror is closed\n  make another one with mirror(db, Session, ...)"
            )
        for part in self._parts:
            part.load()
        self.is_loaded = True

    async def load_async(self) -> None:
        """Load all rows of an asynchronous engine; discard the mirror if its first load fails."""
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
        """Close the mirror and drop its tables, because it could not be loaded."""
        self.close()
        engine = engine_of(self._db)
        for table in self.tables:
            there: Any = engine.tables.get(table.plan.number)
            if there is table:
                with engine.shaping(to_write=True):
                    family.drop(engine, there, views=True, why="a mirror could not be loaded")

    def __repr__(self) -> str:
        each = [
            f"{_owner_name(owner)}: {_row_count_text(table)}"
            for owner, table in self._tables.items()
        ]
        engines = ", ".join(str(part.source.url) for part in self._parts)
        state = "closed" if self.is_closed else f"of {engines}"
        return f"Mirror({', '.join(each)}; {state}{'; behind' if self.is_behind else ''})"


def build_mirror(db: Any, sessions: Any, classes: Iterable[Any], *, replace: bool) -> MirrorParts:
    """Create tables and followers, without loading rows."""
    kinds: list[MirrorKind] = []
    for each in {id(each): each for each in classes}.values():
        kinds.append(mirror_kind_of(each, [kind.name for kind in kinds]))
    owned = {table for kind in kinds for table in kind.places}
    mappers = [inspect(kind.owner) for kind in kinds if not isinstance(kind.owner, SqlTable)]
    between = [table for table in secondaries(mappers) if table not in owned]
    kinds += [mirror_kind_of(table, ()) for table in between]
    engines = engines_of(sessions, kinds)
    tables = _mirror_tables(db, kinds, replace=replace)
    for part in [part for part in engine_of(db).mirrors if part.has_no_tables()]:
        part.stop()
        for _, table in part.tables:
            rereading(engine_of(db)).by.pop(table, None)
    made = list(zip(engines, zip(kinds, tables, strict=True), strict=True))
    grouped = groupby(sorted(made, key=lambda pair: id(pair[0])), key=lambda pair: pair[0])
    return MirrorParts(db, [(engine, [each for _, each in pairs]) for engine, pairs in grouped])


def _mirror_tables(db: Any, kinds: list[MirrorKind], *, replace: bool) -> list[Table[Any]]:
    """Create a table for each kind; none if one fails."""
    made: list[Table[Any]] = []
    try:
        for kind in kinds:
            made.append(_mirror_table(db, kind, replace=replace))
    except BaseException:
        for table in made:
            db.drop(table)
        raise
    return made


def _mirror_table(db: Any, kind: MirrorKind, *, replace: bool) -> Table[Any]:
    """Create the table of a kind, which refuses changes by other statements."""
    key: Any = kind.key[0] if len(kind.key) == 1 else _fields_getter(kind.key)
    table: Table[Any] = db.table(
        kind.record.row, name=kind.name, key=key, replace=replace, durable=False
    )
    StatementGuard(table, IS_MIRROR, REMEDY)
    return table


def _watched_tables(mirrored: list[tuple[MirrorKind, Any]]) -> WatchedTables:
    """Return the watch over the mirrored tables and all others of their metadata."""
    kinds = [kind for kind, _ in mirrored]
    own = {table for kind in kinds for table in kind.places}
    known = {table: None for each in own for table in each.metadata.tables.values()}
    return WatchedTables(kinds, dict.fromkeys([*known, *own]))


def _owner_name(owner: Any) -> str:
    return str(getattr(owner, "__name__", None) or getattr(owner, "name", owner))


def _row_count_text(table: Any) -> str:
    """Return what `repr` says of a table: `2 rows`, `dropped` or `closed`."""
    try:
        size = len(table)
    except TableError:
        return "dropped"
    except ClosedError:
        return "closed"
    return f"{size} row" + "s" * (size != 1)


Pairs = Sequence[tuple[Any, Any]]
"""Pairs of equal columns."""
Names = tuple[tuple[str, ...], tuple[str, ...]]
"""Fields of the left side, and the fields of the right side that are equal to them."""


@dataclass(frozen=True, slots=True)
class Path:
    """The path of a relationship from one class to another.

    Parameters
    ----------
    name: the name of the relationship.
    source, target: the classes.
    near: the fields that join the source with the target, or with `through`.
    through, far: for many to many, the table in between, and the fields that join it with the
    target.
    """

    name: str
    source: type
    target: type
    near: Names
    through: SqlTable | None = None
    far: Names | None = None


def path_of(attribute: Any) -> Path:
    """Return the path of a relationship, such as `Order.customer`.

    Raises
    ------
    PlanError: it is not a relationship, or its condition is more than foreign keys.
    """
    prop = getattr(attribute, "property", None)
    if not isinstance(prop, RelationshipProperty):
        raise PlanError(
            f"related takes a relationship, not {attribute!r:.100}\n"
            "  write m.related(Order.customer), with Order.customer = relationship(...)"
        )
    source, target, through = attribute.parent, prop.mapper, prop.secondary
    pairs = prop.synchronize_pairs if through is not None else prop.local_remote_pairs
    joined = (
        [prop.primaryjoin] if prop.secondaryjoin is None else [prop.primaryjoin, prop.secondaryjoin]
    )
    if not pairs or not all(map(_is_of_equations, joined)):
        raise PlanError(_CONDITION.format(attribute))
    if not isinstance(through, SqlTable):
        near = _pair_names(source, target, pairs or ())
        return Path(prop.key, source.class_, target.class_, near)
    near = _pair_names(source, None, pairs)
    far = _pair_names(None, target, [(b, a) for a, b in prop.secondary_synchronize_pairs or ()])
    return Path(prop.key, source.class_, target.class_, near, through, far)


def secondaries(mappers: Iterable[Mapper[Any]]) -> list[SqlTable]:
    """Return the tables between classes with a many-to-many relationship."""
    every = list(mappers)
    found = [
        prop.secondary
        for mapper in every
        for prop in mapper.relationships
        if isinstance(prop.secondary, SqlTable) and any(prop.mapper is each for each in every)
    ]
    return list(dict.fromkeys(found))


def related_pairs(path: Path, table_of: Callable[[Any], Any], *, outer: bool) -> Any:
    """Return the relation of pairs of a source row and a target row.

    Parameters
    ----------
    table_of: returns the table of a class, or of a SQL table.
    outer: True to include source rows without a target, with None.
    """
    source, target = table_of(path.source), table_of(path.target)
    join = "left_join" if outer else "join"
    if path.through is None or path.far is None:
        return getattr(source, join)(target, **_join_keys(path.near))
    between = table_of(path.through)
    if not outer:
        first = source.join(between, **_join_keys(path.near))
        whole = first.join(target, **_join_keys(path.far, left=1))
        return whole.bind(lambda row, _, other: row, lambda row, _, other: other)
    pairs = between.join(target, **_join_keys(path.far)).select(lambda link, other: (link, other))
    left, right = path.near
    whole = source.left_join(
        pairs, left_key=_fields_getter(left), right_key=lambda pair: _fields_getter(right)(pair[0])
    )
    return whole.bind(lambda row, _: row, lambda row, pair: None if pair is None else pair[1])


def nested_rows(path: Path, table_of: Callable[[Any], Any]) -> Any:
    """Return the relation of source rows, each with the bag of its target rows."""
    source, target = table_of(path.source), table_of(path.target)
    own, other = map(_fields_getter, path.near)
    if path.through is None or path.far is None:
        return source.nest(**{path.name: lambda row: target.where(lambda o: other(o) == own(row))})
    pairs = table_of(path.through).join(target, **_join_keys(path.far))
    inside = pairs.select(lambda link, row: (link, row))
    return source.nest(
        **{
            path.name: lambda row: inside.where(lambda pair: other(pair[0]) == own(row)).select(
                lambda pair: pair[1]
            )
        }
    )


def _join_keys(names: Names, left: int = 0) -> dict[str, Any]:
    """Return the keys of a join; the left keys belong to the binding at a position."""
    near, far = map(_fields_getter, names)
    if left == 0:
        return {"left_key": near, "right_key": far}
    return {"left_key": lambda _, row: near(row), "right_key": far}


def _fields_getter(names: tuple[str, ...]) -> Callable[[Any], Any]:
    return attrgetter(*names)


def _pair_names(source: Mapper[Any] | None, target: Mapper[Any] | None, pairs: Pairs) -> Names:
    """Return the fields of both sides of equal columns; a side without mapper is a SQL table."""
    left = tuple([_field_name(source, column) for column, _ in pairs])
    return left, tuple([_field_name(target, column) for _, column in pairs])


def _field_name(mapper: Mapper[Any] | None, column: Column[Any]) -> str:
    """Return the field name of a column in the class of `mapper`; in the table if that is None."""
    return column_field(column) if mapper is None else mapper.get_property_by_column(column).key


def _is_of_equations(condition: Any) -> bool:
    """Return True if a join condition only equates columns."""
    is_all = isinstance(condition, BooleanClauseList) and condition.operator is operators.and_
    parts = condition.clauses if is_all else [condition]
    return all(
        isinstance(part, BinaryExpression)
        and part.operator is operators.eq
        and isinstance(part.left, Column)
        and isinstance(part.right, Column)
        for part in parts
    )


_CONDITION = (
    "{} cannot be a join: its condition is more than columns that are equal\n"
    "  join the tables: m[A].join(m[B], on=lambda a, b: ...)"
)


# The engines that the sessions of a factory write to.


def engines_of(given: Any, kinds: list[MirrorKind]) -> list[Engine]:
    """Return the engine of each kind.

    Parameters
    ----------
    given: a `sessionmaker`, `async_sessionmaker`, `scoped_session`, or an engine.

    Raises
    ------
    PlanError: it is none of these, or has no engine for a class.
    """
    given = _synchronous(given)
    if isinstance(given, Session):
        raise PlanError(
            f"cannot mirror one session: {given!r:.100} is a session, and others write too\n"
            "  give what makes sessions: sessionmaker(engine), or the engine itself"
        )
    if isinstance(given, Engine):
        return [_root(given)] * len(kinds)
    session = _session(given)
    try:
        return [_root(_engine_for(session, kind).engine) for kind in kinds]
    except UnboundExecutionError as error:
        raise PlanError(
            f"mirror: sessions of {given!r:.100} have no engine\n"
            "  give sessionmaker(engine), or the engine itself"
        ) from error


def _session(given: Any) -> Session:
    """Create a session, without beginning it.

    Raises `PlanError` if what is given does not create sessions.
    """
    if callable(given):
        given = _synchronous(getattr(given, "session_factory", given)())
    if not isinstance(given, Session):
        raise PlanError(
            f"mirror takes what makes sessions, not {given!r:.100}\n"
            "  write mirror(db, Session, Order), with Session = sessionmaker(engine)"
        )
    return given


def _synchronous(given: Any) -> Any:
    """Return the engine or session inside an asynchronous one.

    Other objects are returned unchanged.

    The asynchronous module needs greenlet, an optional dependency of SQLAlchemy. If it is not
    imported, no object can be asynchronous.
    """
    asynchronous = sys.modules.get("sqlalchemy.ext.asyncio")
    if asynchronous is None:
        return given
    if isinstance(given, asynchronous.AsyncEngine):
        return given.sync_engine
    if isinstance(given, asynchronous.AsyncSession):
        return given.sync_session
    return given


def _engine_for(session: Session, kind: MirrorKind) -> Engine | Connection:
    if isinstance(kind.owner, type):
        return session.get_bind(kind.owner)
    return session.get_bind(clause=kind.owner)


def _root(engine: Engine) -> Engine:
    """Return the original of an engine with other options, else the engine itself.

    Both use the same connections.
    """
    while (proxied := getattr(engine, "_proxied", None)) is not None:
        engine = proxied
    return engine
