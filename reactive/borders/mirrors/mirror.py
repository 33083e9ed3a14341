"""`mirror`: tables of mapped classes, which follow the commits of sessions.

    session.add(order)          no change yet
    session.commit()            reads the row, steps the views, COMMIT, publishes the views

`following.py` records touched rows, `kinds.py` reads them, `publishing.py` commits both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from optimizer.errors import PlanError
from reactive.api.relation import Relation
from reactive.api.table import Table
from reactive.engine.runtime.boundary import boundary, outermost
from reactive.engine.runtime.closeable import Closeable, Uncopyable
from reactive.engine.runtime.needs import installing

if TYPE_CHECKING:
    from collections.abc import Generator

    from sqlalchemy import Engine
    from sqlalchemy import Table as SqlTable
    from sqlalchemy.ext.asyncio import AsyncEngine, async_scoped_session, async_sessionmaker
    from sqlalchemy.orm import Session, scoped_session, sessionmaker

    from reactive.borders.mirrors.mirror_parts import MirrorParts

    Sync = sessionmaker[Any] | scoped_session[Any] | type[Session] | Session | Engine
    Async = async_sessionmaker[Any] | async_scoped_session[Any] | AsyncEngine

T = TypeVar("T")


@boundary
class Mirror(Closeable, Uncopyable):
    """Tables that follow a SQL database; created by `mirror`. `m[Order]` is the table of a class.

    Rows are records with the columns of the class, named like its attributes: one for each row that
    `select(Order)` would return. `with` closes the mirror.

    >>> from sqlalchemy import ForeignKey, Integer, String, create_engine
    >>> from sqlalchemy.orm import DeclarativeBase, mapped_column, relationship, sessionmaker
    >>> from sqlalchemy.pool import StaticPool
    >>> from reactive import Database, Sum, mirror
    >>> class Base(DeclarativeBase): ...
    >>> class Customer(Base):
    ...     __tablename__ = "customers"
    ...     id = mapped_column(Integer, primary_key=True)
    ...     name = mapped_column(String)
    >>> class Order(Base):
    ...     __tablename__ = "orders"
    ...     id = mapped_column(Integer, primary_key=True)
    ...     total = mapped_column(Integer)
    ...     customer_id = mapped_column(ForeignKey("customers.id"))
    ...     customer = relationship(Customer)
    >>> engine = create_engine("sqlite://", poolclass=StaticPool)
    >>> Base.metadata.create_all(engine)
    >>> Session = sessionmaker(engine)
    >>> db = Database()
    >>> m = mirror(db, Session, Order, Customer)
    >>> totals = (m.related(Order.customer).group_by(lambda order, customer: customer.name)
    ...     .aggregate(Sum(lambda order, customer: order.total)).materialize())
    >>> with Session.begin() as session:
    ...     session.add(Order(total=7, customer=Customer(name="Ann")))
    >>> totals["Ann"], m[Order][1]
    (7, Order(id=1, total=7, customer_id=1))
    >>> m
    Mirror(Order: 1 row, Customer: 1 row; of sqlite://)
    """

    def __init__(self, mirrored: MirrorParts) -> None:
        self._mirrored = mirrored

    _copy_instead = "make another one with mirror(db, Session, ...), under other names"
    _pickle_instead = "pickle the rows of its tables, list(m[Order])"

    def _called(self) -> str:
        return "a mirror"

    @overload
    def __getitem__(self, owner: type[T]) -> Table[T]: ...
    @overload
    def __getitem__(self, owner: SqlTable) -> Table[Any]: ...
    def __getitem__(self, owner: Any) -> Table[Any]:
        """Return the table of a mapped class; or of a mirrored `sqlalchemy.Table`.

        For type checkers, its rows are objects of the class, whose columns have the same names.

        Raises
        ------
        PlanError: the class is not mirrored.
        """
        found: Table[Any] = self._mirrored.table(owner)
        return found

    def __iter__(self) -> Iterator[Table[Any]]:
        """Iterate over the tables, in the order of the given classes."""
        return iter(self._mirrored.tables)

    def __len__(self) -> int:
        return len(self._mirrored.tables)

    @property
    def is_behind(self) -> bool:
        """True if the answer to a COMMIT was lost, and its outcome could not be read yet."""
        return self._mirrored.is_behind

    @property
    def closed(self) -> bool:
        """True if the mirror no longer follows the SQL database."""
        return self._mirrored.is_closed

    def related(self, relationship: Any, *, outer: bool = False) -> Relation[Any, Any]:
        """Return a relationship as a join: pairs of a row and a row that it refers to.

        Parameters
        ----------
        relationship: a relationship of a mirrored class to another one, such as `Order.customer`.
        outer: True to include rows without a target, with None.

        State and cost: those of a join by keys; many to many has an additional join.

        Raises
        ------
        PlanError: it is not a relationship, its other class is not mirrored, or its condition is
            more than equal columns.
        """
        made: Relation[Any, Any] = self._mirrored.related(relationship, outer=outer)
        return made

    def nested(self, relationship: Any) -> Relation[Any, Any]:
        """Return a relationship as a nest: a row, with the bag of the rows that it refers to.

        Parameters, errors: as for `related`. State and cost: those of `nest`.
        """
        made: Relation[Any, Any] = self._mirrored.nested(relationship)
        return made

    def reload(self) -> None:
        """Read all rows again, in one commit; only the difference is a change.

        For rows that other processes have written, which a mirror does not see.
        """
        self._mirrored.load()

    def close(self) -> None:
        """Stop following. The tables stay as they are; `db.drop` drops them."""
        self._mirrored.close()

    def __repr__(self) -> str:
        return repr(self._mirrored)


class AsyncMirror(Mirror):
    """A `Mirror` of an asynchronous engine: awaited to be loaded, or entered by `async with`.

    >>> import asyncio
    >>> from sqlalchemy import Column, Integer, String
    >>> from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
    >>> from sqlalchemy.orm import declarative_base
    >>> from reactive import Database, mirror
    >>> Base = declarative_base()
    >>> class Word(Base):
    ...     __tablename__ = "words"
    ...     id = Column(Integer, primary_key=True)
    ...     text = Column(String)
    >>> async def main() -> None:
    ...     engine = create_async_engine("sqlite+aiosqlite://")
    ...     async with engine.begin() as connection:
    ...         await connection.run_sync(Base.metadata.create_all)
    ...     Session = async_sessionmaker(engine)
    ...     m = await mirror(Database(), Session, Word)
    ...     async with Session.begin() as session:
    ...         session.add(Word(text="to"))
    ...     print(list(m[Word]))
    ...     await engine.dispose()
    >>> asyncio.run(main())
    [Word(id=1, text='to')]
    """

    def __await__(self) -> Generator[Any, Any, AsyncMirror]:
        return self._load().__await__()

    async def __aenter__(self) -> AsyncMirror:
        return await self._load()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def _load(self) -> AsyncMirror:
        await self._mirrored.load_async()
        return self

    def reload(self) -> Any:
        """Read all rows again, in one commit; awaited."""
        return self._mirrored.load_async()


@overload
def mirror(db: Any, sessions: Async, /, *classes: Any, replace: bool = False) -> AsyncMirror: ...
@overload
def mirror(db: Any, sessions: Sync, /, *classes: Any, replace: bool = False) -> Mirror: ...
@outermost
def mirror(db: Any, sessions: Any, /, *classes: Any, replace: bool = False) -> Mirror:
    """Create tables of classes that SQLAlchemy maps, which follow the commits of sessions.

    The existing rows are loaded in one commit. From then on, each commit of a session that has
    changed rows is a commit of the database: views show it when SQL has committed. An error in a
    view prevents SQL from committing; a refused COMMIT leaves views unchanged.

    Parameters
    ----------
    db: the `Database`.
    sessions: the factory of sessions, which determines the followed engine: a `sessionmaker`,
        `async_sessionmaker`, `scoped_session`, or an engine. All writes through that engine in this
        process are seen: by sessions, bulk operations, and connections.
    classes: mapped classes, or tables (`sqlalchemy.Table`). The table between two classes with a
        many-to-many relationship is mirrored with them.
    replace: True to drop existing tables of the same names, and the views over them, first.

    Returns a `Mirror`; for an asynchronous engine, one that must be awaited.

    State: a row for each row of the SQL tables. Cost: a commit takes one SELECT by keys for each
            class that it changed, or of the whole table where keys cannot be known: see
            docs/mirror.md.

    Raises
    ------
    PlanError: SQLAlchemy is not installed; sessions have no engine; a class is not mapped, or
        cannot be followed; a name is taken.
    TransactionError: called inside a transaction.

    >>> from reactive import Database, mirror
    >>> mirror(Database(), None, object)
    Traceback (most recent call last):
    optimizer.errors.PlanError: mirror takes mapped classes, not <class 'object'>
      write mirror(db, Session, Order, Customer) with classes that SQLAlchemy maps
    """
    if not classes or not hasattr(db, "_engine"):
        raise PlanError(
            "mirror takes a database, what makes sessions, and classes\n"
            "  write mirror(db, Session, Order, Customer)"
        )
    try:
        from reactive.borders.mirrors import mirror_parts
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        raise PlanError(
            "mirror follows sessions of SQLAlchemy, which is not installed\n"
            f"  {installing('sqlalchemy')}"
        ) from None
    made = mirror_parts.build_mirror(db, sessions, classes, replace=replace)
    if made.is_async:
        return AsyncMirror(made)
    try:
        made.load()
    except BaseException:
        made.discard()
        raise
    return Mirror(made)
