"""The promises of a mirror, and its refusals."""

from __future__ import annotations

import copy
import decimal
import enum
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    Engine,
    Enum,
    Float,
    ForeignKey,
    Integer,
    Numeric,
    String,
    Table,
    and_,
    create_engine,
    delete,
    event,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.ext.associationproxy import association_proxy
from sqlalchemy.ext.hybrid import hybrid_method
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    column_property,
    composite,
    declarative_base,
    mapped_column,
    query_expression,
    relationship,
    scoped_session,
    sessionmaker,
)
from sqlalchemy.pool import StaticPool

from reactive import (
    ClosedError,
    Count,
    Database,
    Mirror,
    PlanError,
    TableError,
    TransactionError,
    mirror,
)
from reactive.borders.mirrors.kinds import FrozenDict
from reactive.borders.mirrors.touching.statements import OPTION, tables_written
from reactive.borders.two_commits.rereading import rereading
from tests.borders.mirrors.shop import (
    CLASSES,
    Base,
    Clerk,
    Customer,
    Line,
    Manager,
    Order,
    Person,
    Tag,
    keep_keys,
    order_tags,
    shop,
)


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = shop()
    with Session(made) as session:
        ann = Customer(name="ann", email="a@x", size={"wide": [1, 2]})
        order = Order(id=1, customer=ann, total=20, lines=[Line(number=1, pieces=3)])
        order.tags.append(Tag(word="red"))
        session.add_all([order, Order(id=2, customer=ann), Customer(name="bob")])
        session.add_all([Manager(name="m", level=3), Clerk(name="c", desk="d")])
        session.commit()
    yield made
    made.dispose()


@pytest.fixture
def db() -> Database:
    return Database()


@pytest.fixture
def m(db: Database, engine: Engine) -> Iterator[Mirror]:
    with mirror(db, sessionmaker(engine), *CLASSES) as made:
        yield made


def test_all_is_loaded_in_one_commit(db: Database, m: Mirror) -> None:
    assert db.version == 1
    assert len(m) == 8
    assert [table.name for table in m] == [
        *("customers", "orders", "lines", "tags", "persons", "managers", "Clerk", "order_tags")
    ]
    assert set(db.tables()) == set(m)


def test_rows_are_frozen_records_with_the_columns(m: Mirror) -> None:
    row: Any = m[Order][1]
    assert repr(row) == ("Order(twice=40, id=1, customer_id=1, total=20, changes=0, note=None)")
    assert row.is_large is True
    with pytest.raises(AttributeError):
        row.total = 3
    customer: Any = m[Customer][1]
    assert customer.label == "ann"
    assert customer.size == {"wide": (1, 2)}
    assert isinstance(customer.size, FrozenDict)
    assert hash(customer)
    assert m[Line][1, 1].pieces == 3
    hints = m[Order].row_type.__annotations__
    assert (hints["id"], hints["total"], hints["note"]) == (int, int, str | None)


def test_classes_that_inherit_have_tables_with_their_columns(m: Mirror) -> None:
    assert [(p.id, p.name) for p in m[Person]] == [(1, "m"), (2, "c")]
    manager: Any = m[Manager][1]
    assert (manager.name, manager.level, manager.kind) == ("m", 3, "manager")
    clerk: Any = m[Clerk][2]
    assert clerk.desk == "d"


def test_changes_show_with_the_commit_and_as_one(m: Mirror, db: Database, engine: Engine) -> None:
    told: list[Any] = []
    subscription = m[Order].select(lambda o: o.total).subscribe(told.append)
    told.clear()
    version = db.version
    with Session(engine) as session:
        session.get_one(Order, 1).total = 7
        session.add(Customer(name="eve"))
        session.flush()
        assert m[Order][1].total == 20
        session.commit()
        assert m[Order][1].total == 7
    assert db.version == version + 1
    assert [delta.updated for delta in told] == [((20, 7),)]
    subscription.close()


def test_a_savepoint_that_is_rolled_back_changes_nothing(m: Mirror, engine: Engine) -> None:
    with Session(engine) as session:
        with session.begin_nested() as nested:
            session.get_one(Order, 1).total = 7
            session.flush()
            nested.rollback()
        session.commit()
    assert m[Order][1].total == 20


def test_an_error_of_a_view_keeps_sql_from_committing(m: Mirror, engine: Engine) -> None:
    view = m[Order].select(lambda o: 100 // (o.total - 7)).materialize("risky")
    before = list(view)
    with Session(engine) as session:
        session.get_one(Order, 1).total = 7
        session.get_one(Customer, 1).name = "new"
        with pytest.raises(ZeroDivisionError) as caught:
            session.commit()
        assert "risky" in "".join(caught.value.__notes__)
        session.rollback()
        assert session.get_one(Order, 1).total == 20
        session.get_one(Order, 1).total = 8
        session.commit()
    assert before != sorted(view) == sorted([100 // 1, 100 // -2])
    assert m[Customer][1].name == "ann"


def test_relationships_are_joins(m: Mirror, engine: Engine) -> None:
    pairs = m.related(Order.customer).select(lambda o, c: (o.id, c.name)).materialize()
    assert sorted(pairs) == [(1, "ann"), (2, "ann")]
    back = m.related(Customer.orders, outer=True).select(lambda c, o: (c.name, o and o.id))
    assert sorted(back.materialize(), key=str) == [("ann", 1), ("ann", 2), ("bob", None)]
    tags = m.related(Order.tags).select(lambda o, t: (o.id, t.word)).materialize()
    assert list(tags) == [(1, "red")]
    outer = m.related(Order.tags, outer=True).select(lambda o, t: (o.id, t and t.word))
    assert sorted(outer.materialize(), key=str) == [(1, "red"), (2, None)]
    with Session(engine) as session:
        order, tag = session.get_one(Order, 2), session.get_one(Tag, 1)
        order.tags.append(tag)
        session.commit()
    assert sorted(tags) == [(1, "red"), (2, "red")]


def test_relationships_are_nests(m: Mirror, engine: Engine) -> None:
    lists: Any = m.nested(Customer.orders).materialize()
    assert sorted((c.name, sorted(o.id for o in orders)) for c, orders in lists) == [
        ("ann", [1, 2]),
        ("bob", []),
    ]
    words: Any = m.nested(Order.tags).materialize()
    assert sorted((o.id, [t.word for t in tags]) for o, tags in words) == [(1, ["red"]), (2, [])]
    with Session(engine) as session:
        order = session.get_one(Order, 2)
        order.tags.append(Tag(word="new"))
        session.commit()
    assert sorted((o.id, [t.word for t in tags]) for o, tags in words) == [
        (1, ["red"]),
        (2, ["new"]),
    ]


def test_a_relationship_in_a_callable_is_refused_and_names_the_join(m: Mirror) -> None:
    for function in (lambda o: o.customer.name, lambda o: [o.customer for _ in "a"]):
        with pytest.raises(PlanError, match=r"m\.related\(Order\.customer\)"):
            m[Order].select(function).materialize()
    row: Any = m[Order][1]
    with pytest.raises(PlanError, match=r"m\.related\(Order\.customer\)"):
        print(row.customer)
    assert not hasattr(row, "customer")


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add(t[1]),
        lambda t: t.add_all([t[1]]),
        lambda t: t.remove(t[1]),
        lambda t: t.remove_all([t[1]]),
        lambda t: t.discard(t[1]),
        lambda t: t.update(t[1], t[1]),
        lambda t: t.upsert(t[1]),
        lambda t: t.upsert_all([t[1]]),
        lambda t: t.delete(1),
        lambda t: t.clear(),
        lambda t: t.replace_all([]),
        lambda t: t.replace_where(lambda o: True, []),
        lambda t: t.patch(1, "total"),
    ],
)
def test_a_mirror_is_not_written_by_hand(m: Mirror, write: Any) -> None:
    with pytest.raises(TableError, match=r"is a mirror[\s\S]*session\.commit"):
        write(m[Order])
    assert len(m[Order]) == 2
    assert m[Order][1] in list(m[Order])


def test_rollback_and_close_change_nothing(m: Mirror, db: Database, engine: Engine) -> None:
    version = db.version
    for end in (Session.rollback, Session.close):
        with Session(engine) as session:
            session.add(Order(customer_id=1))
            session.flush()
            end(session)
    assert db.version == version


def test_what_others_wrote_comes_by_a_reload(m: Mirror, engine: Engine) -> None:
    raw: Any = engine.raw_connection()
    raw.execute("update orders set total = 99 where id = 1")
    raw.driver_connection.commit()
    raw.close()
    assert m[Order][1].total == 20
    m.reload()
    assert m[Order][1].total == 99


def test_a_statement_may_say_what_it_touches(m: Mirror, engine: Engine) -> None:
    raw: Any = engine.raw_connection().driver_connection
    raw.create_function("touch", 0, lambda: 1)
    with Session(engine) as session:
        driver: Any = session.connection().connection.driver_connection
        driver.execute("update orders set total = 98")
        session.execute(text("select touch()"), execution_options={OPTION: [Order]})
        session.commit()
    assert m[Order][1].total == 98


def test_a_session_within_an_outer_transaction_has_committed_when_that_has(
    m: Mirror, engine: Engine
) -> None:
    with engine.connect() as connection:
        outer = connection.begin()
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            session.get_one(Order, 1).total = 55
            session.commit()
        assert m[Order][1].total == 20
        outer.commit()
    assert m[Order][1].total == 55


def test_a_commit_inside_a_transaction_of_the_database_is_refused(
    m: Mirror, db: Database, engine: Engine
) -> None:
    with Session(engine) as session:
        session.get_one(Order, 1).total = 55
        with db.transaction(), pytest.raises(TransactionError, match="commit_with"):
            session.commit()
        session.rollback()
        assert session.get_one(Order, 1).total == 20
    assert m[Order][1].total == 20


def test_autocommit_and_two_phases_are_refused_with_a_reason(m: Mirror, engine: Engine) -> None:
    automatic = engine.execution_options(isolation_level="AUTOCOMMIT")
    with automatic.connect() as connection, pytest.raises(TransactionError, match="AUTOCOMMIT"):
        connection.execute(update(Order).values(total=1))
    with automatic.connect() as connection, pytest.raises(TransactionError, match="AUTOCOMMIT"):
        connection.execute(text("update orders set total = 1"))
    assert m[Order][1].total == 20


def test_a_transaction_that_began_before_the_mirror_is_read_whole(
    db: Database, tmp_path: Path
) -> None:
    engine = shop(tmp_path / "shop.db")
    with Session(engine) as session:
        session.add(Order(id=1, total=20, customer=Customer(name="ann"), tags=[Tag(word="red")]))
        session.commit()
    with Session(engine) as session:
        session.get_one(Order, 1).total = 31
        session.flush()
        session.connection().execute(insert(Tag).values(word="early"))
        with mirror(db, sessionmaker(engine), Order, Tag) as m:
            session.commit()
            assert m[Order][1].total == 31
            assert len(m[Tag]) == 2


def test_two_mirrors_of_an_engine_are_independent(m: Mirror, engine: Engine) -> None:
    other = Database()
    second = mirror(other, engine, Order)
    with Session(engine) as session:
        session.get_one(Order, 1).total = 41
        session.commit()
    assert m[Order][1].total == second[Order][1].total == 41
    m.close()
    with Session(engine) as session:
        session.get_one(Order, 1).total = 42
        session.commit()
    assert (m[Order][1].total, second[Order][1].total) == (41, 42)
    second.close()


def test_a_closed_mirror_leaves_the_engine_as_it_was(db: Database) -> None:
    engine = shop()
    kept = engine.dialect.do_commit, engine.dialect.do_rollback
    with mirror(db, engine, Order) as m:
        assert engine.dialect.do_commit != kept[0]
    assert (engine.dialect.do_commit, engine.dialect.do_rollback) == kept
    assert m.closed
    assert "closed" in repr(m)
    with pytest.raises(ClosedError, match="mirror is closed"):
        m.reload()
    m.close()


def test_a_closed_database_lets_sessions_go_on(m: Mirror, db: Database, engine: Engine) -> None:
    db.close()
    with Session(engine) as session:
        session.get_one(Order, 1).total = 1
        session.commit()


def test_a_table_that_was_dropped_is_not_followed(m: Mirror, db: Database, engine: Engine) -> None:
    db.drop(m[Line])
    with Session(engine) as session:
        session.add(Line(order_id=1, number=2, pieces=1))
        session.get_one(Order, 1).total = 3
        session.commit()
    assert m[Order][1].total == 3
    assert "Line: dropped" in repr(m)


def test_a_mirror_may_replace_another_one(db: Database, engine: Engine) -> None:
    first = mirror(db, engine, Order)
    with pytest.raises(PlanError, match="already"):
        mirror(db, engine, Order)
    second = mirror(db, engine, Order, replace=True)
    with Session(engine) as session:
        session.get_one(Order, 1).total = 3
        session.commit()
    assert second[Order][1].total == 3
    first.close()
    second.close()


def test_a_mirror_whose_tables_were_all_replaced_follows_no_more(
    db: Database, engine: Engine
) -> None:
    commit, asked = engine.dialect.do_commit, list[str]()
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    mirrors = [mirror(db, engine, Order, replace=True) for _ in range(3)]
    assert [m.closed for m in mirrors] == [True, True, False]
    assert len(rereading(db._engine).by) == 1
    asked.clear()
    with engine.begin() as connection:
        connection.execute(update(Order).where(Order.total == 20).values(total=21))
    assert sum(text.startswith("SELECT") for text in asked) == 2  # which rows; these rows
    assert mirrors[-1][Order][1].total == 21
    mirrors[-1].close()
    assert engine.dialect.do_commit == commit


def test_no_table_is_left_of_a_mirror_that_cannot_be_made(db: Database, engine: Engine) -> None:
    db.table(int, name="orders")
    with pytest.raises(PlanError, match="already"):
        mirror(db, engine, Customer, Order)
    assert [table.name for table in db.tables()] == ["orders"]
    classes: Any = [Customer, Order]
    with pytest.raises(PlanError, match="takes mapped classes"):
        mirror(db, engine, classes)


@pytest.mark.parametrize("by_text", [False, True])
def test_a_table_that_is_dropped_in_sql_has_no_rows(
    m: Mirror, engine: Engine, by_text: bool
) -> None:
    for name in ("lines", "order_tags") if by_text else ():
        with engine.begin() as connection:
            connection.execute(text(f"DROP TABLE {name}"))
    if not by_text:
        Base.metadata.drop_all(engine)
    assert not m[Line] and not m[order_tags] and bool(m[Order]) == by_text
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        eve = Customer(name="eve")
        session.add(Order(id=9, customer=eve, lines=[Line(number=1, pieces=1)]))
        session.commit()
    assert len(m[Line]) == 1 and m[Order][9].id == 9


def test_a_cascade_of_truncate_goes_along_all_foreign_keys() -> None:
    tables = Base.metadata.tables
    known = list(tables.values())
    found = tables_written("truncate table customers Cascade", known)
    assert found is not None
    assert {"customers", "orders", "lines", "order_tags"} <= {table.name for table in found}
    assert tables_written("truncate customers", known) == {tables["customers"]}


def test_sessions_are_given_in_several_ways(engine: Engine) -> None:
    ways: list[Any] = [
        sessionmaker(engine),
        engine,
        scoped_session(sessionmaker(engine)),
    ]
    for way in [*ways, lambda: Session(engine)]:
        with mirror(Database(), way, Order) as m:
            assert len(m[Order]) == 2


def test_a_session_is_not_what_makes_sessions(engine: Engine) -> None:
    with Session(engine) as session, pytest.raises(PlanError, match="give what makes sessions"):
        mirror(Database(), session, Order)


def test_classes_may_be_in_several_databases(engine: Engine) -> None:
    other = shop()
    sessions = sessionmaker(binds={Order: engine, order_tags: engine, Tag: other})
    db = Database()
    with mirror(db, sessions, Order, Tag) as m:
        with sessions() as session:
            session.get_one(Order, 1).total = 6
            session.execute(insert(Tag).values(word="there"))
            session.commit()
        assert m[Order][1].total == 6
        assert [t.word for t in m[Tag]] == ["there"]
    other.dispose()


def test_what_is_no_class_or_has_no_engine_is_refused(db: Database, engine: Engine) -> None:
    for given in (int, 3, "Order", Order(), None):
        with pytest.raises(PlanError, match="mapped classes"):
            mirror(db, engine, given)
    with pytest.raises(PlanError, match="mirror takes a database"):
        mirror(db, engine)
    with pytest.raises(PlanError, match="have no engine"):
        mirror(db, sessionmaker(), Order)
    wrong: list[Any] = [None, 3, list]
    for sessions in wrong:
        with pytest.raises(PlanError, match="what makes sessions"):
            mirror(db, sessions, Order)
    assert db.tables() == []


def test_a_mirror_that_cannot_be_loaded_leaves_nothing(db: Database) -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool)  # it has no tables
    kept = engine.dialect.do_commit
    with pytest.raises(Exception, match="no such table"):
        mirror(db, engine, Order)
    assert db.tables() == []
    assert engine.dialect.do_commit == kept


def test_a_class_that_is_not_mirrored_is_told(db: Database, engine: Engine) -> None:
    with mirror(db, engine, Order) as m:
        with pytest.raises(PlanError, match=r"Customer is not mirrored[\s\S]*Order, Customer"):
            m[Customer]
        with pytest.raises(PlanError, match="Customer is not mirrored"):
            m.related(Order.customer)
        with pytest.raises(PlanError, match="takes a relationship"):
            m.related(Order.total)


def test_what_columns_give_is_what_rows_have(db: Database) -> None:
    base: Any = declarative_base()
    colors = enum.Enum("colors", ["red", "blue"])

    class Point:
        def __init__(self, x: int, y: int) -> None:
            self.x, self.y = x, y

        def __composite_values__(self) -> tuple[int, int]:
            return self.x, self.y

    class Thing(base):  # type: ignore[misc]
        __tablename__ = "things"
        __allow_unmapped__ = True
        code = Column("c", String, primary_key=True)
        price = Column(Numeric(10, 2))
        weight = Column(Float)
        color: Any = Column(Enum(colors))
        x = Column(Integer)
        y = Column(Integer)
        given: Any = query_expression()
        place = composite(Point, x, y)

        @hybrid_method
        def costs(self, pieces: int) -> Any:
            return self.price * pieces

    Thing.others = column_property(select(func.count(Thing.x)).scalar_subquery())
    engine = create_engine("sqlite://", poolclass=StaticPool)
    base.metadata.create_all(engine)
    with mirror(db, engine, Thing) as m:
        with Session(engine) as session, session.begin():
            session.add(Thing(code="a", price=1.5, weight=float("nan"), color=colors.red, x=1, y=2))
            session.add(Thing(code="b", price=2, weight=2))
        row: Any = m[Thing]["a"]
        assert row.price == decimal.Decimal("1.50")
        assert type(row.price) is decimal.Decimal
        assert (row.color, row.weight) == (colors.red, None)  # SQLite has no NaN
        assert (row.place.x, row.place.y) == (1, 2)
        assert row.costs(2) == 3
        for name in ("others", "given"):
            with pytest.raises(PlanError, match=f"Thing.{name}"):
                getattr(row, name)
        for function in (lambda t: t.others, lambda t: t.given):
            with pytest.raises(PlanError, match="Thing"):
                m[Thing].where(function)
    engine.dispose()


def test_mappings_that_cannot_be_followed_are_refused(db: Database) -> None:
    base: Any = declarative_base()

    class A(base):  # type: ignore[misc]
        __tablename__ = "a"
        __allow_unmapped__ = True
        id = Column(Integer, primary_key=True)
        b_id: Any = Column(ForeignKey("b.id"))
        size: Any = Column(Integer)

    class B(base):  # type: ignore[misc]
        __tablename__ = "b"
        __allow_unmapped__ = True
        id: Any = Column(Integer, primary_key=True)
        small = relationship(A, primaryjoin=lambda: and_(A.b_id == B.id, A.size < 3), viewonly=True)
        everyone = relationship(A, overlaps="small")
        sizes = association_proxy("everyone", "size")

    class Some(base):  # type: ignore[misc]
        __table__ = select(A.id, A.size).where(A.size > 3).subquery()
        __mapper_args__ = {"primary_key": [__table__.c.id]}

    engine = create_engine("sqlite://", poolclass=StaticPool)
    base.metadata.create_all(engine)
    with pytest.raises(PlanError, match="mapped to a query"):
        mirror(db, engine, Some)
    with mirror(db, engine, A, B) as m:
        with pytest.raises(PlanError, match=r"B\.small cannot be a join"):
            m.related(B.small)
        with pytest.raises(PlanError, match=r"B\.sizes leads through a relationship"):
            m[B].where(lambda b: b.sizes)
    engine.dispose()


def test_a_column_that_may_be_null_needs_an_optional_attribute(db: Database) -> None:
    class Base(DeclarativeBase): ...

    class Note(Base):
        __tablename__ = "notes"
        id: Mapped[int] = mapped_column(primary_key=True)
        text: Mapped[str] = mapped_column(nullable=True)

    class Mark(Base):
        __tablename__ = "marks"
        id: Mapped[int] = mapped_column(primary_key=True)
        text: Mapped[str | None]
        other = mapped_column(String)

    engine = create_engine("sqlite://", poolclass=StaticPool)
    Base.metadata.create_all(engine)
    with pytest.raises(
        PlanError, match=r"column 'text' may be NULL, and Note\.text .* str\n"
    ) as told:
        mirror(db, engine, Note)
    assert "declare `text: Mapped[str | None]`" in str(told.value)
    with mirror(db, engine, Mark) as m, Session(engine) as session:
        session.add(Mark(id=1))
        session.commit()
        assert [(row.text, row.other) for row in m[Mark]] == [(None, None)]
    engine.dispose()


def test_a_tree_of_cascades_is_followed(db: Database) -> None:
    class Base(DeclarativeBase): ...

    class Node(Base):
        __tablename__ = "nodes"
        id: Mapped[int] = mapped_column(primary_key=True)
        above_id = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"))
        above = relationship("Node", remote_side=[id])

    engine = create_engine("sqlite://", poolclass=StaticPool)
    keep_keys(engine)
    Base.metadata.create_all(engine)
    with mirror(db, engine, Node) as m:
        pairs = m.related(Node.above).select(lambda n, above: (n.id, above.id)).materialize()
        with Session(engine) as session:
            session.execute(
                insert(Node), [{"id": n, "above_id": n // 2 or None} for n in range(1, 8)]
            )
            session.commit()
            assert len(pairs) == 6
            session.execute(text("select 1"))
            session.execute(delete(Node).where(Node.id == 2))
            session.commit()
        assert sorted(row.id for row in m[Node]) == [1, 3, 6, 7]
        assert sorted(pairs) == [(3, 1), (6, 3), (7, 3)]
    engine.dispose()


def test_what_triggers_write_is_read_again(db: Database, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "create trigger named after insert on orders begin "
            "update customers set name = name || '!' where id = new.customer_id; end"
        )
        connection.exec_driver_sql(
            "create trigger tagged after update on customers begin "
            "insert into tags (word) values (new.name); end"
        )
    with mirror(db, engine, Customer, Tag) as m:
        with Session(engine) as session:
            session.add(Order(customer_id=1))
            session.commit()
        assert {c.name for c in m[Customer]} == {"ann!", "bob"}
        assert {t.word for t in m[Tag]} == {"red", "ann!"}


def test_a_table_without_a_primary_key_is_mirrored_by_all_columns(db: Database) -> None:
    base: Any = declarative_base()
    pairs = Table("pairs", base.metadata, Column("a", Integer), Column("b", Integer))
    engine = create_engine("sqlite://", poolclass=StaticPool)
    base.metadata.create_all(engine)
    with mirror(db, engine, pairs) as m:
        with engine.begin() as connection:
            connection.execute(pairs.insert(), [{"a": 1, "b": 2}, {"a": 1, "b": None}])
        with engine.begin() as connection:
            connection.execute(pairs.update().where(pairs.c.a == 1, pairs.c.b == 2).values(b=5))
        held: Any = m[pairs]
        assert {(row.a, row.b) for row in held} == {(1, 5), (1, None)}
    engine.dispose()


def test_work_of_a_commit_does_not_depend_on_the_size_of_tables() -> None:
    """Rows read of one changed order, in tables of 30 and of 3,000 rows."""
    read = []
    for size in (30, 3000):
        engine = shop()
        with engine.begin() as connection:
            connection.execute(insert(Customer), [{"id": 1, "name": "a"}])
            rows = [{"id": n, "customer_id": 1} for n in range(1, size)]
            connection.execute(insert(Order), rows)
        db = Database()
        with mirror(db, engine, *CLASSES) as m:
            count = m[Order].group_by(lambda o: o.customer_id).aggregate(Count()).materialize()
            kinds = [kind for kind, _ in m._mirrored._parts[0].tables]
            seen: list[int] = []
            for kind in kinds:
                counted: Any = _Counted(kind.record.row, seen)
                object.__setattr__(kind, "record", replace(kind.record, row=counted))
            with Session(engine) as session:
                session.get_one(Order, 5).total = 4
                session.commit()
            read.append(len(seen))
            assert count[1] == size - 1
        engine.dispose()
    assert read == [1, 1]


class _Counted:
    def __init__(self, made: Any, seen: list[int]) -> None:
        self._made, self._seen = made, seen

    def __call__(self, *values: Any) -> Any:
        self._seen.append(1)
        return self._made(*values)


def test_the_table_between_is_a_table_too(m: Mirror) -> None:
    link: Any = m[order_tags][1, 1]
    assert (link.order_id, link.tag_id) == (1, 1)


def test_columns_may_be_called_as_words_of_python() -> None:
    class Base(DeclarativeBase): ...

    edges = Table(
        "edges",
        Base.metadata,
        Column("from", ForeignKey("towns.id"), primary_key=True),
        Column("to", ForeignKey("towns.id"), primary_key=True),
    )

    class Town(Base):
        __tablename__ = "towns"
        id: Mapped[int] = mapped_column(primary_key=True)
        next: Mapped[list[Any]] = relationship(
            "Town",
            secondary=edges,
            primaryjoin=lambda: Town.id == edges.c["from"],
            secondaryjoin=lambda: Town.id == edges.c.to,
        )

    engine = create_engine("sqlite://", poolclass=StaticPool)
    Base.metadata.create_all(engine)
    m = mirror(Database(), engine, Town)
    ways = m.related(Town.next).select(lambda a, b: (a.id, b.id)).materialize()
    with Session(engine) as session:
        session.add(Town(id=1, next=[Town(id=2)]))
        session.commit()
        assert list(ways) == [(1, 2)]
        town = session.get_one(Town, 1)
        town.next.clear()
        session.commit()
    assert not list(ways) and m[edges].row_type.__annotations__.keys() == {"from_", "to"}
    m.close()
    mapped: Any = type(
        "Way", (Base,), {"__tablename__": "ways", "in": Column("in", Integer, primary_key=True)}
    )
    with pytest.raises(PlanError, match="map the column to another attribute"):
        mirror(Database(), engine, mapped)


def test_rows_snapshots_and_deltas_can_be_pickled(m: Mirror, engine: Engine) -> None:
    told: list[Any] = []
    tags: Any = m[order_tags]
    view = m[Order].where(lambda o: o.total > 0).materialize()
    with m[Order].subscribe(told.append), Session(engine) as session:
        customer = Customer(name="eve", size={"shoes": [39, 40]})
        session.add(Order(total=7, customer=customer, tags=[Tag(word="new")]))
        session.commit()
    rows = [*m[Order], *m[Customer], *tags]
    again = pickle.loads(pickle.dumps(rows))
    assert again == rows and [*map(type, again)] == [*map(type, rows)]
    assert set(again) == set(rows)
    assert pickle.loads(pickle.dumps(told[0])).added == told[0].added
    assert list(pickle.loads(pickle.dumps(view.snapshot()))) == list(view.snapshot())
    assert copy.copy(rows[0]) == copy.deepcopy(rows[0]) == rows[0]


def test_another_process_reads_rows_without_a_mirror(m: Mirror) -> None:
    rows = [*m[Order], *m[Customer], *m[order_tags]]
    code = (
        "import pickle, sys\n"
        "rows = pickle.loads(sys.stdin.buffer.read())\n"
        "assert 'tests.borders.mirrors.shop' in sys.modules\n"
        "print([type(row).__name__ for row in rows], rows[0].total)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(rows), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == f"{[type(r).__name__ for r in rows]} {rows[0].total}"


def test_a_mirror_of_a_closed_database_can_be_printed_and_sessions_go_on() -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    Customer.metadata.create_all(engine)
    db = Database()
    m = mirror(db, engine, Customer)
    db.close()
    with Session(engine) as session:
        session.add(Customer(name="ann"))
        session.commit()
    assert repr(m) == "Mirror(Customer: closed; of sqlite://)"


def test_columns_of_tables_are_fields_by_the_rule_of_all_borders() -> None:
    base = declarative_base()
    items = Table(
        "items",
        base.metadata,
        Column("class", Integer, primary_key=True),
        Column("unit price", Integer),
        Column("2024", Integer),
        Column("mro", Integer),
    )
    engine = create_engine("sqlite://", poolclass=StaticPool)
    base.metadata.create_all(engine)
    m = mirror(Database(), engine, items)
    with Session(engine) as session:
        session.execute(insert(items).values({"class": 1, "unit price": 2, "2024": 3, "mro": 4}))
        session.commit()
        session.execute(update(items).values({"unit price": 5}).where(items.c["class"] == 1))
        session.commit()
    (row,) = m[items]
    assert (row.class_, row.unit_price, row.column_2024, row.mro) == (1, 5, 3, 4)
    assert m[items][1] == row
    m.close()
