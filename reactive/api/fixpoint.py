"""Relations that are defined by themselves: `fixpoint`.

    reach  =  edges  or  a reach and an edge that continues it

        reach = fixpoint(lambda reach: edges.union(
            reach.join(edges, on=lambda p, e: p.dst == e.src)
                 .select(lambda p, e: Edge(p.src, e.dst))))

The step is called once, with relations that stand for its results; the query that it returns is
the definition. `recursion/` and docs/recursion.md tell how the result is maintained.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from optimizer import plan
from optimizer.callables.opaque import Opaque, opaque
from optimizer.errors import PlanError
from optimizer.expressions.knowledge import IS_MONOTONE
from optimizer.plans.properties import bindings
from reactive.api import joined_values, lattices
from reactive.api.aggregates import Aggregation, Max, Min
from reactive.api.columns import kind_shown, take_callable
from reactive.api.comprehending import smallest
from reactive.api.relation import AnyRelation, Relation, views_of
from reactive.engine.compiler.placement import StepDefinition, agree
from reactive.engine.runtime.boundary import outermost

if TYPE_CHECKING:
    Keep = Min[Any, Any] | Max[Any, Any] | lattices.Lattice[Any]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
P = ParamSpec("P")
By = Callable[[Any], Hashable]
Steps = tuple[AnyRelation, ...]


@overload
def fixpoint(
    step: Callable[[Relation[T]], Relation[T]],
    *,
    keep: Keep | None = None,
    by: By | None = None,
    max_rounds: int | None = 10_000,
) -> Relation[T]: ...
@overload
def fixpoint(
    step: Callable[[Relation[T], Relation[U]], tuple[Relation[T], Relation[U]]],
    *,
    keep: Sequence[Keep | None] | None = None,
    by: Sequence[By | None] | None = None,
    max_rounds: int | None = 10_000,
) -> tuple[Relation[T], Relation[U]]: ...
@overload
def fixpoint(
    step: Callable[
        [Relation[T], Relation[U], Relation[V]], tuple[Relation[T], Relation[U], Relation[V]]
    ],
    *,
    keep: Sequence[Keep | None] | None = None,
    by: Sequence[By | None] | None = None,
    max_rounds: int | None = 10_000,
) -> tuple[Relation[T], Relation[U], Relation[V]]: ...
@overload
def fixpoint(
    step: Callable[Concatenate[AnyRelation, AnyRelation, AnyRelation, AnyRelation, P], Steps],
    *,
    keep: Sequence[Keep | None] | None = None,
    by: Sequence[By | None] | None = None,
    max_rounds: int | None = 10_000,
) -> tuple[Relation[Any], ...]: ...
@overload
def fixpoint(
    step: Callable[..., Sequence[AnyRelation]],
    *,
    names: Sequence[str],
    keep: Sequence[Keep | None] | None = None,
    by: Sequence[By | None] | None = None,
    max_rounds: int | None = 10_000,
) -> tuple[Relation[Any], ...]: ...
@outermost
def fixpoint(
    step: Callable[..., Any],
    *,
    names: Sequence[str] | None = None,
    keep: Any = None,
    by: Any = None,
    max_rounds: int | None = 10_000,
) -> Any:
    """Return the least fixpoint of a query step: a recursive relation, or several together.

    Parameters
    ----------
    step: callable, a relation per parameter -> the relation, or a tuple with one per parameter.
        Each relation is a set of single values (one binding). The step may use monotone operators:
        where, select, select_many, unnest, joins, semi_join, unions, intersections, distinct;
        anti_join and difference with a right side that is not recursive; another fixpoint.
    names: the names of the relations, for generated programs: the step is called with one argument
        per name and returns a sequence of as many relations, also for one name.
    keep, by: `Min(f)` or `Max(f)`, and callable, row -> hashable: the relation keeps only the best
        of the rows with equal keys (shortest paths). A better row must not lead to worse ones. Or a
        lattice of `reactive.lattices`: one row per key, with the join of all values that the step
        derives for it; `by` names all fields but that of the value. For several relations give
        tuples, with None for a relation that keeps all rows.
    max_rounds: the most steps from a changed input row to a derived row, in one commit; None for
        no limit, so that nothing stops a step that always derives new rows. Unless it is None,
        rows of more than 1,000,000 bytes, or 2,000,000 rows per row of the inputs, are refused.

    State: every row, with the number of its derivations and its round; a bit per pair of nodes for
    a transitive closure.
    Cost: proportional to the derivations that the change affects, see docs/recursion.md.
    Source: [dbsp] section 5, recursive queries; counting by rounds, see docs/recursion.md.

    Raises
    ------
    StratificationError: recursion through a negation, an aggregate, an outer join or an order.
    PlanError: the step does not return its relations.
    FixpointError: later, at a commit, if the recursion does not end, or a step over a lattice is
        not monotone.

    >>> from reactive import Database, fixpoint
    >>> edges = Database().table(tuple, name="edges")
    >>> reach = fixpoint(lambda reach: edges.union(
    ...     reach.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1])))
    ... ).materialize()
    >>> edges.add_all([(1, 2), (2, 3), (3, 2)])
    >>> edges.remove((1, 2))
    >>> sorted(reach)
    [(2, 2), (2, 3), (3, 2), (3, 3)]
    >>> (back,) = fixpoint(lambda r: [edges.union(r.select(lambda p: p[::-1]))], names=["back"])
    >>> sorted(back.materialize())
    [(2, 3), (3, 2)]
    """
    is_single = names is None and len(parameters(step, "fixpoint")) == 1
    named = parameters(step, "fixpoint") if names is None else checked_names(step, names)
    if max_rounds is not None:
        check_count("max_rounds", max_rounds)
    level, engine, made = call_step(step, named, is_set=True, is_single=is_single)
    results = tuple(relation.plan for relation in made)
    views = views_of(*made)
    if is_single:
        keep, by = (keep,), (by,)
    node = plan.Fixpoint(results, level, named, _best(results, named, keep, by), max_rounds)
    relations: tuple[AnyRelation, ...] = tuple(
        Relation(engine, part, views) for part in smallest(node)
    )
    return relations[0] if is_single else relations


Kept = plan.Best | plan.JoinedValue | None


def monotone(function: F) -> F:
    """Declare a function monotone: a larger argument never makes its result smaller, or untrue.

    A recursion may test the results of its aggregates by such a function (docs/recursion.md); of
    another one, it is not known that a row which passes the test still does with more rows. The
    function is called as it is: its body is not read. With `Database(strict=True)`, the recursion
    raises if a row that it has derived is lost.

    Raises
    ------
    PlanError: attributes of the function cannot be set.

    >>> from reactive import Count, Database, fixpoint, monotone
    >>> @monotone
    ... def is_crowd(count):
    ...     return bool(count // 2)
    >>> db = Database()
    >>> hosts, friends = db.table(str, name="hosts"), db.table(tuple[str, str], name="friends")
    >>> party = fixpoint(lambda guests: hosts.union(
    ...     guests.join(friends, on=lambda g, f: g == f[1]).group_by(lambda g, f: f[0])
    ...     .aggregate(Count()).where(lambda who, count: is_crowd(count))
    ...     .select(lambda who, count: who))).materialize()
    >>> hosts.add_all(["Ann", "Bob"])
    >>> friends.add_all([("Cem", "Ann"), ("Cem", "Bob"), ("Dan", "Cem")])
    >>> sorted(party)
    ['Ann', 'Bob', 'Cem']
    """
    try:
        setattr(function, IS_MONOTONE, True)
    except (AttributeError, TypeError):
        raise PlanError(
            f"monotone takes a function of your own, not {function!r:.80}\n"
            "  write a function that calls it, with @monotone"
        ) from None
    return function


def _best(
    bodies: tuple[plan.Node, ...], names: tuple[str, ...], keep: Any, by: Any
) -> tuple[Kept, ...]:
    """Return the `keep` and `by` of each relation as parts of the plan.

    Refuses a `keep` or `by` without one entry for each relation.
    """
    several = len(names) > 1
    keeps = (None,) * len(names) if keep is None else keep
    bys = (None,) * len(names) if by is None else by
    for word, given in (("keep", keeps), ("by", bys)):
        if not isinstance(given, tuple | list) or len(given) != len(names):
            raise PlanError(
                f"{word}= must have one entry for each of {', '.join(names)}\n"
                "  None for a relation that keeps all its rows"
            )
    return tuple(
        _best_of(body, name if several else None, k, b)
        for body, name, k, b in zip(bodies, names, keeps, bys, strict=True)
    )


def _best_of(body: plan.Node, name: str | None, keep: Any, by: Any) -> Kept:
    """Return which row of each key a relation keeps; None without `keep=` and `by=`.

    Raises `PlanError` if only one of them is given, or if `keep` is neither `Min` nor `Max` nor a
    lattice.
    """
    of = "" if name is None else f" of {name!r}"
    if keep is None and by is None:
        return None
    if keep is None or by is None:
        given, missing = ("by", "keep") if keep is None else ("keep", "by")
        raise PlanError(
            f"fixpoint{of} has {given}= but no {missing}=\n"
            "  keep=Min(value) says which row is best, by=key among which rows"
        )
    if isinstance(keep, lattices.Lattice):
        return joined_values.joined_value(body, keep, by, of)
    if not isinstance(keep, Min | Max):
        raise PlanError(
            f"keep={kind_shown(keep)}{of}: only Min(...) and Max(...) say which row is best\n"
            "  a lattice of reactive.lattices joins values; other aggregates belong outside the"
            " fixpoint"
        )
    if keep._accumulator.skip_none:
        raise PlanError(
            f"keep={keep!r}{of}: what is kept are rows, of which no value can be left out\n"
            "  where(...) leaves out the rows that have none"
        )
    return plan.Best(
        take_callable(by, 1, "by of fixpoint"),
        _value(keep),
        isinstance(keep, Max),
    )


def _value(keep: Aggregation[Any, Any]) -> Opaque:
    """Return the callable of the value that says which row is best; the row itself by default."""
    function = keep._of
    if function is None:
        return opaque(_itself, 1, "keep of fixpoint")
    return take_callable(function, 1, "keep of fixpoint")  # type: ignore[arg-type]  # it refuses a name


def _itself(row: Any) -> Any:
    return row


# Shared by `fixpoint` and `iterate`: a step is called with relations that stand for its results.


def call_step(
    step: Callable[..., Any],
    names: tuple[str, ...],
    *,
    is_set: bool,
    is_single: bool,
    starts: Sequence[AnyRelation] = (),
) -> tuple[StepDefinition, Any, list[AnyRelation]]:
    """Call the step with relations that stand for its results.

    Return the definition, which is the level of these relations until it is finished, the
    engine, and the results. Each relation has the bindings of one of `starts`, if there are
    any. A step that `is_single` returns a relation, else a tuple of relations. Raises
    `PlanError` for other results, and for relations of two databases.
    """
    definition: Any = StepDefinition(", ".join(map(repr, names)))
    counts = [bindings(start.plan) for start in starts] or [1] * len(names)
    for start in starts:
        if not agree(definition, start._engine):
            raise PlanError(f"{definition.what} start from relations of two databases")
    given: list[AnyRelation] = [
        Relation(definition, plan.Recursive(definition, index, name, is_set, (None,) * count))
        for index, (name, count) in enumerate(zip(names, counts, strict=True))
    ]
    result = step(*given)
    results = [result] if is_single else result
    if not isinstance(results, tuple | list) or len(results) != len(names):
        raise PlanError(
            f"the step must return a tuple of {len(names)} relations, not {kind_shown(result)}\n"
            f"  one for each of its parameters {definition.what}"
        )
    for name, relation, count in zip(names, results, counts, strict=True):
        _check_result(name, relation, count)
        if not agree(definition, relation._engine):
            raise PlanError(f"{name!r} reads relations of two databases")
    engine = definition.finish()
    if engine is None:
        raise PlanError(
            f"the step reads nothing but {definition.what}: there is no row to begin with\n"
            "  a union with a table or another relation says where it starts"
        )
    return definition, engine, list(results)


def _check_result(name: str, relation: Any, count: int) -> None:
    """Refuse a result of the step that is no relation, or has another number of bindings."""
    if not isinstance(relation, Relation):
        raise PlanError(f"the step must return a relation for {name!r}, not {kind_shown(relation)}")
    found = bindings(relation.plan)
    if found != count:
        raise PlanError(
            f"the step returns {found} bindings for {name!r}, which has {count}\n"
            "  select() what makes a row of it"
        )


def parameters(step: Any, role: str) -> tuple[str, ...]:
    """Return the names of the parameters of a step; refuses others than positional ones."""
    if not callable(step):
        raise PlanError(f"{role} takes a callable, relation -> relation, not {step!r:.60}")
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    parameters = list(inspect.signature(step).parameters.values())
    names = tuple(p.name for p in parameters if p.kind in positional)
    if not names or len(names) != len(parameters):
        raise PlanError(
            f"the step of {role} needs one parameter for each relation that it defines\n"
            "  lambda reach: ..., or lambda odd, even: (..., ...)"
        )
    return names


def checked_names(step: Any, names: Any) -> tuple[str, ...]:
    """Return the `names` for the relations of a step; refuses equal names, or none."""
    if not callable(step):
        raise PlanError(f"fixpoint takes a callable, relations -> relations, not {step!r:.60}")
    is_listed = isinstance(names, list | tuple) and all(isinstance(n, str) for n in names)
    if not is_listed or not names or len({*names}) < len(names):
        raise PlanError(
            f"names= is a list of a different name for each relation, not {names!r:.60}\n"
            "  fixpoint(lambda odd, even: (..., ...), names=['odd', 'even'])"
        )
    return tuple(names)


def check_count(name: str, value: Any) -> None:
    """Refuse a number of rounds that is not an int, or too small."""
    if type(value) is not int or value < (name == "max_rounds"):
        raise PlanError(f"{name} is a number of rounds, not {value!r:.60}")
