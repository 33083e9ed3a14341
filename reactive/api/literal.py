"""Relations of rows in no table: constant rows, rows that raised, and the rows of one group.

Rows that raise, as rows: `view.errors` of a view with `on_error="drop"` or `"null"`.

    rows on which the callable of an operator raises   -->   RowError(operator, row, error)

The errors are a query of their own over the inputs of the view, made at the first access. An error
disappears when its row is deleted, or replaced by a row that does not raise.

State:  that of a view, and of indexes if the condition of a join raises.
Cost:   none for a view whose errors are not read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import Apply, Function, Lifted, Parameter, all_parameters, row_names
from optimizer.expressions.attempts import Fault
from optimizer.plans.nodes import sources as literals
from optimizer.plans.properties import binding_names, bindings, free, is_set, shapes
from optimizer.rewriting.equality_checks import PolicyQuery
from optimizer.rewriting.on_error import Failure, GuardedQuery
from optimizer.rewriting.own_values import Safe
from optimizer.subqueries import answers as groups
from optimizer.subqueries import keyed_rows
from optimizer.traverse import has_subqueries
from reactive.api import comprehending
from reactive.api.columns import kind_shown
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import canonical
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.storage.rows import class_and_width, is_row_of, written_class_name

# Constant relations: `db.values(rows)`.


def literal(rows: Iterable[Any], row_type: Any) -> plan.Values:
    """Return the plan of constant rows.

    Raises
    ------
    PlanError: a row is not hashable, or is not of the type.
    """
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise PlanError(
            f"values takes rows, not {rows!r:.60}\n  values([...]) takes a list of them"
        )
    kept = [_check_literal_row(row, row_type) for row in rows]
    if kept or row_type is None:
        return literals.values(kept)
    return literals.values((), shapes(plan.Table(0, "values", None, True, row_type)))


def _check_literal_row(row: Any, row_type: Any) -> Any:
    """Return the canonical form of a row; refuses one without hash, or of another class."""
    try:
        hash(row)
    except TypeError:
        raise PlanError(
            f"values cannot have the {type(row).__name__} {row!r:.60} as a row: it has no hash\n"
            "  rows are tuples, frozen dataclasses and plain values"
        ) from None
    if not is_row_of(row, *class_and_width(row_type)):
        raise PlanError(f"values of {written_class_name(row_type)} cannot have the row {row!r:.60}")
    return canonical(row)


OnError: TypeAlias = Literal["raise", "null", "drop"]
"""The reaction to a row on which a callable raises."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as a value: the name of its class, and its message.

    >>> str(Raised("ValueError", "no number: 'x'"))
    "ValueError: no number: 'x'"
    """

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


@dataclass(frozen=True, slots=True, eq=False)
class RowError:
    """A row that an operator or a source left out, with the error.

    An operator of a view with `on_error=` leaves out a row on which a callable raises, or computes
    None for it; a source with `on_error="drop"` leaves out a refused row. `row` is the input of the
    operator: a tuple for several bindings, a pair for the condition of a join.

    >>> from reactive import Database
    >>> words = Database().table(str)
    >>> numbers = words.select(lambda w: int(w)).materialize(on_error="drop")
    >>> words.add_all(["1", "one"])
    >>> list(numbers)
    [1]
    >>> [(error.operator, error.row, error.error.kind) for error in numbers.errors]
    [('select int(w)', 'one', 'ValueError')]
    """

    operator: str
    row: Any
    error: Raised

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowError) and (
            (self.operator, self.error, Safe(self.row))
            == (other.operator, other.error, Safe(other.row))
        )

    def __hash__(self) -> int:
        return hash((self.operator, self.row, self.error))


def by_policy(query: plan.Node, on_error: OnError, *, read: bool) -> PolicyQuery:
    """Return a query in which rows that raise are treated by a policy other than "raise".

    Raises
    ------
    PlanError: there is no such policy.
    """
    if on_error == "null" or on_error == "drop":
        return PolicyQuery(query, on_error, read=read)
    raise PlanError(
        f'on_error={on_error!r} is no policy for rows that raise\n  write "raise", "null" or "drop"'
    )


def errors_of(query: PolicyQuery) -> plan.Node:
    """Return the query of the rows that raise in another query."""
    return query.mark_part(_errors_of(query.first), _errors_of)


def _errors_of(found: GuardedQuery) -> plan.Node:
    """Return the query of the rows that raise, with the errors of each recursion in one query."""
    by_recursion: dict[frozenset[Any], plan.Node] = {}
    for each in found.failures:
        errors: plan.Node = plan.Select(each.rows, _error_of(each))
        before = by_recursion.get(free(errors))
        by_recursion[free(errors)] = errors if before is None else plan.UnionAll(before, errors)
    query: plan.Node = plan.Empty(1)
    for errors in map(found.closed, by_recursion.values()):
        query = errors if isinstance(query, plan.Empty) else plan.UnionAll(query, errors)
    return query


@dataclass(frozen=True, slots=True)
class _ErrorOf:
    """The function from a row to the error that a callable raises on it."""

    operator: str
    call: Callable[..., Any]

    def __call__(self, *row: Any) -> RowError:
        try:
            value = self.call(*row)
        except Exception as error:
            reraise_asynchronous(error)
            return RowError(self.operator, _bare_row(row), Raised(type(error).__name__, str(error)))
        if isinstance(value, Fault):  # the last binding, behind the key of its group
            return RowError(self.operator, _bare_row(row[:-1]), Raised(value.kind, value.message))
        raise AssertionError(f"{self.operator} raises of {row!r:.100} once, and then no more")


def _bare_row(row: tuple[Any, ...]) -> Any:
    """Return the row without the marks of safe values; of a single binding, the value itself."""
    row = tuple([each.value if each.__class__ is Safe else each for each in row])
    return row[0] if len(row) == 1 else row


def _error_of(failure: Failure) -> Lifted:
    """Return the callable that computes the error of a failed call, from the same row."""
    call, count = failure.call, failure.call.parameters
    made = _ErrorOf(failure.operator, callable_of(call))
    identity = ("error of", failure.operator, call.body)
    function = Opaque(made, count, "error_of", call.place, (), identity, "errors")
    return Lifted(Apply(function, all_parameters(count)), call.names, call.origins, count)


# A query per group: the query that a callable makes of a relation that stands for every group.


def each(relation: Any, key: Function, query: Callable[[Any], Any]) -> Any:
    """Return the relation of a query that runs on each group.

    Raises
    ------
    PlanError: `query` is not a callable from a relation to a relation, or cannot be computed for
        all groups together.
    """
    level = object()
    source, key, rows = stand_for_group(relation.plan, key, level, parameter_of(query))
    group = relation._new(rows)
    made = call_for_groups("each", group, query)
    query_plan = made.plan
    if isinstance(query_plan, plan.OrderBy) and not keyed_rows.is_lost(query_plan):
        query_plan = keyed_rows.in_no_order(
            query_plan
        )  # the rows within a limit are a bag from here on
    node = groups.per_group(
        query_plan, level, source, key, of_no_rows=_of_no_rows, canonical=canonical
    )
    return relation._new(node, made)


def stand_for_group(
    source: plan.Node, key: Function, level: object, name: str
) -> tuple[plan.Node, Function, plan.Node]:
    """Return rows, their key, and the relation of a level that stands for the rows of every group.

    A key whose callable has subqueries is computed below, as one more binding of the rows.
    """
    count = bindings(source)
    keyed = plan.Extend(source, tuple(range(count)), (key,), (*binding_names(source), None))
    if not has_subqueries(keyed):
        return source, key, plan.Recursive(level, 0, name, is_set(source), shapes(source))
    rows = comprehending.freed(keyed)
    stands = plan.Recursive(level, 0, name, is_set(rows), shapes(rows))
    of = Lifted(Parameter(count), row_names(count + 1), (), count + 1)
    return rows, of, keyed_rows.first_of(stands, count)


def call_for_groups(role: str, group: Any, query: Callable[[Any], Any]) -> Any:
    """Return the relation that a query makes of a relation that stands for every group.

    Raises
    ------
    PlanError: the result is not a relation, or one of another database.
    """
    made = query(group)
    if not isinstance(made, type(group)):
        found = kind_shown(made)
        raise PlanError(f"{role} takes a callable that returns a relation, not {found}")
    group._check_other(role, made)
    return made


def parameter_of(query: Any) -> str:
    """Return the name of the only parameter of a callable; refuses other callables."""
    if not callable(query):
        raise PlanError(
            f"each takes a callable, relation -> relation, not {query!r:.60}\n"
            "  each(lambda group: group.aggregate(Count()))"
        )
    try:
        signature = inspect.signature(query)
        (name,) = signature.bind(None).arguments
    except (TypeError, ValueError):
        raise PlanError(
            "each calls its callable with one relation, the rows of a group\n"
            "  each(lambda group: group.aggregate(Count()))"
        ) from None
    return str(name)


def _of_no_rows(folded: plan.Folded) -> Any:
    """Return the value of an aggregate without rows."""
    return folded.accumulator.result(folded.accumulator.zero())
