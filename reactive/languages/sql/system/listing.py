"""The objects of a database at one moment, with the numbers that system tables give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from optimizer.record import record
from reactive.languages.sql.statements.table_definition import DefinitionTree
from reactive.languages.sql.system.postgres_types import TYPES, type_of
from reactive.languages.sql.system.relations import (
    SCHEMAS,
    ListedConstraint,
    NamedRelation,
    constraints,
    definition_of,
    relations,
)
from reactive.languages.sql.terms.scope import Scope

OWN_SCHEMAS = {"pg_catalog": 11, "pg_toast": 99, "information_schema": 13207}
"""Numbers of schemas of the system."""
USUAL = 2200
"""The number of the schema `public`."""
FIRST = 16384
"""The first number of an object that is no part of the system."""


class SystemState:
    """The numbers of objects, and the objects that were listed for the last text."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, ...], int] = {}
        """Numbers by the kinds and names of objects."""
        self.last: tuple[set[str], Listing] | None = None
        """The names that a text has looked for, by identity, and the listing for the text."""


def _state(around: Scope) -> SystemState:
    """Return the state of a database."""
    catalog = around.environment.catalog
    if catalog.system is None:
        catalog.system = SystemState()
    found: SystemState = catalog.system
    return found


def number_of(around: Scope, *key: str) -> int:
    """Return the number of an object, by its kind and names."""
    known = _state(around).numbers
    return known.setdefault(key, FIRST + len(known))


def schema_number(schema: str, around: Scope) -> int:
    """Return the number of a schema."""
    if schema.casefold() == SCHEMAS[around.dialect.name][1]:
        return USUAL
    return OWN_SCHEMAS.get(schema) or number_of(around, "schema", schema.casefold())


def relation_number(name: str, around: Scope) -> int:
    """Return the number of a table or view by its name in the database."""
    return number_of(around, "relation", name.casefold())


@record
class ListedIndex:
    """An index: of a key, of a UNIQUE constraint, or declared by CREATE INDEX."""

    name: str
    relation: NamedRelation
    columns: tuple[str, ...]
    """The names of columns, or texts of expressions."""
    is_unique: bool
    is_primary: bool
    predicate: str | None = None

    def number(self, around: Scope) -> int:
        """Return the number of the index."""
        return number_of(around, "index", self.relation.schema.casefold(), self.name.casefold())

    def places(self) -> tuple[int, ...]:
        """Return the numbers of the columns; 0 for an expression."""
        names = [name.casefold() for name, _, _ in self.relation.columns]
        return tuple(
            names.index(each.casefold()) + 1 if each.casefold() in names else 0
            for each in self.columns
        )

    def definition(self, dialect: str = "postgres", on: str = "") -> str:
        """Return the statement that would make the index; `on` is a name of the table."""
        unique = "UNIQUE " if self.is_unique else ""
        if not on:
            on = quoted(self.relation.inside)
            if dialect == "postgres" or self.relation.inside != self.relation.name:
                on = f"{quoted(self.relation.schema)}.{on}"
        columns = ", ".join(
            quoted(each) if place else f"({each})"
            for each, place in zip(self.columns, self.places(), strict=True)
        )
        where = f" WHERE ({self.predicate})" if self.predicate else ""
        using = " USING btree " if dialect == "postgres" else ""
        return f"CREATE {unique}INDEX {quoted(self.name)} ON {on}{using}({columns}){where}"


class Listing:
    """The objects of a database at one moment."""

    def __init__(self, around: Scope) -> None:
        self.around = around
        self.relations = {each.name: each for each in relations(around)}
        self._trees: dict[str, DefinitionTree | None] = {}
        self.constraints = list(constraints(around, self.tree))
        self.indexes = list(self._indexes())

    def tree(self, name: str) -> DefinitionTree | None:
        """Return the trees of a table that SQL made, and of its indexes; None of others."""
        folded = name.casefold()
        if folded not in self._trees:
            self._trees[folded] = definition_of(name, self.around)
        return self._trees[folded]

    def _indexes(self) -> Iterator[ListedIndex]:
        """Yield the indexes of constraints, and those that are declared."""
        for each in self.constraints:
            relation = self.relations.get(each.table)
            if each.kind in ("PRIMARY KEY", "UNIQUE") and relation is not None:
                is_primary = each.kind == "PRIMARY KEY"
                yield ListedIndex(each.name, relation, each.columns, True, is_primary)
        for name, relation in self.relations.items():
            tree = self.tree(name)
            for statement in () if tree is None else tree.indexes.values():
                named = statement.this
                parameters = named.args.get("params")
                where = parameters.args.get("where") if parameters is not None else None
                listed = [] if parameters is None else parameters.args.get("columns") or []
                yield ListedIndex(
                    named.name,
                    relation,
                    tuple(self._text(_without_order(part)) for part in listed),
                    bool(statement.args.get("unique")),
                    False,
                    None if where is None else self._text(where.this),
                )

    def _text(self, node: Any) -> str:
        """Return the name of a column, or the text of an expression."""
        if isinstance(node, exp.Column):
            return str(node.name)
        return str(node.sql(dialect=self.around.dialect.name))

    def index_of(self, constraint: ListedConstraint) -> ListedIndex | None:
        """Return the index that a constraint has, or uses in the table that it references."""
        if constraint.kind == "CHECK":
            return None
        table = constraint.target if constraint.kind == "FOREIGN KEY" else constraint.table
        columns = (
            constraint.target_columns if constraint.kind == "FOREIGN KEY" else constraint.columns
        )
        of = self.find(table)
        folded = [each.casefold() for each in columns]
        for index in self.indexes:
            same = [each.casefold() for each in index.columns] == folded
            if of is not None and index.relation.name == of.name and index.is_unique and same:
                return index
        return None

    def find(self, name: str | None) -> NamedRelation | None:
        """Return a table or view by its name in the database, in any case."""
        folded = (name or "").casefold()
        return next((r for n, r in self.relations.items() if n.casefold() == folded), None)

    def places(self, relation: NamedRelation, names: tuple[str, ...]) -> tuple[int, ...]:
        """Return the numbers of columns."""
        own = [name.casefold() for name, _, _ in relation.columns]
        return tuple(own.index(n.casefold()) + 1 for n in names if n.casefold() in own)


def _without_order(part: Any) -> Any:
    return part.this if isinstance(part, exp.Ordered) else part


def quoted(name: str) -> str:
    """Return a name as Postgres shows it."""
    plain = name.isidentifier() and name.isascii() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


def column_type(
    relation: NamedRelation, name: str, listing: Listing
) -> tuple[int, int, str | None, Any]:
    """Return the type of a column, its modifier, its default, and its node in CREATE TABLE."""
    around = listing.around
    catalog = around.environment.catalog
    kind = next(kind for own, kind, _ in relation.columns if own == name)
    table, tree = catalog.table(relation.name), listing.tree(relation.name)
    if table is None or tree is None:
        return (*type_of(kind), None, None)
    node = next((each for each in tree.columns() if each.name.casefold() == name.casefold()), None)
    declared = getattr(node, "kind", None)
    word = "" if declared is None else str(getattr(declared.this, "value", declared.this))
    length = catalog.lengths.get(table.plan.number, {}).get(name)
    oid, modifier = type_of(kind, length, word)
    return oid, modifier, default_of(node, oid, around), node


def default_of(node: Any, oid: int, around: Scope) -> str | None:
    """Return the text of the default of a column, a text with its type as Postgres has it."""
    found = None if node is None else node.find(exp.DefaultColumnConstraint)
    if found is None:
        return None
    text = str(found.this.sql(dialect=around.dialect.name))
    is_text = isinstance(found.this, exp.Literal) and found.this.is_string
    is_text = is_text and around.dialect.name == "postgres"
    return f"{text}::{TYPES[oid].shown}" if is_text and oid in TYPES else text


def listing_of(around: Scope) -> Listing:
    """Return the objects of the database, listed once for the text that is read."""
    state, key = _state(around), around.environment.from_catalog
    last = state.last
    if last is None or last[0] is not key:
        state.last = last = (key, Listing(around))
    return last[1]
