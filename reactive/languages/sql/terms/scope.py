"""Names of a SQL text as values: columns of the tables of FROM, of queries around, parameters.

    from orders o left join customers c      o.total   Value(b0.total, nulls=(b0.total,))
                                             c.name    Value(b1.name, nulls=(b1, b1.name))
    exists (select 1 from x where x.id = o.id)         o.id is Outer(0) inside, b0.id an argument

What a query has computed of a node (group keys, aggregates, windows) is known by the node itself,
not by its text. Expressions ask each other through the scope: a value of a predicate, a predicate
of values, either of a sub-query.

Fields of structs and of objects: `(a.home).city`, in DuckDB also `home.city` and `a.home.city`.

The parser reads dots between names as a column with its table, schema and catalog. Where there is
no such column, DuckDB takes the first name or two for a column and the rest for fields of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import field, replace
from keyword import iskeyword
from operator import is_
from typing import Any, Self, TypeVar

from sqlglot import exp

from optimizer.callables.opaque import FROM_TEXT, Opaque
from optimizer.callables.source import Place
from optimizer.errors import PlanError, ReactiveError
from optimizer.expr import Expr, Lifted, Outer, Slot, SlotValue, Subquery, substitute
from optimizer.kinds.instants import with_instants
from optimizer.record import record
from reactive.api import clock as clocks
from reactive.api.columns import is_parameter
from reactive.engine.codegen.loop_expressions import Shallow
from reactive.languages.sql.terms.common_types import SCHEMA, Dialect, is_bare, strange_schema
from reactive.languages.sql.terms.errors import (
    line_and_column,
    nearest,
    refuse_unread,
    source_of,
    sql_error,
    start_of,
    take,
)
from reactive.languages.sql.terms.fields import columns_with_fields, field_of, row_of_columns
from reactive.languages.sql.terms.folding import with_folded_constants
from reactive.languages.sql.terms.types import NULL, fields_of, type_of_value
from reactive.languages.sql.terms.values import (
    TypedValue,
    as_optional,
    literal_value,
    plan_of_relation,
)

T = TypeVar("T")
OUT_OF_RANGE = "is out of the range of"
"""Part of the message that SQL functions raise for a value beyond the range of its type."""


@record
class ScopeSource:
    """A source of FROM: an alias and its columns by name, in order."""

    name: str
    columns: tuple[tuple[str, TypedValue], ...]

    def columns_named(self, column: str) -> list[TypedValue]:
        """Return the columns that have a name, in upper or lower case."""
        folded = column.casefold()
        return [value for name, value in self.columns if name.casefold() == folded]


class OpenValues:
    """Values that the next execution of a statement may replace.

    They are found by the names of parameters, and by the identities of the nodes of literals.
    """

    def __init__(self) -> None:
        self.held: dict[str | int, SlotValue] = {}
        self.found: set[str | int] = set()
        """The names and nodes that were looked for."""

    def find(self, key: str | int) -> SlotValue | None:
        """Return the value of a name or node, and record that it was found; None of another."""
        held = self.held.get(key)
        if held is not None:
            self.found.add(key)
        return held


class Correlation:
    """The values that a subquery reads from the outer row: `arguments[i]` is `Outer(i)` inside."""

    def __init__(self, outer: Scope) -> None:
        self.outer = outer
        self.arguments: list[Expr] = []

    def read_outer(self, value: TypedValue) -> TypedValue:
        """Return a value of the outer row as the subquery reads it; record it as an argument."""
        argument = as_optional(value)
        if argument not in self.arguments:
            self.arguments.append(argument)
        inside = Outer(self.arguments.index(argument))
        return TypedValue(inside, value.type, (inside,) if value.nullable else ())


class Scope:
    """The meaning of names for the callables of a relation with `bindings` bindings."""

    def __init__(
        self,
        text: SqlText,
        sources: Sequence[ScopeSource] = (),
        bindings: int = 0,
        correlation: Correlation | None = None,
        environment: Any = None,
    ) -> None:
        self._text = text
        self.collated = text.collated
        """The nodes of DuckDB whose values have a collation, by identity, with the values."""
        self.sources = list(sources)
        self.bindings = bindings
        self.correlation = correlation
        self.environment = environment
        """The queries that WITH names; of `query`."""
        self.merged: dict[str, TypedValue] = {}
        """Columns that USING made one of two, by their folded names."""
        self.aliases: dict[str, exp.Expr] = {}
        """The names of SELECT, folded; columns take precedence."""
        self.values: dict[int, TypedValue] = {}
        """The computed values of nodes, by identity."""
        self.schema: Any = None
        """The columns of the rows, if they are rows that are put together already."""
        self.at: tuple[exp.Expr, ...] = ()
        """The nodes being translated, for messages."""
        self._asked: set[str] = set()
        self._found: dict[tuple[str, int], tuple[exp.Expr, Any]] = {}
        """The results for nodes since the outermost translation began."""
        self._is_reading = False

    # What expressions ask.

    @property
    def dialect(self) -> Dialect:
        return self._text.dialect

    @property
    def text(self) -> str:
        return self._text.sql

    @property
    def constants(self) -> Mapping[str, Any]:
        """The values of the parameters that are given for the text."""
        return self._text.parameters

    def of_text(self, text: str, constants: Mapping[str, Any]) -> Scope:
        """Return a scope around another statement of the same database."""
        read = replace(self._text, sql=text, parameters=constants, open_values=OpenValues())
        return Scope(read, (), 0, None, self.environment)

    def value(self, node: exp.Expr) -> TypedValue:
        """Return the value of a node."""
        take(node)
        value = self.known_value(node) or self._once("value", self._value, node)
        if value.type.collation is not None and self.dialect.name == "duckdb":
            self.collated[id(node)] = (node, value)
        return value

    def _value(self, node: exp.Expr) -> TypedValue:
        """Return the value of a node, with deep expressions made shallow."""
        value = self._translate_node(self._text.language.value, node)
        expr, nulls = self._text.shallow(value.expr), tuple(map(self._text.shallow, value.nulls))
        if expr is value.expr and all(map(is_, nulls, value.nulls)):
            return value
        return replace(value, expr=expr, nulls=nulls)

    def true(self, node: exp.Expr) -> Expr:
        """Return the test that a condition is TRUE, and neither FALSE nor NULL."""
        take(node)
        return self._once("true", self._true, node)

    def _true(self, node: exp.Expr) -> Expr:
        return self._text.shallow(self._translate_node(self._text.language.true, node))

    def false(self, node: exp.Expr) -> Expr:
        """Return the test that a condition is FALSE."""
        take(node)
        return self._once("false", self._false, node)

    def _false(self, node: exp.Expr) -> Expr:
        return self._text.shallow(self._translate_node(self._text.language.false, node))

    def _once(self, what: str, read: Callable[[exp.Expr], T], node: exp.Expr) -> T:
        """Read a node once within the outermost reading, however often its parents ask for it.

        A function may ask for the type of its argument first and be made of it then; asked twice at
        each level, nested functions would cost 2 to the power of their depth.
        """
        key = (what, id(node))
        if key in self._found:
            found: T = self._found[key][1]
            return found
        is_outermost, self._is_reading = not self._is_reading, True
        try:
            found = read(node)
            self._found[key] = (node, found)  # a node that lives keeps its identity
            return found
        finally:
            if is_outermost:
                self._is_reading = False
                self._found.clear()

    def _translate_node(self, read: Callable[[Any, Scope], T], node: exp.Expr) -> T:
        """Read a node; an exception of a node with unexpected parts is raised as a `PlanError`."""
        try:
            return read(node, self)
        except (ReactiveError, RecursionError):
            raise
        except Exception as error:
            raise self.misread(node, error) from error

    def misread(self, node: exp.Expr | None, error: Exception) -> PlanError:
        """Return the error about a node without expected parts, or with a constant out of range."""
        if OUT_OF_RANGE in str(error):
            return self.error(node, str(error))
        if isinstance(node, exp.Anonymous | exp.Func) and not isinstance(node, exp.Connector):
            name = str(node.this if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
            return self.error(node, f"{name}() does not take these arguments")
        return self.error(node, "this part is not complete, or has parts that it cannot have")

    def known_value(self, node: exp.Expr) -> TypedValue | None:
        """Return the value of a node that was computed or set before; None for others."""
        return self.values.get(id(node))

    def subquery(self, node: exp.Expr, *, as_row: bool = False) -> TypedValue:
        """Return the value of a query in the place of a value; a struct if it is `as_row`."""
        return self._text.language.subquery(node, self, as_row=as_row)

    def exists(self, node: exp.Expr) -> Expr:
        """Return the test that a query has a row."""
        return self._text.language.exists(node, self)

    def matches(self, node: exp.Expr, *, negated: bool) -> Expr:
        """Return the test that IN, or a comparison with ANY or ALL, is TRUE, or is FALSE."""
        return self._text.language.matches(node, self, negated=negated)

    def parameter(self, node: exp.Expr) -> TypedValue:
        """Return the present value of `:name` as a constant; refuse a name without one."""
        name = node.name
        if name not in self._text.parameters:
            given = tuple(self._text.parameters)
            is_name = name.isidentifier()
            remedy = f"give it: db.sql(..., {name}=...)" if is_name else "name it: `:name`"
            raise self.error(node, f"there is no parameter {name!r}{nearest(name, given)}", remedy)
        held = self._text.open_values.find(name)
        if held is not None:
            return TypedValue(Slot(held, name), type_of_value(held.value))
        if self.moving_parameter(node) is not None:
            return self.value_of(self.moving_parameter(node), node)
        value = with_instants(self._text.parameters[name])
        return literal_value(tuple(value) if isinstance(value, list) else value, name)

    def moving_parameter(self, node: exp.Expr | None) -> Any:
        """Return the parameter of the database that `:name` stands for; None for other nodes."""
        if not isinstance(node, exp.Placeholder | exp.Parameter):
            return None
        found = self._text.parameters.get(node.name)
        return found if is_parameter(found) else None

    def value_of(self, parameter: Any, node: exp.Expr) -> TypedValue:
        """Return the value of a parameter of the database, which may change."""
        named = plan_of_relation(parameter)
        if len(named.columns) != 1:
            raise self.error(
                node,
                f"the value of {node.name!r} has several columns",
                f"write from {node.name}, and name its columns",
            )
        value = named.columns[0][1]
        expr, *nulls = (
            substitute(each, (Subquery("value", named.node),))
            for each in (value.expr, *value.nulls)
        )
        return replace(value, expr=expr, nulls=tuple(nulls))

    def clock(self, node: exp.Expr) -> tuple[TypedValue, bool]:
        """Return the moment of the clock, and True if it is an instant, with a time zone.

        Raises
        ------
        PlanError: the clock was not set, or the text is a statement, whose rows stay.
        """
        if not self._text.is_live:
            raise self.error(
                node,
                f"{node.sql()} is read by queries only, whose rows follow the clock",
                "give it: db.execute('... :now ...', now=db.clock.now)",
            )
        try:
            parameter = clocks.parameter_of(clocks.clock_of(self.environment.catalog.engine))
        except PlanError as error:
            raise self.error(node, *str(error).split("\n  ")) from None
        return self.value_of(parameter, node), parameter().tzinfo is not None

    def open_value(self, node: exp.Expr) -> SlotValue | None:
        """Return the open value that a literal stands for; None if it stands for itself."""
        return self._text.open_values.find(id(node))

    def slice_of(self, place: exp.Expr) -> exp.Expr:
        """Return a place of `a[...]`; of `a[:b]` the slice up to a column, if `b` is no parameter.

        The parser takes `:b` for a parameter wherever it stands.
        """
        if not isinstance(place, exp.Placeholder) or not place.name.isidentifier():
            return place
        if place.name in self._text.parameters:
            return place
        name = exp.to_identifier(place.name)
        name.update_positions(place)
        return exp.Slice(expression=exp.Column(this=name))

    def error(self, node: exp.Expr | None, message: str, remedy: str = "") -> PlanError:
        return self._text.error(node, message, remedy)

    def replace_names(
        self, names: Sequence[str], own: Sequence[str], node: exp.Expr
    ) -> tuple[str, ...]:
        """Return the names of columns, where the first ones are given others.

        Raises
        ------
        PlanError: there are more names than columns.
        """
        if len(names) > len(own):
            raise self.error(node, f"{len(names)} names are given to {len(own)} columns")
        return (*names, *own[len(names) :])

    def check_schema(self, node: exp.Expr) -> None:
        """Check that the schema of a table or column is there, if it names one."""
        strange = strange_schema(node)
        part = node.meta.get(SCHEMA) if strange is None else strange
        if part is not None:
            from reactive.languages.sql.text.schemas import check_known

            check_known(part, self, is_strange=strange is not None)

    def refuse_unread(self, tree: exp.Expr) -> None:
        """Check, before a statement takes effect, that everything that it says was read."""
        refuse_unread(tree, self._text.sql)

    def function(self, expr: Expr, *nodes: exp.Expr) -> Lifted:
        """Return a callable of the bindings, with the place of `nodes` or of the current nodes."""
        origin = self._text.origin(nodes or self.at, self.bindings)
        return Lifted(with_folded_constants(expr), self.names, origin, self.bindings)

    def reading(self, *nodes: exp.Expr) -> Self:
        """Set the nodes being translated, and return the scope."""
        self.at = nodes
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bindings, for messages."""
        named = [source.name for source in self.sources]
        fits = len(named) == self.bindings and all(
            n.isidentifier() and not iskeyword(n) for n in named
        )
        is_usable = fits and len(set(named)) == len(named)
        return tuple(named if is_usable else [f"row{n or ''}" for n in range(self.bindings)])

    # Columns.

    def column(self, node: exp.Expr) -> TypedValue:
        """Return the value of a column, of this query or an outer one.

        Raises
        ------
        PlanError: no column has the name, or several do.
        """
        found = self.find_column(node)
        if found is None:
            raise self._missing(node)
        return found

    def find_column(self, node: Any) -> TypedValue | None:
        """Return the value of a column as `column` does; None if no column has the name.

        The name of a table, or its alias, is its whole row where no column has the name.
        """
        found = self._find(lambda scope: scope.find_own_column(node))
        return self._find(lambda scope: scope.whole_row(node)) if found is None else found

    def _find(self, find: Callable[[Scope], TypedValue | None]) -> TypedValue | None:
        """Return what `find` finds here, or else in the queries around."""
        if (own := find(self)) is not None:
            return own
        around = self.correlation
        value = None if around is None else around.outer._find(find)
        if value is None or around is None or value.type is NULL:
            return value
        return around.read_outer(value)

    def find_own_column(self, node: Any) -> TypedValue | None:
        """Return the value of a column of these sources, or of an alias of SELECT; else None."""
        found = self.of_sources(node)
        return self._alias(node.name) if found is None and is_bare(node) else found

    def whole_row(self, node: Any) -> TypedValue | None:
        """Return the row of the source that a bare name stands for; None if there is none."""
        folded = node.name.casefold()
        named = [each for each in self.sources if each.name.casefold() == folded]
        if len(named) != 1 or not is_bare(node) or self.dialect.name == "sqlite":
            return None
        return row_of_columns(named[0].columns, of_postgres=self.dialect.name == "postgres")

    def of_sources(self, node: Any) -> TypedValue | None:
        """Return a column of the given sources, or a field of one (`home.city`); else None."""
        found = self.column_of_sources(node)
        return self.field_of_sources(node) if found is None else found

    def field_of_sources(self, node: Any) -> TypedValue | None:
        """Return the value of names with dots if the last ones are fields, else None."""
        if not node.table or not self.dialect.dotted_fields:
            return None
        for column, fields in columns_with_fields(node):
            value = self.of_sources(column)
            if value is not None and fields_of(value.type):
                for name in fields:
                    value = self.field(value, name, node)
                return value
        return None

    def field(self, value: TypedValue, name: str, node: exp.Expr) -> TypedValue:
        """Return a field of a struct or object.

        Raises
        ------
        PlanError: it has no such field.
        """
        found = field_of(value, name, folded=self.dialect.dotted_fields)
        if found is None:
            near = nearest(name, tuple(fields_of(value.type)))
            raise self.error(node, f"there is no field {name!r}{near}")
        return found

    def column_of_sources(self, node: Any) -> TypedValue | None:
        """Return a column of the given sources; None if there is none. Refuse an ambiguous name."""
        name, table = node.name, node.table
        if strange_schema(node) is not None:
            return None
        if not table and name.casefold() in self.merged:
            return self.merged[name.casefold()]
        asked = [s for s in self.sources if not table or s.name.casefold() == table.casefold()]
        values = [value for source in asked for value in source.columns_named(name)]
        if len(values) > 1:
            having = [s.name for s in asked if s.columns_named(name)]
            raise self.error(
                node,
                f"column {name!r} is ambiguous",
                f"say which: {', '.join(f'{source}.{name}' for source in having)}"
                if len(set(having)) == len(having)
                else "give each table a name of its own: FROM t AS a, t AS b",
            )
        return values[0] if values else None

    def _alias(self, name: str) -> TypedValue | None:
        """Return the value of an alias of SELECT; None if unknown, or being read already."""
        folded = name.casefold()
        if folded not in self.aliases or folded in self._asked:
            return None
        self._asked.add(folded)
        try:
            return self.value(self.aliases[folded])
        finally:
            self._asked.discard(folded)

    def _missing(self, node: Any) -> PlanError:
        """Return the error of an unknown table or column, with the nearest names."""
        self.check_schema(node)
        every = list(self._all_sources())
        table, name = node.table, node.name
        if table and all(s.name.casefold() != table.casefold() for s in every):
            names = [source.name for source in every]
            return self.error(
                node,
                f"there is no table {table!r} here{nearest(table, names)}",
                f"FROM has {', '.join(names) or 'no tables'}",
            )
        asked = [s for s in every if not table or s.name.casefold() == table.casefold()]
        columns = [column for source in asked for column, _ in source.columns]
        return self.error(
            node,
            f"there is no column {node.sql()!r}{nearest(name, columns)}",
            f"there are {', '.join(dict.fromkeys(columns)) or 'no columns'}",
        )

    def _all_sources(self) -> list[ScopeSource]:
        """Return the sources of this query, then those of the queries around it."""
        around = self.correlation
        return self.sources + ([] if around is None else around.outer._all_sources())

    # Making others.

    def query(self, node: exp.Expr) -> Any:
        """Return a query with the same outer scope as this one: in its FROM, or a part of it."""
        return self._translate_node(self._text.language.query, node)

    def around(self, correlation: Correlation | None = None) -> Scope:
        """Return the scope outside a query, or around a subquery that reads this scope."""
        around = self.correlation if correlation is None else correlation
        return Scope(self._text, (), 0, around, self.environment)

    def over(self, sources: Sequence[ScopeSource], bindings: int) -> Scope:
        """Return a scope of other sources, with the same outer scope."""
        return Scope(self._text, sources, bindings, self.correlation, self.environment)

    def wider(self, count: int) -> Self:
        """Return a scope with the same names for rows with `count` bindings, the new ones last."""
        made = copy(self)
        made.bindings, made.values = count, dict(self.values)
        made._found, made._is_reading = {}, False
        return made


# A SQL text that is read: its dialect, its parameters, and where its nodes stand in it.


@record
class Language:
    """The callables that make expressions of nodes; each takes a node and a scope."""

    value: Callable[[Any, Scope], TypedValue]
    true: Callable[[Any, Scope], Expr]
    false: Callable[[Any, Scope], Expr]
    subquery: Callable[..., TypedValue]
    exists: Callable[[Any, Scope], Expr]
    matches: Callable[..., Expr]
    query: Callable[[Any, Scope], Any]
    """Function from a node and its scope to a `query.Query`."""


@record
class SqlText:
    """A SQL text, its dialect, how it is read, and the parameters that were given for it."""

    sql: str
    dialect: Dialect
    language: Language
    parameters: Mapping[str, Any] = field(compare=False)
    shallow: Shallow = field(default_factory=Shallow, compare=False)
    """Cuts expressions that are deep."""
    open_values: OpenValues = field(default_factory=OpenValues, compare=False)
    collated: dict[int, tuple[exp.Expr, TypedValue]] = field(default_factory=dict, compare=False)
    is_live: bool = True
    """True for a query, whose rows change with what it reads; False for other statements."""

    def error(self, node: exp.Expr | None, message: str, remedy: str = "") -> PlanError:
        return sql_error(self.sql, node, message, remedy)

    def origin(self, nodes: Sequence[exp.Expr], parameters: int) -> tuple[Opaque, ...]:
        """Return what a callable was made of, for messages."""
        starts = [start for node in nodes if (start := start_of(node)) is not None]
        if not starts:
            return ()
        place = Place("<sql>", line_and_column(self.sql, min(starts))[0], "SQL")
        name = ", ".join(filter(None, (source_of(self.sql, node) for node in nodes)))
        return (Opaque(_unread, parameters, name, place, (), ("sql", name), FROM_TEXT),)


def _unread(*row: Any) -> Any:
    """Stands for a part of a text, which is no callable."""
    raise AssertionError(f"SQL is not called: {row!r}")
