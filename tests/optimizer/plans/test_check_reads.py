"""A query that reads a missing field is refused when it is made; no other query is."""

from __future__ import annotations

import functools
import sys
import types
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import attr
import attrs
import msgspec
import pydantic
import pytest

from optimizer.expressions.members import lacks
from optimizer.kinds.fields import compared_names, hints, is_record, members
from reactive import (
    Avg,
    Count,
    Database,
    Min,
    PlanError,
    Relation,
    Sum,
    Table,
    desc,
    fixpoint,
    iterate,
)
from tests.errors.golden import place

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sale:
    id: int
    price: float
    note: str | None = None
    taxed: bool = field(default=False, kw_only=True)

    currency: ClassVar[str] = "EUR"

    @property
    def net(self) -> float:
        return self.price / 1.19

    def total(self) -> float:
        return self.price

    @classmethod
    def free(cls) -> Sale:
        return cls(0, 0.0)

    @staticmethod
    def of() -> str:
        return "x"


@dataclass(frozen=True)
class WithDict:
    price: float

    @cached_property
    def doubled(self) -> float:
        return 2 * self.price

    def __post_init__(self) -> None:
        if self.price < 0:
            raise ValueError(self.price)


class Tuple(NamedTuple):
    id: int
    price: float


Plain = namedtuple("Plain", "id price")


class Struct(msgspec.Struct, frozen=True):
    id: int
    price: float


@attrs.frozen
class Attrs:
    id: int
    price: float


@attr.s(frozen=True)
class OldAttrs:
    id: int = attr.ib()
    price: float = attr.ib()


class Model(pydantic.BaseModel, frozen=True):
    id: int
    price: float
    _seen: bool = pydantic.PrivateAttr(False)

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def net(self) -> float:
        return self.price / 1.19


make: Any = Sale
RECORDS: list[Any] = [Sale, WithDict, Tuple, Plain, Struct, Attrs, OldAttrs, Model]


@contextmanager
def refused(message: str) -> Iterator[None]:
    with pytest.raises(PlanError) as caught:
        yield
    assert message in str(caught.value)


def table(kind: Any, db: Database | None = None, **options: Any) -> Table[Any]:
    return (db or Database()).table(kind, name=f"t_{kind.__name__}", **options)


# What is refused.


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("optimize", [True, False])
def test_a_field_that_no_row_has_is_told_with_what_was_meant(kind: Any, optimize: bool) -> None:
    rows = Database(optimize=optimize).table(kind)
    dear: Callable[[Any], bool] = lambda s: s.prise > 3  # noqa: E731
    with pytest.raises(PlanError) as caught:
        rows.where(dear)
    assert str(caught.value) == (
        f"{kind.__name__} has no field 'prise'; did you mean 'price'?\n"
        f"  in where: <lambda> ({place(dear)}) reads s.prise"
    )


def test_what_resembles_nothing_is_told_with_the_fields_that_there_are() -> None:
    with refused("Tuple has no field 'zzz'; it has id, price"):
        table(Tuple).select(lambda t: t.zzz)


def test_a_method_is_suggested_too() -> None:
    with refused("Sale has no field 'totel'; did you mean 'total'?"):
        table(Sale).select(lambda s: s.totel())


QUERIES: dict[str, Callable[[Table[Any], Table[Any]], object]] = {
    "select": lambda s, t: s.select(lambda r: (r.id, r.prise)),
    "select_many": lambda s, t: s.select_many(lambda r: [r.id, r.prise]),
    "unnest": lambda s, t: s.unnest(lambda r: (r.prise,)),
    "order_by": lambda s, t: s.order_by(lambda r: r.prise),
    "second key": lambda s, t: s.order_by(lambda r: r.id, desc(lambda r: r.prise)),
    "join": lambda s, t: s.join(t, on=lambda a, b: a.id == b.prise),
    "left key": lambda s, t: s.join(t, left_key=lambda a: a.prise, right_key=lambda b: b.id),
    "right key": lambda s, t: s.join(t, left_key=lambda a: a.id, right_key=lambda b: b.prise),
    "after a join": lambda s, t: s.join(t, on=lambda a, b: a.id == b.id).where(
        lambda a, b: b.prise
    ),
    "of a pair": lambda s, t: s.join(t.join(t)).select(lambda a, bc: bc[1].prise),
    "left_join": lambda s, t: s.left_join(t).where(lambda a, b: b is not None and b.prise > 3),
    "semi_join": lambda s, t: s.semi_join(t, on=lambda a, b: a.prise == b.id),
    "anti_join": lambda s, t: s.anti_join(t, on=lambda a, b: a.id == b.prise),
    "groups": lambda s, t: s.group_by(lambda r: r.prise),
    "group_by": lambda s, t: s.group_by(lambda r: r.prise).aggregate(Count()),
    "aggregate": lambda s, t: s.aggregate(Count(), Sum(lambda r: r.prise)),
    "of a group": lambda s, t: s.group_by(lambda r: r.id).aggregate(Avg(lambda r: r.prise)),
    "after where": lambda s, t: s.where(lambda r: r.id > 3).select(lambda r: r.prise),
    "after union": lambda s, t: (s | s.where(lambda r: r.id > 3)).select(lambda r: r.prise),
    "after distinct": lambda s, t: s.distinct().select(lambda r: r.prise),
    "after a tuple": lambda s, t: s.select(lambda r: (1, r)).where(lambda p: p[1].prise),
    "after making one": lambda s, t: t.select(lambda r: make(r.id, 2.0)).where(lambda r: r.prise),
    "behind a test": lambda s, t: s.where(lambda r: r.id > 3 and r.prise > 3),
    "behind an or": lambda s, t: s.where(lambda r: r.note is None or r.prise > 3),
    "behind a method of a field": lambda s, t: s.where(lambda r: r.note.strip() and r.prise > 3),
    "behind a length": lambda s, t: s.where(lambda r: len(r.note) > 3 and r.prise > 3),
    "in a choice": lambda s, t: s.select(lambda r: r.prise if r.id else 0),
    "in a call": lambda s, t: s.select(lambda r: max(r.id, r.prise)),
    "in a text": lambda s, t: s.select(lambda r: f"{r.id}: {r.prise:.2f}"),
    "in a captured function": lambda s, t: s.where(dear),
    "in a function that it calls": lambda s, t: s.where(lambda r: dear(r)),
    "in a function that it captured": lambda s, t: (lambda f: s.where(lambda r: f(r)))(dear),
    "in a partial": lambda s, t: s.where(functools.partial(above, 3)),
    "attrgetter": lambda s, t: s.select(attrgetter("prise")),
    "an index": lambda s, t: t.select(lambda r: r[2]),
    "a negative index": lambda s, t: t.select(lambda r: r[-3]),
    "an index of a tuple": lambda s, t: s.select(lambda r: (r.id, 1)).where(third),
    "iterate": lambda s, t: iterate(lambda r: r.union(s.where(lambda x: x.prise)), s, times=2),
    "fixpoint": lambda s, t: fixpoint(lambda r: r.where(lambda x: x.id).union(s.where(dear))),
}


def before_last(of: Any) -> Any:
    return of[-2]


def third(of: Any) -> Any:
    return of[2]


def dear(sale: Any) -> bool:
    return bool(sale.prise > 3)


def above(limit: int, sale: Any) -> bool:
    return bool(sale.prise > limit)


@pytest.mark.parametrize("query", QUERIES)
def test_every_callable_of_a_query_is_looked_at(query: str) -> None:
    db = Database()
    with refused(" has no "):
        QUERIES[query](table(Sale, db), table(Tuple, db))


def test_rows_of_a_recursion_are_known_when_its_definition_is() -> None:
    db = Database()
    steps = table(Tuple, db)
    kind: Any = Tuple
    with refused("Tuple has no field 'prise'"):
        fixpoint(
            lambda found: steps.select(lambda s: kind(s.id, 1.0)).union(
                found.join(steps, on=lambda f, s: f.prise == s.id).select(
                    lambda f, s: kind(f.id, s.price)
                )
            )
        )


def test_an_index_beyond_a_tuple_is_told_with_its_length() -> None:
    with refused("Tuple of 2 items has no item 2\n  in select: "):
        table(Tuple).select(lambda t: t[2])
    with refused("a tuple of 1 item has no item -2\n"):
        table(Tuple).select(lambda t: (t.id,)).select(lambda t: before_last(t))
    with refused("a tuple of 2 items has no item 2\n"):
        Database().table(tuple[int, str], name="pairs").select(third)


@dataclass(frozen=True, slots=True)
class Line:
    sale: Sale
    maybe: Sale | None
    pair: tuple[int, Sale]
    several: tuple[Sale, ...]
    other: int | Sale
    text: str
    anything: Any = None


def test_fields_are_what_their_annotations_say() -> None:
    lines = table(Line)
    for wrong in (
        lambda n: n.sale.prise,
        lambda n: n.maybe and n.maybe.prise,
        lambda n: n.pair[1].prise,
        lambda n: n.pair[2],
    ):
        with refused(" has no "):
            lines.select(wrong)
    for right in (
        lambda n: n.sale.price,
        lambda n: n.several[7].prise,
        lambda n: n.other.prise,
        lambda n: n.text.prise,
        lambda n: n.anything.prise,
        lambda n: n.pair[-2],
    ):
        lines.select(right)


def test_the_key_of_a_table_is_looked_at() -> None:
    with refused("Sale has no field 'prise'; did you mean 'price'?\n  in the key of table: "):
        table(Sale, key=lambda s: s.prise)


# What is not refused.


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_all_that_a_class_has_can_be_read(kind: Any) -> None:
    names = [name for name in dir(kind) if name.isidentifier()]
    assert "price" in names or kind in (WithDict, OldAttrs, Attrs, Model, Struct, Sale)
    assert [name for name in [*names, "price"] if lacks(kind, name)] == []


def test_rows_that_are_read_as_they_are_give_what_they_did() -> None:
    sales = table(Sale)
    view = sales.select(
        lambda s: (s.net, s.total(), s.currency, s.free().id, s.of(), s.taxed, s.__class__)
    ).materialize()
    sales.add(Sale(1, 1.19))
    assert list(view) == [(1.0, 1.19, "EUR", 0, "x", False, Sale)]


class Animal:
    pass


@dataclass(frozen=True)
class Base:
    id: int


@dataclass(frozen=True)
class Left(Base):
    left: int


@dataclass(frozen=True, slots=True)
class LeftOfLeft(Left):
    further: int


class OpenBase(NamedTuple):
    id: int


class Open(OpenBase):
    """A class with a dictionary, so that any attribute may be assigned."""


@dataclass(frozen=True)
class Filling:
    id: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra", 3)


@dataclass(frozen=True)
class FilledElsewhere:
    id: int

    def __post_init__(self) -> None:
        fill(self)


@dataclass(frozen=True)
class FilledInAMethod:
    id: int

    def __post_init__(self) -> None:
        self._fill()

    def _fill(self) -> None:
        self.__dict__["extra"] = 3


def fill(of: Any) -> None:
    object.__setattr__(of, "extra", 3)


@dataclass(frozen=True, slots=True)
class Asking:
    id: int

    def __getattr__(self, name: str) -> int:
        return 3


class Getting(NamedTuple):
    id: int

    def __getattribute__(self, name: str) -> Any:
        return 3 if name == "extra" else tuple.__getattribute__(self, name)


@dataclass(eq=False)
class NotFrozen:
    id: int


class Loose(pydantic.BaseModel, frozen=True, extra="allow"):
    id: int


@dataclass(frozen=True, slots=True)
class Abstract(ABC):
    id: int

    @abstractmethod
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Registered(ABC):
    id: int


Registered.register(Animal)


@dataclass(frozen=True)
class Declaring:
    id: int
    given: InitVar[int] = 0


class Mixin:
    extra: int


@dataclass(frozen=True)
class Mixed(Mixin):
    id: int


class Named(Protocol):
    id: int


@dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    id: T


OPEN: list[Any] = [
    *(Open, OpenBase, Filling, FilledElsewhere, FilledInAMethod, Asking, Getting, NotFrozen),
    *(Loose, Abstract, Registered, Mixed, Animal, Named, str, tuple, object, int),
]


@pytest.mark.parametrize("kind", OPEN, ids=lambda kind: kind.__name__)
def test_what_a_row_may_have_without_declaring_it_is_not_refused(kind: Any) -> None:
    rows = table(kind, identity=True)
    rows.where(lambda r: r.extra > 3).materialize()
    rows.select(lambda r: (r, r.extra)).where(lambda p: p[0].extra).materialize()


def test_what_a_subclass_has_is_not_refused() -> None:
    rows = table(Base)
    view = rows.where(lambda b: isinstance(b, Left) and b.left > 3).materialize()
    kinds = rows.where(lambda b: b.id == 1).select(lambda b: b.left).materialize()
    deep = rows.where(lambda b: b.id == 2).select(lambda b: b.further).materialize()
    rows.add_all([Base(7), Left(1, 5), LeftOfLeft(2, 2, 9)])
    assert list(view) == [Left(1, 5)] and list(kinds) == [5] and list(deep) == [9]
    with refused("Base has no field 'rigth'"):
        rows.select(lambda b: b.rigth)


def test_a_subclass_that_comes_later_can_be_asked_for() -> None:
    rows = table(Base)

    def is_later(row: Any) -> bool:
        return type(row).__name__ == "Later"

    chosen: list[Any] = [
        rows.where(lambda b: hasattr(b, "later")).select(lambda b: b.later).materialize(),
        rows.where(lambda b: hasattr(b, "later") and b.later > 0).select(lambda b: 5).materialize(),
        rows.where(lambda b: type(b).__name__ == "Later" and b.later).select(lambda b: 5),
        rows.where(is_later).select(lambda b: b.later),
        rows.where(lambda b: is_later(b) and b.later).select(lambda b: 5),
        rows.where(lambda b: b.__class__.__name__ == "Later").select(lambda b: b.later),
        rows.select(lambda b: b.later if is_later(b) else None).where(lambda v: v is not None),
        rows.where(lambda b: "later" in b.__dict__).select(lambda b: b.later),
        rows.select(lambda b: getattr(b, "later", None)).where(lambda v: v is not None),
    ]
    views = [r if not isinstance(r, Relation) else r.materialize() for r in chosen]

    @dataclass(frozen=True)
    class Later(Base):
        later: int

    rows.add_all([Base(1), Later(2, 5)])
    assert [list(view) for view in views] == [[5]] * len(views)


HAS_DISCOUNT = False


def test_what_a_constant_switches_off_is_not_refused() -> None:
    sales = table(Sale)
    ours = HAS_DISCOUNT
    sales.where(lambda s: HAS_DISCOUNT and s.discount > 3).materialize()
    sales.select(lambda s: s.discount if ours else 0).materialize()
    sales.where(lambda s: ours).select(lambda s: s.discount).materialize()


def test_an_attribute_that_is_given_to_the_class_is_there() -> None:
    @dataclass(frozen=True, slots=True)
    class Growing:
        id: int

    with refused("Growing has no field 'label'"):
        table(Growing).select(lambda g: g.label)
    Growing.label = property(lambda self: f"no. {self.id}")  # type: ignore[attr-defined]
    table(Growing).select(lambda g: g.label)


def test_unions_of_classes_and_unknown_rows_are_let_through() -> None:
    db = Database()
    db.table(Sale | Tuple, name="either").select(lambda r: r.prise)  # type: ignore
    both = table(Sale, db).select(lambda s: s.note).union(table(Tuple, db).select(lambda t: t.id))
    both.where(lambda v: v.prise)
    table(Pair, db).select(lambda p: (p.id.prise, p.id[7]))
    table(Sale).group_by(lambda s: s.id).aggregate(Min(lambda s: s.price)).where(
        lambda k, m: k.prise and m.prise
    )
    table(Declaring, db).select(lambda d: (d.given, d.id))


def test_a_named_tuple_with_items_of_its_own_may_have_any() -> None:
    class Wide(NamedTuple):
        id: int

        def __getitem__(self, key: Any) -> Any:
            return key

    table(Wide).select(lambda w: w[17])
    table(tuple).select(lambda r: r[17])
    Database().table(tuple[int, ...], name="any").select(lambda t: t[17])


def test_fields_are_looked_at_in_what_is_read_only() -> None:
    sales = table(Sale)

    def careful(sale: Any) -> int:
        try:
            return int(sale.prise)
        except AttributeError:
            return 0

    view = sales.select(careful).materialize()
    sales.add(Sale(1, 2.0))
    assert list(view) == [0]


def test_a_model_of_an_older_pydantic_has_its_fields_in_another_place() -> None:
    class Before:
        __pydantic_validator__ = None
        model_fields = {"total": int}

    assert members(Before) == ["total"] and compared_names(Before) == ("total",)
    assert lacks(Before, "totl")
    assert not is_record(type("Odd", (), {"model_fields": {"total": int}}))
    for kind in (Model, Loose):
        assert members(kind) == list(kind.model_fields) == list(compared_names(kind)) != []
    assert members(type(Model)) == []


def rows_made_of(table: Any) -> list[tuple[Any, str]]:
    """Return queries over rows of unknown types whose rows have a field `id`, and their class."""
    named = table.group_by(lambda n: n % 3).aggregate(id=Count())
    return [
        (named, "Row"),
        (named.materialize(), "Row"),
        (table.aggregate(id=Count(), total=Sum(lambda n: n)), "Row"),
        (table.group_by(lambda n: n).aggregate(id=Count(), as_=Keyed), "Keyed"),
        *((table.select(lambda n, kind=kind: kind(id=n)), kind.__name__) for kind in IDS),
    ]


class Keyed(NamedTuple):
    key: int
    id: int


class IdTuple(NamedTuple):
    id: int


@dataclass(frozen=True)
class IdData:
    id: int


@attrs.frozen
class IdAttrs:
    id: int


class IdStruct(msgspec.Struct, frozen=True):
    id: int


class IdModel(pydantic.BaseModel, frozen=True):
    id: int


IDS: list[Any] = [IdTuple, IdData, IdAttrs, IdStruct, IdModel]


@pytest.mark.parametrize("which", range(9))
def test_of_rows_that_a_query_makes_it_is_known_what_they_have(which: int) -> None:
    query, name = rows_made_of(Database().table(int))[which]
    assert query.where(lambda r: r.id > 0).materialize() == []
    with pytest.raises(PlanError, match=f"^{name} has no field 'ids'; did you mean 'id'"):
        query.where(lambda r: r.ids > 0)
    with pytest.raises(PlanError, match=f"^{name} has no field 'ids'; did you mean 'id'"):
        query.order_by(lambda r: r.ids)


def test_annotations_are_evaluated_once_they_can_be() -> None:
    module: dict[str, Any] = {"__name__": __name__, "dataclass": dataclass}
    exec("@dataclass(frozen=True)\nclass Late:\n    of: 'Later'\n", module)
    kind = module["Late"]
    kind.__module__ = "late_annotations"
    sys.modules["late_annotations"] = types.ModuleType("late_annotations")
    try:
        assert hints(kind) == {}
        sys.modules["late_annotations"].Later = int  # type: ignore[attr-defined]
        assert hints(kind) == {"of": int}
        assert hints(kind) is hints(kind)
    finally:
        del sys.modules["late_annotations"]
