"""Random sessions over the shop; tables and views are compared with SQL.

A session adds, changes and deletes objects and relationships, flushes, nests savepoints, runs
statements of every kind, runs into errors of SQL, of views and of hooks, and commits or rolls back.
After each one tables equal `select *`, and views the query in SQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from sqlalchemy import Engine, delete, event, func, insert, literal, select, text, update
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from reactive import Count, Database, Mirror, Sum, mirror
from reactive.borders.mirrors.kinds import freeze_value
from tests.borders.mirrors.shop import (
    CLASSES,
    Clerk,
    Customer,
    Line,
    Manager,
    Order,
    Person,
    Tag,
    order_tags,
)

POISON = 666
"""An order of this total makes a view raise."""


class Poisoned(Exception):
    """Exception raised by a view, or by a hook of a session."""


class World:
    """A shop, a mirror of it and views, and sessions that change it."""

    def __init__(self, engine: Engine, seed: int, sessions: Any = None) -> None:
        self.random = Random(seed)
        self.engine = engine
        self.sessions = sessions or sessionmaker(engine)
        self.db = Database()
        self.done: Counter[str] = Counter()
        self.trace: list[str] = []
        self.mirror: Mirror = mirror(self.db, self.sessions, *CLASSES)
        self._make_views()

    def _make_views(self) -> None:
        m = self.mirror
        self.totals = (
            m.related(Order.customer)
            .group_by(lambda o, c: c.name)
            .aggregate(Sum(lambda o, c: o.total), Count())
            .materialize()
        )
        self.words = m.related(Order.tags).select(lambda o, t: (o.id, t.word)).materialize()
        self.checked = m[Order].select(_unpoisoned).materialize()
        self.managers = m[Manager].where(lambda p: p.level > 2).materialize()

    def run(self) -> None:
        """One session, from its beginning to its end."""
        random, hook = self.random, self.random.random() < 0.05
        with self.sessions() as session:
            if hook:
                event.listen(session, "before_commit", _raise)
            try:
                for _ in range(random.choice([0, 1, 2, 4, 8])):
                    self.step(session)
                self._end(session)
            except (SQLAlchemyError, Poisoned) as error:
                self.done[type(error).__name__] += 1
                self.trace.append(f"raised {type(error).__name__}")
                session.rollback()
            finally:
                if hook:
                    event.remove(session, "before_commit", _raise)

    def _end(self, session: Session) -> None:
        end: Any = self.random.choice([session.commit] * 5 + [session.rollback, session.close])
        self._do(end)

    def step(self, session: Session, depth: int = 0) -> None:
        if depth < 3 and self.random.random() < 0.15:
            self._nested(session, depth)
        elif self.random.random() < 0.2:
            self._do(session.flush)
        else:
            act = self.random.choice(ACTS)
            self.trace.append(act.__name__)
            act(session, self.random)
            self.done[act.__name__] += 1

    def _nested(self, session: Session, depth: int) -> None:
        self.trace.append("savepoint")
        nested = session.begin_nested()
        try:
            for _ in range(self.random.choice([1, 2, 3])):
                self.step(session, depth + 1)
            end: Any = self.random.choice([nested.commit, nested.rollback])
            self._do(end)
        except SQLAlchemyError:
            nested.rollback()
            self.trace.append("savepoint undone")

    def _do(self, act: Callable[[], object]) -> None:
        self.trace.append(act.__qualname__)
        act()
        self.done[act.__qualname__] += 1

    def check(self) -> None:
        """Check that tables and views equal the results of SQL."""
        with self.engine.connect() as connection:
            for owner in (*CLASSES, order_tags):
                self._check_table(connection, owner)
            asked: Any = (
                select(Customer.name, func.sum(Order.total), func.count())
                .join(Order.customer)
                .group_by(Customer.name)
            )
            found: Any = {row[0]: (row[1], row[2]) for row in connection.execute(asked)}
            assert dict(self.totals) == found, self.trace
            asked = select(Order.id, Tag.word).join(Order.tags)
            assert sorted(self.words) == sorted(map(tuple, connection.execute(asked)))
            asked = select(Order.total)
            assert sorted(self.checked) == sorted(connection.scalars(asked)), self.trace
            asked = select(Manager.id).where(Manager.level > 2)
            assert {row.id for row in self.managers} == set(connection.scalars(asked))

    def _check_table(self, connection: Any, owner: Any) -> None:
        table = self.mirror[owner]
        fields = list(table.row_type.__dataclass_fields__)
        columns = owner.columns if owner is order_tags else owner.__mapper__.all_orm_descriptors
        asked = select(*[columns[name] for name in fields])
        wanted = Counter(tuple(map(freeze_value, row)) for row in connection.execute(asked))
        held = Counter(tuple([getattr(row, name) for name in fields]) for row in table)
        assert held == wanted, (owner, held - wanted, wanted - held, self.trace)


def _raise(session: Any) -> None:
    raise Poisoned("a hook before the commit")


def _unpoisoned(order: Any) -> int:
    if order.total == POISON:
        raise Poisoned("a view")
    return int(order.total)


def _pick(session: Session, random: Random, owner: type) -> Any:
    found: Any = session.scalars(select(owner)).all()
    return random.choice(found) if found else None


def _total(random: Random) -> int:
    return POISON if random.random() < 0.03 else random.randrange(20)


def add_customer(session: Session, random: Random) -> None:
    email = random.choice([None, f"{random.randrange(30)}@x"])
    size = random.choice([None, [1, {"a": [2]}], {"wide": random.randrange(3)}])
    orders = [Order(total=_total(random)) for _ in range(random.choice([0, 0, 1, 2]))]
    name = random.choice("abc")
    session.add(Customer(name=name, email=email, size=size, orders=orders))


def add_order(session: Session, random: Random) -> None:
    if customer := _pick(session, random, Customer):
        total = {"total": _total(random)} if random.random() < 0.7 else {}
        lines = [Line(number=n, pieces=random.randrange(5)) for n in range(random.choice([0, 2]))]
        session.add(Order(customer=customer, lines=lines, **total))


def change_order(session: Session, random: Random) -> None:
    if order := _pick(session, random, Order):
        order.total = random.choice([_total(random), Order.total + 1])
        if random.random() < 0.5:
            order.note = random.choice([None, "x"])
        if random.random() < 0.3:
            order.customer = _pick(session, random, Customer)


def change_size(session: Session, random: Random) -> None:
    if customer := _pick(session, random, Customer):
        customer.size = {"tall": random.randrange(3)}
        customer.name = random.choice("abc")


def delete_one(session: Session, random: Random) -> None:
    owner = random.choice([Customer, Order, Line, Tag, Person])
    if (found := _pick(session, random, owner)) is not None:
        session.delete(found)


def edit_lines(session: Session, random: Random) -> None:
    if order := _pick(session, random, Order):
        if order.lines and random.random() < 0.5:
            order.lines.pop()
        else:
            number = 1 + max([line.number for line in order.lines], default=0)
            order.lines.append(Line(number=number, pieces=1))


def edit_tags(session: Session, random: Random) -> None:
    if order := _pick(session, random, Order):
        if order.tags and random.random() < 0.5:
            order.tags.pop()
        elif random.random() < 0.5:
            order.tags.append(Tag(word=random.choice("xyz")))
        elif (tag := _pick(session, random, Tag)) and tag not in order.tags:
            order.tags.append(tag)


def add_person(session: Session, random: Random) -> None:
    other = _pick(session, random, Person)
    friend = random.choice([None, None, other and other.id, 10_000])  # the last id does not exist
    if friend == 10_000 and random.random() < 0.7:
        friend = None
    made: list[Person] = [
        Person(name="p", friend_id=friend),
        Manager(name="m", level=random.randrange(5), friend_id=friend),
        Clerk(name="c", desk=random.choice([None, "d"]), friend_id=friend),
    ]
    session.add(random.choice(made))


def change_person(session: Session, random: Random) -> None:
    if person := _pick(session, random, Person):
        person.name = random.choice("pq")
        if isinstance(person, Manager):
            person.level = random.randrange(5)


def update_many(session: Session, random: Random) -> None:
    limit = random.randrange(20)
    way = random.choice(["auto", "fetch", False])
    statement = update(Order).where(Order.total > limit).values(total=Order.total - 1)
    session.execute(statement.execution_options(synchronize_session=way))
    session.expire_all()


def update_by_other(session: Session, random: Random) -> None:
    names = select(Customer.id).where(Customer.name == random.choice("abc"))
    session.execute(update(Order).where(Order.customer_id.in_(names)).values(note="o"))
    statement = update(Order).where(Order.customer_id == Customer.id, Customer.name == "a")
    session.execute(statement.values(total=3).execution_options(synchronize_session=False))
    session.expire_all()


def update_by_keys(session: Session, random: Random) -> None:
    ids = session.scalars(select(Order.id)).all()
    if ids:
        rows = [{"id": each, "total": _total(random)} for each in random.sample(ids, 1)]
        session.execute(update(Order), rows)


def update_ordered(session: Session, random: Random) -> None:
    statement = update(Order).ordered_values((Order.total, 7), (Order.note, "seven"))
    session.execute(statement.where(Order.total == 6))
    session.expire_all()


def move_customer(session: Session, random: Random) -> None:
    ids = session.scalars(select(Customer.id)).all()
    if ids:
        new = max(ids) + random.randrange(3)
        way = {"synchronize_session": False}
        statement = update(Customer).where(Customer.id == random.choice(ids)).values(id=new)
        session.execute(statement, execution_options=way)
        session.expunge_all()


def change_key(session: Session, random: Random) -> None:
    if line := _pick(session, random, Line):
        line.number = random.randrange(100)


def delete_many(session: Session, random: Random) -> None:
    owner: Any = random.choice([Order, Customer])
    chosen = owner.id % 5 == random.randrange(5)
    session.execute(delete(owner).where(chosen).execution_options(synchronize_session="fetch"))
    session.expunge_all()


def delete_all(session: Session, random: Random) -> None:
    if random.random() < 0.2:
        session.execute(delete(random.choice([Line, Order])))
        session.expunge_all()


def insert_many(session: Session, random: Random) -> None:
    rows = [{"word": random.choice("xyz")} for _ in range(random.choice([1, 2, 3]))]
    session.execute(insert(Tag), rows)


def insert_values(session: Session, random: Random) -> None:
    statement: Any = random.choice(
        [
            insert(Tag).values(word="v"),
            insert(Tag).values([{"word": "v"}, {"word": "w"}]),
            insert(Tag).values([{"id": 500 + random.randrange(9), "word": "v"}]),
            insert(Tag).values(id=select(func.coalesce(func.max(Tag.id), 0) + 3).scalar_subquery()),
            insert(Tag).values(id=literal(900) + random.randrange(100), word="e"),
        ]
    )
    session.execute(statement.values(word="s") if "scalar" in str(statement) else statement)


def insert_selected(session: Session, random: Random) -> None:
    session.execute(insert(Tag).from_select(["word"], select(Customer.name).limit(2)))


def insert_returning(session: Session, random: Random) -> None:
    rows = [{"word": "r"}] * random.choice([1, 2])
    assert len(session.scalars(insert(Tag).returning(Tag), rows).all()) == len(rows)
    session.scalar(insert(Tag).values(word="r").returning(Tag.word))


def upsert_by_key(session: Session, random: Random) -> None:
    statement = upsert(Tag)
    rows = [{"id": random.randrange(20), "word": random.choice("xyz")} for _ in range(2)]
    change = {"word": statement.excluded.word + "!"}
    session.execute(statement.on_conflict_do_update(index_elements=["id"], set_=change), rows)
    session.expire_all()


def upsert_by_email(session: Session, random: Random) -> None:
    rows = [{"email": f"{random.randrange(30)}@x", "name": random.choice("abc")} for _ in range(2)]
    statement = upsert(Customer).values(rows[0]) if random.random() < 0.5 else upsert(Customer)
    done = (
        statement.on_conflict_do_nothing()
        if random.random() < 0.3
        else statement.on_conflict_do_update(
            index_elements=[Customer.email], set_={"name": statement.excluded.name}
        )
    )
    if statement.is_insert and "VALUES" in str(done) and len(rows) and statement._values:
        session.execute(done)
    else:
        session.execute(done, rows)
    session.expire_all()


def replace_rows(session: Session, random: Random) -> None:
    row = {"id": random.randrange(9), "email": f"{random.randrange(30)}@x", "name": "z"}
    session.execute(insert(Customer).prefix_with("OR REPLACE").values(row))
    session.expunge_all()


def run_text(session: Session, random: Random) -> None:
    texts = [
        "update orders set total = total + 1 where id % 3 = 0",
        "delete from Customers where id % 7 = 0",
        "insert into tags (word) values ('t')",
        "select 'update' from tags",
    ]
    chosen = random.choice(texts)
    if random.random() < 0.5:
        session.execute(text(chosen))
    else:
        session.connection().exec_driver_sql(chosen)
    session.expunge_all()


def save_in_bulk(session: Session, random: Random) -> None:
    session.bulk_save_objects([Tag(word="b"), Tag(word="b")])
    session.bulk_insert_mappings(Manager, [{"name": "m", "level": 3, "kind": "manager"}] * 2)
    ids = session.scalars(select(Order.id)).all()
    session.bulk_update_mappings(Order, [{"id": each, "total": 4} for each in ids[:2]])
    session.expire_all()


def query_legacy(session: Session, random: Random) -> None:
    session.query(Order).filter(Order.total < 5).update({"total": 5})
    session.query(Line).filter(Line.pieces == random.randrange(5)).delete()


def link_directly(session: Session, random: Random) -> None:
    order, tag = _pick(session, random, Order), _pick(session, random, Tag)
    if order is not None and tag is not None:
        session.connection().execute(
            upsert(order_tags)
            .values(order_id=order.id, tag_id=tag.id)
            .on_conflict_do_nothing(index_elements=["order_id", "tag_id"])
        )
        session.expire_all()


def break_a_rule(session: Session, random: Random) -> None:
    if customer := _pick(session, random, Customer):
        session.execute(insert(Customer).values(id=customer.id, name="twice"))


ACTS: list[Callable[[Session, Random], None]] = [
    *(add_customer, add_customer, add_order, add_order, change_order, change_order, change_size),
    *(delete_one, edit_lines, edit_tags, edit_tags, add_person, change_person, update_many),
    *(update_by_other, update_by_keys, update_ordered, move_customer, change_key, delete_many),
    *(delete_all, insert_many, insert_values, insert_selected, insert_returning, upsert_by_key),
    *(upsert_by_email, replace_rows, run_text, save_in_bulk, query_legacy, link_directly),
    break_a_rule,
]


def run(engine: Engine, seed: int, count: int) -> World:
    """Run `count` sessions, and check each of them."""
    world = World(engine, seed)
    for _ in range(count):
        world.trace = []
        world.run()
        world.check()
    return world
