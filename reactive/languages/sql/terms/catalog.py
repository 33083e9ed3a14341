"""What names in FROM stand for: tables and views of the database, SQL views, WITH, and relations
that were given as parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from optimizer import plan
from optimizer.expr import Parameter, all_parameters
from optimizer.plans.properties import shapes
from optimizer.record import record
from reactive.api.relation import AnyRelation, Relation
from reactive.languages.sql.terms.schema import Column, Schema, schema_of_shape, schema_of_type
from reactive.languages.sql.terms.types import ANY, with_affinity
from reactive.languages.sql.terms.values import Value


@record
class Named:
    """A plan, and its columns as values of its bindings. `views` are to be held by who reads it."""

    node: plan.Node
    columns: tuple[tuple[str, Value], ...]
    bindings: int = 1
    views: tuple[Any, ...] = field(default=(), compare=False)


def named_rows(node: plan.Node, schema: Schema, views: tuple[Any, ...] = ()) -> Named:
    """A plan of rows that have some columns."""
    values = schema.values(Parameter(0))
    return Named(node, tuple(zip(schema.names, values, strict=True)), 1, views)


class Catalog:
    """The names of a database. SQL views are kept here, each as what was made of its text."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.views: dict[str, Named] = {}
        """By their folded names."""
        self.kept: dict[str, Any] = {}
        """Views that SQL made, and that nobody else needs to hold."""
        self.schemas: dict[int, Schema] = {}
        """What was declared of tables, by their numbers."""
        self.defaults: dict[int, dict[str, Any]] = {}
        """Values of columns that are not given, of such tables."""
        self.lengths: dict[int, dict[str, int]] = {}
        """The greatest lengths of texts of columns, by the numbers of tables."""
        self.known_keys: Any = None
        """The greatest keys of tables whose rows statements number."""

    def forget(self, number: int) -> None:
        """Forget what was declared of a table that was dropped."""
        for declared in (self.schemas, self.defaults, self.lengths):
            declared.pop(number, None)

    def find(self, name: str) -> Named | None:
        """What has a name; upper and lower case are the same if no other has the very name."""
        folded = name.casefold()
        if folded in self.views:
            return self.views[folded]
        for table in self._named(self.engine.tables.values(), name):
            return named_rows(table.plan, self.schema_of(table))
        for view in self._named(self.engine.live_views(), name):
            return named(view)
        return None

    def schema_of(self, table: Any) -> Schema:
        """The columns of a table."""
        declared = self.schemas.get(table.plan.number)
        if declared is not None:
            return declared
        found = schema_of_type(table.row_type)
        if self.engine.dialect != "sqlite":
            return found
        return Schema(tuple(replace(c, type=with_affinity(c.type)) for c in found.columns))

    def table(self, name: str) -> Any:
        """The table of a name, or None."""
        return next(self._named(self.engine.tables.values(), name), None)

    def names(self) -> list[str]:
        """All names, for messages."""
        views = [view.name for view in self.engine.live_views() if view.name is not None]
        return [*(t.name for t in self.engine.tables.values()), *self.views, *views]

    @staticmethod
    def _named(of: Any, name: str) -> Iterator[Any]:
        every = [each for each in of if (each.name or "").casefold() == name.casefold()]
        yield from sorted(every, key=lambda each: each.name != name)


class Environment:
    """The names that a query can use: those of WITH around it, and behind them the catalog's."""

    def __init__(self, catalog: Catalog, given: Mapping[str, Named]) -> None:
        self.catalog = catalog
        self._given = {name.casefold(): named for name, named in given.items()}
        self.views: list[Any] = []
        """The views that were found, which the query holds."""

    def find(self, name: str) -> Named | None:
        found = self._given.get(name.casefold()) or self.catalog.find(name)
        if found is not None:
            self.views.extend(found.views)
        return found

    def with_names(self, given: Mapping[str, Named]) -> Environment:
        """The same with further names, which hide others."""
        made = Environment(self.catalog, self._given | dict(given))
        made.views = self.views
        return made

    @property
    def engine(self) -> Any:
        return self.catalog.engine

    def names(self) -> list[str]:
        return [*self._given, *self.catalog.names()]


def named(relation: AnyRelation) -> Named:
    """A relation of the API as a source: its fields, or one column for each of its bindings."""
    node, of = relation.plan, shapes(relation.plan)
    views = relation._kept_views()
    known = getattr(relation, "schema", None)
    if isinstance(known, Schema):
        return named_rows(node, known, views)
    if len(of) == 1:
        schema = schema_of_shape(of[0]) or Schema((Column("value", ANY, True, None),))
        return named_rows(node, schema, views)
    columns = (
        (f"column{place}", Value(each, ANY, (each,)))
        for place, each in enumerate(all_parameters(len(of)))
    )
    return Named(node, tuple(columns), len(of), views)


def is_relation(value: Any) -> bool:
    """Whether a parameter is a source and no constant."""
    return isinstance(value, Relation)
