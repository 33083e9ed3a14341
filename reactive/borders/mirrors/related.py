"""Relationships of mapped classes as joins of their tables.

    many to one, one to many      order.customer_id == customer.id
    many to many                  post.id == post_tags.post_id,  post_tags.tag_id == tag.id

Needs: a relationship by foreign keys alone: its condition is that columns are equal, all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sqlalchemy import Column, Table
from sqlalchemy.orm import Mapper, RelationshipProperty
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BinaryExpression, BooleanClauseList

from optimizer.errors import PlanError
from reactive.borders.mirrors.records import field_of

Pairs = Sequence[tuple[Any, Any]]
"""Columns that are equal."""
Names = tuple[tuple[str, ...], tuple[str, ...]]
"""Fields of the left, and those of the right that they are equal to."""


@dataclass(frozen=True, slots=True)
class Path:
    """How a relationship leads from a class to another one.

    Parameters
    ----------
    name: of the relationship.
    source, target: the classes.
    near: the fields by which the source is joined, with the target or with `through`.
    through, far: of many to many, the table between, and the fields by which it is joined with the
        target.
    """

    name: str
    source: type
    target: type
    near: Names
    through: Table | None = None
    far: Names | None = None


def path_of(attribute: Any) -> Path:
    """The path of a relationship, such as `Order.customer`.

    Raises
    ------
    PlanError: it is none, or more than foreign keys.
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
    if not isinstance(through, Table):
        near = _names(source, target, pairs or ())
        return Path(prop.key, source.class_, target.class_, near)
    near = _names(source, None, pairs)
    far = _names(None, target, [(b, a) for a, b in prop.secondary_synchronize_pairs or ()])
    return Path(prop.key, source.class_, target.class_, near, through, far)


def secondaries(mappers: Iterable[Mapper[Any]]) -> list[Table]:
    """The tables between classes that are related many to many."""
    every = list(mappers)
    found = [
        prop.secondary
        for mapper in every
        for prop in mapper.relationships
        if isinstance(prop.secondary, Table) and any(prop.mapper is each for each in every)
    ]
    return list(dict.fromkeys(found))


def joined(path: Path, table_of: Callable[[Any], Any], *, outer: bool) -> Any:
    """The relation of pairs of a source row and a target row.

    Parameters
    ----------
    table_of: the table of a class, or of a table.
    outer: also each source row that leads nowhere, with None.
    """
    source, target = table_of(path.source), table_of(path.target)
    join = "left_join" if outer else "join"
    if path.through is None or path.far is None:
        return getattr(source, join)(target, **_keys(path.near))
    between = table_of(path.through)
    if not outer:
        first = source.join(between, **_keys(path.near))
        whole = first.join(target, **_keys(path.far, left=1))
        return whole.bind(lambda row, _, other: row, lambda row, _, other: other)
    pairs = between.join(target, **_keys(path.far)).select(lambda link, other: (link, other))
    left, right = path.near
    whole = source.left_join(
        pairs, left_key=_getter(left), right_key=lambda pair: _getter(right)(pair[0])
    )
    return whole.bind(lambda row, _: row, lambda row, pair: None if pair is None else pair[1])


def nested(path: Path, table_of: Callable[[Any], Any]) -> Any:
    """Each source row with the bag of rows that it leads to."""
    source, target = table_of(path.source), table_of(path.target)
    own, other = map(_getter, path.near)
    if path.through is None or path.far is None:
        return source.nest(**{path.name: lambda row: target.where(lambda o: other(o) == own(row))})
    pairs = table_of(path.through).join(target, **_keys(path.far))
    inside = pairs.select(lambda link, row: (link, row))
    return source.nest(
        **{
            path.name: lambda row: inside.where(lambda pair: other(pair[0]) == own(row)).select(
                lambda pair: pair[1]
            )
        }
    )


def _keys(names: Names, left: int = 0) -> dict[str, Any]:
    """The keys of a join; those of the left are of the binding at a place."""
    near, far = map(_getter, names)
    if left == 0:
        return {"left_key": near, "right_key": far}
    return {"left_key": lambda _, row: near(row), "right_key": far}


def _getter(names: tuple[str, ...]) -> Callable[[Any], Any]:
    return attrgetter(*names)


def _names(source: Mapper[Any] | None, target: Mapper[Any] | None, pairs: Pairs) -> Names:
    left = tuple([_name(source, column) for column, _ in pairs])
    return left, tuple([_name(target, column) for _, column in pairs])


def _name(mapper: Mapper[Any] | None, column: Column[Any]) -> str:
    """The field of a column: as the class calls it, or the table."""
    return field_of(column) if mapper is None else mapper.get_property_by_column(column).key


def _is_of_equations(condition: Any) -> bool:
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
