"""Fields of objects inside of rows are read as DuckDB reads fields of structs."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass
from typing import Any, Literal, NamedTuple

import duckdb
import pytest

from reactive import Database, PlanError


@dataclass(frozen=True)
class Place:
    height: float | None


@dataclass(frozen=True)
class Home:
    number: int
    street: str | None
    place: Place | None = None


class Pair(NamedTuple):
    number: int
    street: str


@dataclass(frozen=True)
class Person:
    id: int
    home: Home | None
    pair: Pair
    friend: Person | None = None


ANN = Person(1, Home(2, "x", Place(1.5)), Pair(3, "y"))
PEOPLE = [
    ANN,
    Person(2, Home(2, None, Place(None)), Pair(3, "z"), ANN),
    Person(3, None, Pair(4, "y")),
    Person(4, Home(5, "x"), Pair(5, "y")),
    Person(5, Home(3, "y"), Pair(5, "x")),
]
TEXTS = """
select home.number from people
select people.home.number from people
select p.home.Number from people p
select (home).number from people
select home['number'] from people
select struct_extract(home, 'number') from people
select pair.number, pair.street from people
select id from people where home.number = 2
select id from people where home.place.height > 1
select id, p.home.place.height from people p
select home.number, count(*) from people group by home.number
select home.number, count(*) from people group by 1 having home.number > 2
select home.number from people group by home
select home.number + 1, sum(pair.number) from people group by home.number
select max(home.place.height), min(home.street) from people
select a.id, b.id from people a join people b on a.home.number = b.pair.number
select id from people where exists (select 1 from people o where o.pair.number = people.home.number)
select id from people p where exists
    (select 1 from people o where o.pair.number = p.home.number and o.id < p.id)
select pair.* from people
select home.* exclude (place) from people
select unnest(pair) from people
select s.a from (select {'a': 1} s)
select x.S.A.b from (select {'a': {'b': 2}} s) x
select id from people order by home.number nulls first, pair.street, id limit 2
select home.number, row_number() over (partition by home.number order by id) from people
select distinct home.street from people
select home.street like 'x%', home is null from people
select t.home.number from (select home from people) t
select pair.number from (select pair from people union all select pair from people)
with w as (select pair as m, id from people) select w.m.number, id from w
select coalesce(home.street, 'q') || pair.street from people
select id from people where home.number in (select pair.number from people)
select b.home.number from people a left join people b on a.id = b.id + 1
select id from people qualify row_number() over (partition by pair.street order by id) = 1
select case when home.number > 2 then pair.street else home.street end from people
""".strip().replace("\n    ", " ").split("\n")  # fmt: skip


def _shown(home: Home | None) -> Any:
    if home is None:
        return None
    place = None if home.place is None else {"height": home.place.height}
    return {"number": home.number, "street": home.street, "place": place}


@pytest.fixture(scope="module")
def engine() -> Any:
    place = "struct(height double)"
    home = f"struct(number int, street text, place {place})"
    made = duckdb.connect()
    made.execute(f"create table people(id int, home {home}, pair struct(number int, street text))")
    return made


def _fill(engine: Any, people: list[Person]) -> None:
    engine.execute("delete from people")
    for each in people:
        row = [each.id, _shown(each.home), each.pair._asdict()]
        engine.execute("insert into people values (?, ?, ?)", row)


@pytest.mark.long
@pytest.mark.parametrize("text", TEXTS)
def test_fields_are_those_of_structs(engine: Any, text: str) -> None:
    db = Database()
    people = db.table(Person, name="people")
    view = db.sql(text).materialize()
    for now in (PEOPLE[:3], PEOPLE, PEOPLE[2:], [PEOPLE[1]], []):
        people.replace_all(now)
        _fill(engine, now)
        assert Counter(map(tuple, view)) == Counter(engine.execute(text).fetchall())
        view.verify()


def test_a_field_may_be_an_object_of_its_own_class() -> None:
    db = Database()
    people = db.table(Person, name="people")
    view = db.sql("select id, friend.home.number from people").materialize()
    people.add_all(PEOPLE[:2])
    assert sorted(map(tuple, view)) == [(1, None), (2, 2)]
    assert astuple(PEOPLE[1])[3] == astuple(ANN)


@pytest.mark.parametrize("name", ["nope", "home.nope", "people.home.nope", "pair.number.nope"])
def test_an_absent_field_is_told(name: str) -> None:
    db = Database()
    db.table(Person, name="people")
    with pytest.raises(PlanError, match=r"there is no (field|column) '\w*nope'"):
        db.sql(f"select {name} from people")


def test_an_object_has_no_elements() -> None:
    db = Database()
    db.table(Person, name="people")
    with pytest.raises(PlanError, match="has no elements to unnest"):
        db.sql("select id, x from people, unnest(home) as u(x)")


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_dots_name_tables_elsewhere(dialect: Literal["postgres", "sqlite"]) -> None:
    db = Database(dialect=dialect)
    db.table(Person, name="people")
    with pytest.raises(PlanError, match="there is no table 'home'"):
        db.sql("select home.number from people")


def test_postgres_reads_fields_in_parentheses() -> None:
    db = Database(dialect="postgres")
    people = db.table(Person, name="people")
    view = db.sql("select (home).number, (p.pair).street from people p").materialize()
    people.add_all(PEOPLE)
    found = [(p.home and p.home.number, p.pair.street) for p in PEOPLE]
    assert Counter(map(tuple, view)) == Counter(found)
