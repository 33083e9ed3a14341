"""Values of SQL as expressions, and the tables and columns that they are read from.

Values of SQL are expressions with the conditions under which they are NULL.

    a.x           x of the row, NULL where that is None           Value(a.x, nulls=(a.x,))
    a.x + b.y     NULL where x or y is                            Value(a.x + b.y, nulls=(a.x, b.y))
    b.y           where a left join may have no row b             Value(b.y, nulls=(b, b.y))
    case ...      an expression that may be None itself           Value(e, nulls=(e,))

The translation finds the leaves that can make a value NULL; at run time the expression is evaluated
only if none of them is.

The columns of tables and queries: their names in SQL, types, and how they are read from a row.

db.table(Order, name="orders")      id int, total decimal | NULL, from the annotations
create table t (a int, ...)         a named tuple with the fields a, ...
db.table(int, name="numbers")       one column `value`, the row itself
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

from optimizer import plan
from optimizer.expr import (
    NONE,
    Attribute,
    Call,
    Conditional,
    Constant,
    Expr,
    Item,
    Operation,
    Outer,
    Parameter,
    all_parameters,
    conjunction,
    constant,
)
from optimizer.expressions.knowledge import Shape
from optimizer.kinds.kind import Places, Scalar, Struct, kind_of
from optimizer.kinds.texts import field_names as names_of_fields
from optimizer.plans.properties import shapes
from optimizer.record import record
from reactive.api.extended import row_class
from reactive.api.internal_interface import kept_views
from reactive.api.relation import AnyRelation, Relation
from reactive.engine.runtime.sql_names import quote_name
from reactive.languages.sql.runtime.intervals import Interval, interval_parts
from reactive.languages.sql.terms.session import Session
from reactive.languages.sql.terms.types import (
    ANY,
    NULL,
    SqlType,
    full_hint_of,
    has_sample,
    sample_of,
    sql_name,
    type_of_hint,
    type_of_value,
    with_affinity,
)

log = logging.getLogger("reactive")


@record
class TypedValue:
    """A typed value: `expr` where no leaf of `nulls` is None, and NULL where one is.

    Leaves are tested in their order; a later one may presuppose that earlier ones are not None.
    """

    expr: Expr
    type: SqlType
    nulls: tuple[Expr, ...] = ()

    @property
    def nullable(self) -> bool:
        return bool(self.nulls)


NULL_VALUE = TypedValue(NONE, NULL, (NONE,))


def literal_value(value: Any, name: str | None = None) -> TypedValue:
    """Return a Python value as a constant."""
    if value is None:
        return NULL_VALUE
    kind = type_of_value(value)
    if isinstance(value, Interval):
        return TypedValue(Constant(value, (Interval, *interval_parts(value)), name), kind)
    return TypedValue(constant(value, name), kind)


def callee(function: Any) -> Constant:
    """Return a function as a constant; functions that are records are equal by their fields."""
    is_record = hasattr(type(function), "__dataclass_fields__")
    return Constant(function, (type(function), function)) if is_record else constant(function)


def is_null(value: TypedValue) -> bool:
    """Return True if the value is always NULL."""
    return NONE in value.nulls


def present(*values: TypedValue) -> tuple[Expr, ...]:
    """Return tests, in order, that are all true if no value is NULL."""
    return tuple(Operation("is not", (leaf, NONE)) for leaf in leaves(*values))


def leaves(*values: TypedValue) -> tuple[Expr, ...]:
    """Return the expressions that can make one of the values NULL, each once."""
    return tuple(dict.fromkeys(leaf for value in values for leaf in value.nulls))


def as_optional(value: TypedValue) -> Expr:
    """Return the expression of a value that is None where the value is NULL."""
    if not value.nulls or value.nulls == (value.expr,):
        return value.expr
    if is_null(value):
        return NONE
    tests = present(value)
    if value.nulls[-1] == value.expr:  # it is None itself, where those before it are not
        tests = tests[:-1]
    return Conditional(conjunction(tests), value.expr, NONE)


def nullable_value(expr: Expr, kind: SqlType) -> TypedValue:
    """Return the value of an expression that is None for NULL."""
    return TypedValue(expr, kind, (expr,))


def strict(expr: Expr, kind: SqlType, *of: TypedValue) -> TypedValue:
    """Return a value that is NULL exactly if one of the values `of` is."""
    return TypedValue(expr, kind, leaves(*of))


class ArgumentError(TypeError):
    """A function of SQL does not take arguments; the message follows the name of the function."""


class ArgumentCountError(ArgumentError):
    """A function of SQL is called with more or fewer arguments than it has."""

    def __init__(self, least: int, most: int | None, count: int) -> None:
        super().__init__(count_error_text(least, most, count))


def count_error_text(least: int, most: int | None, count: int) -> str:
    """Return the reason why a function does not take a number of arguments.

    >>> count_error_text(1, 2, 3), count_error_text(1, 1, 0)
    ('takes 1 or 2 arguments, and got 3', 'takes 1 argument, and got 0')
    """
    several = range(least, least + 1 if most is None else most + 1)
    wanted = " or ".join(map(str, several)) + (" or more" if most is None else "")
    return f"takes {wanted} argument{'s' * (wanted != '1')}, and got {count}"


class ArgumentTypeError(ArgumentError):
    """A function of SQL is called with arguments of types that it does not take."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        super().__init__(f"takes no {', '.join(map(sql_name, types))}")


def check_arguments(function: Any, of: Sequence[TypedValue]) -> None:
    """Check that a Python function can be called with as many arguments, of such types.

    Raises
    ------
    ArgumentCountError, ArgumentTypeError: it cannot.
    """
    check_argument_count(function, len(of))
    known = tuple([_known_of(value) for value in of])
    if None in known or not of:
        return
    try:
        takes = _takes(function, known)
    except TypeError:  # the function has no hash
        takes = _takes.__wrapped__(function, known)
    if not takes:
        shown = [value.type for value, each in zip(of, known, strict=True) if each is value.type]
        raise ArgumentTypeError(shown or [value.type for value in of])


def _known_of(value: TypedValue) -> SqlType | str | None:
    """Return a short constant text, or the type of an argument; None if neither is known."""
    constant_text = value.expr.value if isinstance(value.expr, Constant) else None
    if isinstance(constant_text, str) and len(constant_text) < 100:
        return constant_text
    return value.type if has_sample(value.type) else None


@lru_cache(maxsize=4_000)
def _takes(function: Any, known: tuple[SqlType | str, ...]) -> bool:
    """Return True unless a function raises TypeError or AttributeError of values of the types."""
    values = [each if isinstance(each, str) else sample_of(each) for each in known]
    try:
        function(*values)
    except (TypeError, AttributeError):
        return False
    except Exception:  # these values are odd to it, but not their types
        return True
    return True


_COUNTS: WeakKeyDictionary[Any, tuple[int, int | None]] = WeakKeyDictionary()
"""The numbers of arguments that functions take, including user functions."""


def check_argument_count(function: Any, count: int) -> None:
    """Check that a Python function can be called with a number of arguments.

    Raises
    ------
    ArgumentCountError: it cannot.
    """
    least, most = _counts_of(function)
    if count < least or (most is not None and count > most):
        raise ArgumentCountError(least, most, count)


def _counts_of(function: Any) -> tuple[int, int | None]:
    """Return the least and the greatest number of arguments; None if there is no greatest."""
    try:
        known = _COUNTS.get(function)
        if known is None:
            known = _COUNTS[function] = _read_counts(function)
        return known
    except TypeError:  # no weak references to it, or no hash
        return _read_counts(function)


def _read_counts(function: Any) -> tuple[int, int | None]:
    """Return the fewest and the most arguments of a callable; None if there is no most."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not say
        return 0, None
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in by_place)
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return least, None if is_open else len(by_place)


def call_strictly(function: Any, kind: SqlType, *of: TypedValue) -> TypedValue:
    """Return a call of a function that is NULL where an argument is.

    Raises
    ------
    ArgumentCountError: the function does not take as many arguments.
    ArgumentTypeError: it does not take arguments of such types.
    """
    check_arguments(function, of)
    return strict(Call(callee(function), tuple(v.expr for v in of)), kind, *of)


def is_simple(expr: Expr) -> bool:
    """Return True if a second evaluation is cheap: the field of a row."""
    while isinstance(expr, Attribute | Item):
        expr = expr.of
    return isinstance(expr, Parameter | Outer | Constant)


def is_column(expr: Expr) -> bool:
    """Return True for a binding, or a field of one."""
    while isinstance(expr, Attribute) or (
        isinstance(expr, Item) and isinstance(expr.key, Constant)
    ):
        expr = expr.of
    return isinstance(expr, Parameter)


# What names in FROM stand for: tables and views of the database, SQL views, WITH, and relations
# that were given as parameters.


@record
class NamedPlan:
    """A plan, and its columns as values of its bindings. Its readers keep `views` alive."""

    node: plan.Node
    columns: tuple[tuple[str, TypedValue], ...]
    bindings: int = 1
    views: tuple[Any, ...] = field(default=(), compare=False)


def plan_with_columns(
    node: plan.Node, schema: BindingSchema, views: tuple[Any, ...] = ()
) -> NamedPlan:
    """Return a plan of one binding with the columns of the schema as its values."""
    values = schema.values(Parameter(0))
    return NamedPlan(node, tuple(zip(schema.names, values, strict=True)), 1, views)


class Catalog:
    """The names of a database. SQL views are stored here, each as the plan of its text."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.views: dict[str, NamedPlan] = {}
        """SQL views, by their folded names."""
        self.kept: dict[str, Any] = {}
        """Views that SQL made, kept alive by the catalog."""
        self.schemas: dict[int, BindingSchema] = {}
        """Declared schemas of tables, by their numbers."""
        self.defaults: dict[int, dict[str, Any]] = {}
        """Values of columns that are not given, of such tables."""
        self.lengths: dict[int, dict[str, int]] = {}
        """The greatest lengths of texts of columns, by the numbers of tables."""
        self.declared: dict[int, Any] = {}
        """Declarations of tables that SQL made, by their numbers."""
        self.definitions: dict[int, Any] = {}
        """The statements that define tables, by their numbers."""
        self.view_texts: dict[str, Any] = {}
        """The statements that define views, by their folded names."""
        self.stored: Any = None
        """The definitions in the file of a durable database; None of one in memory."""
        self.fillers: dict[int, Any] = {}
        """Functions of a row that return its computed columns, by the numbers of tables."""
        self.constraint_names: dict[int, str] = {}
        """The names of constraints, by the identities of their views."""
        self.uniques: dict[int, Any] = {}
        """The UNIQUE constraints, by the identities of their views."""
        self.unique_rows: dict[int, tuple[Any, Any]] = {}
        """Those views with the views that find rows by the UNIQUE columns, by identity."""
        self.is_altering = False
        """True while ALTER TABLE replaces a table, whose constraints are made again."""
        self.session = Session()
        """The session of `db.sql` and `db.execute`."""
        self.spaces: dict[str, None] = {}
        """The folded names of schemas that CREATE SCHEMA has made."""
        self.standing: dict[str, Any] = {}
        """Tables by folded names that stand in for those that ALTER TABLE replaces."""
        self.indexes: dict[str, tuple[int, list[Any]]] = {}
        """Declared indexes by their folded names: the table, and the views of a UNIQUE one."""
        self.system_table: Callable[[Any, Any], NamedPlan | None] = lambda node, around: None
        """Function from a name in FROM to the table of names that it stands for, or None."""
        self.statements: Any = None
        """Statements that were run, kept to be run again."""
        self.queries: Any = None
        """Recipes of the queries that were read."""
        self.system: Any = None
        """What system tables have listed last, and the numbers that they give."""
        self.known_keys: Any = None
        """The greatest keys of tables whose rows statements number."""

    def define(self, number: int, definition: Any) -> None:
        """Note the definition of a table, in a durable database also in the file."""
        self.definitions[number] = definition
        if self.stored is not None:
            self.stored.define_table(self.engine.tables[number], definition)

    def end_constraints(self, table: Any, views: Container[Any]) -> None:
        """End the constraints of other tables that read a table that is dropped, and say so."""
        if self.is_altering:
            return
        for number, held in self.engine.constraints.items():
            if number == table.plan.number:
                continue
            for view in [view for view in held if view in views]:
                name = self.constraint_names.pop(id(view), None)
                other = self.engine.tables[number]
                log.warning(
                    "dropping table %r ends the constraint %s of table %r",
                    *(table.name, name, other.name),
                )
                held.remove(view)
                if name is not None and number in self.definitions:
                    text = (
                        f"alter table {quote_name(other.name)} drop constraint {quote_name(name)}"
                    )
                    self.define(number, self.definitions[number].extended(text, {}))

    def forget(self, number: int) -> None:
        """Discard the declarations of a dropped table."""
        if self.stored is not None and number in self.definitions:
            self.stored.forget_table(self.declared[number].name)
        for declared in (
            self.schemas,
            self.defaults,
            self.lengths,
            self.definitions,
            self.declared,
            self.fillers,
        ):
            declared.pop(number, None)
        for name in [name for name, (of, _) in self.indexes.items() if of == number]:
            del self.indexes[name]

    def find(self, name: str) -> NamedPlan | None:
        """Return the plan of a name, exact before other case; None if there is none."""
        folded = name.casefold()
        if folded in self.views:
            return self.views[folded]
        table = self.table(name)
        if table is not None:
            return plan_with_columns(table.plan, self.schema_of(table))
        for view in self._find_named(self.engine.live_views(), name):
            return plan_of_relation(view)
        if self.stored is not None and self.stored.open("view", name):
            return self.find(name)
        return None

    def schema_of(self, table: Any) -> BindingSchema:
        """Return the columns of a table."""
        declared = self.schemas.get(table.plan.number)
        if declared is not None:
            return declared
        found = schema_of_type(table.row_type)
        if self.engine.dialect != "sqlite":
            return found
        return BindingSchema(tuple(replace(c, type=with_affinity(c.type)) for c in found.columns))

    def table(self, name: str) -> Any:
        """Return the table of a name, or None."""
        if self.standing and name.casefold() in self.standing:
            return self.standing[name.casefold()]
        found = next(self._find_named(self.engine.tables.values(), name), None)
        if found is None and self.stored is not None and self.stored.open("table", name):
            return self.table(name)
        return found

    def names(self) -> list[str]:
        """Return all names, for messages."""
        views = [view.name for view in self.engine.live_views() if view.name is not None]
        stored = [] if self.stored is None else self.stored.names()
        return [*(t.name for t in self.engine.tables.values()), *self.views, *views, *stored]

    @staticmethod
    def _find_named(of: Any, name: str) -> Iterator[Any]:
        """Yield the tables or views with a name in any case, one spelled the same first."""
        every = [each for each in of if (each.name or "").casefold() == name.casefold()]
        yield from sorted(every, key=lambda each: each.name != name)


class Environment:
    """The names for a query: those of WITH around it, then those of the catalog."""

    def __init__(
        self, catalog: Catalog, given: Mapping[str, NamedPlan], session: Session | None = None
    ) -> None:
        self.catalog, self.session = catalog, session or catalog.session
        self._given = {name.casefold(): source for name, source in given.items()}
        self.views: list[Any] = []
        """The views that were found, which the query holds."""
        self.from_catalog: set[str] = set()
        """The names that were looked for in the catalog."""
        self.returned: list[Any] | None = None
        """Gets the columns and the rows of RETURNING; None if the caller takes none."""

    def find(self, name: str) -> NamedPlan | None:
        """Return the plan of a name, and record the views that it reads; None if unknown."""
        found = self._given.get(name.casefold())
        if found is None:
            self.from_catalog.add(name)
            found = self.catalog.find(name)
        if found is not None:
            self.views.extend(found.views)
        return found

    def with_names(self, given: Mapping[str, NamedPlan]) -> Environment:
        """Return an environment with further names, which hide others."""
        made = Environment(self.catalog, self._given | dict(given), self.session)
        made.views, made.from_catalog = self.views, self.from_catalog
        return made

    @property
    def engine(self) -> Any:
        return self.catalog.engine

    def names(self) -> list[str]:
        return [*self._given, *self.catalog.names()]


def plan_of_relation(relation: AnyRelation) -> NamedPlan:
    """Return a relation as a source: with its fields, or with one column per binding."""
    node, of = relation.plan, shapes(relation.plan)
    views = kept_views(relation)
    known = getattr(relation, "schema", None)
    if isinstance(known, BindingSchema):
        return plan_with_columns(node, known, views)
    if len(of) == 1:
        schema = schema_of_shape(of[0]) or BindingSchema((BindingColumn("value", ANY, True, None),))
        return plan_with_columns(node, schema, views)
    columns = (
        (f"column{place}", TypedValue(each, ANY, (each,)))
        for place, each in enumerate(all_parameters(len(of)))
    )
    return NamedPlan(node, tuple(columns), len(of), views)


def is_relation(value: Any) -> bool:
    """Return True if a parameter is a source, not a constant."""
    return isinstance(value, Relation)


@record
class BindingColumn:
    """A column. `read` is the field or the position in a row; None if the row is the value."""

    name: str
    type: SqlType
    nullable: bool
    read: str | int | None


@record
class BindingSchema:
    """The columns of rows of one binding."""

    columns: tuple[BindingColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def hints(self) -> dict[str, Any]:
        """The annotations of the columns, by the fields of rows that they are read from."""
        return {str(column.read): full_hint_of(column.type) for column in self.columns}

    def values(self, row: Expr, missing: tuple[Expr, ...] = ()) -> tuple[TypedValue, ...]:
        """Return the columns of `row` as values, which are NULL if one of `missing` is None."""
        made = []
        for column in self.columns:
            expr = _read_column(row, column.read)
            nulls = (*missing, expr) if column.nullable else missing
            made.append(TypedValue(expr, column.type, tuple(dict.fromkeys(nulls))))
        return tuple(made)


def _read_column(row: Expr, place: str | int | None) -> Expr:
    if place is None:
        return row
    return Attribute(row, place) if isinstance(place, str) else Item(row, constant(place))


def schema_of_type(row_type: Any) -> BindingSchema:
    """Return the columns of a table of such rows.

    >>> schema_of_type(tuple[int, str | None]).names
    ('column0', 'column1')
    """
    kind = kind_of(row_type)
    if isinstance(kind, Places) and kind.items:
        places = enumerate(kind.items)
        return BindingSchema(
            tuple(BindingColumn(f"column{n}", *type_of_hint(each), n) for n, each in places)
        )
    if isinstance(kind, Struct) and kind.hints:
        fields = kind.hints.items()
        return BindingSchema(
            tuple(BindingColumn(name, *type_of_hint(each), name) for name, each in fields)
        )
    made = type_of_hint(kind)[0] if isinstance(kind, Scalar) else ANY
    return BindingSchema((BindingColumn("value", made, made is ANY, None),))


def schema_of_shape(shape: Shape) -> BindingSchema | None:
    """Return the columns of a binding of a known shape; None if nothing is known."""
    if isinstance(shape, tuple):
        count = range(len(shape))
        return BindingSchema(
            tuple(BindingColumn(f"column{place}", ANY, True, place) for place in count)
        )
    return None if shape is None else schema_of_type(shape)


def schema_of_values(
    names: Sequence[str], values: Sequence[TypedValue]
) -> tuple[BindingSchema, Any]:
    """Return the columns of a SELECT, and the class of its rows."""
    fields = unique_field_names(names)
    columns = tuple(
        BindingColumn(name, value.type, value.nullable, field)
        for name, value, field in zip(names, values, fields, strict=True)
    )
    return BindingSchema(columns), row_class(fields)


def construct_row(kind: Any, items: Sequence[Expr]) -> Expr:
    """Return the expression that makes a row of the class `kind` of its fields."""
    return Call(constant(kind), tuple(items))


def unique_field_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of fields for columns of any names, each once.

    >>> unique_field_names(["id", "count(*)", "id", "class"])
    ('id', 'count_star', 'id_1', 'class_')
    """
    plain = [BETWEEN.sub("_", name.replace("*", "star")).strip("_") for name in names]
    return tuple(names_of_fields(plain, of_tuple=True, second=1))


BETWEEN = re.compile(r"[\W_]+")
"""Characters between the words of an expression in a column's name."""
