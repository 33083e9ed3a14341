"""Queries as functions: comprehensions over tables, relations and views, which are relations.

@db.query
def debtors() -> list[str]:
    return [c.name for c in customers if any(o.cid == c.id for o in orders if not o.paid)]

debtors.materialize()               as any relation
debtors.on(orders=[...], ...)       the same text over plain lists
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import replace
from types import CellType, FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from optimizer.callables.opaque import Opaque, opaque
from optimizer.comprehensions import query as reading
from optimizer.errors import PlanError
from optimizer.plans.check_reads import check_every_read
from reactive.api.callables import check_noticed
from reactive.api.comprehending import Comprehending
from reactive.api.each_row import relation_of
from reactive.api.relation import GroupedRelation, OrderedRelation, Relation
from reactive.api.text import Text
from reactive.engine.runtime.boundary import boundary, outermost

if TYPE_CHECKING:
    from optimizer import plan
    from reactive.api.view import AnyView

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Ts = TypeVarTuple("Ts")


class Written:
    """Base of queries that have a text."""

    text: Text
    kind: reading.Kind

    def on(self, **lists: Iterable[Any]) -> Any:
        """What Python makes of the text, over plain lists.

        Parameters
        ----------
        lists: the rows of each relation that it names; one that is not given has its rows of now.

        That is what the function returns: a list, set or dictionary. `sum` adds floats exactly. A
        function that calls itself is applied to the empty set until nothing changes.

        Raises
        ------
        PlanError: the text names no such relation.
        Exception: what the text raises.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> short = db.query(lambda: [w.upper() for w in words if len(w) < 3])
        >>> short.on(words=["to", "be", "not"])
        ['TO', 'BE']
        """
        return self.text.run(lists)

    def __call__(self) -> Any:
        """What Python makes of the text, over the rows of now."""
        return self.text.run({})


@boundary
class Query(Written, Relation[*Ts]):
    """A relation that was written as a function or a generator expression.

    Made by `Database.query` and `live`. It is a relation like any other, and can also be called:
    that computes it once, in Python, over the rows of now.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> @db.query
    ... def short() -> list[str]:
    ...     return [w for w in words if len(w) < 3]
    >>> view = short.materialize()
    >>> words.add_all(["to", "be", "not"])
    >>> sorted(view), sorted(short())
    (['be', 'to'], ['be', 'to'])
    """


@boundary
class GroupedQuery(Written, GroupedRelation[K, *Ts]):
    """A query that gives a dictionary: its view is a mapping too.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> sizes = db.query(lambda: {w: len(w) for w in words}).materialize()
    >>> words.add_all(["to", "not"])
    >>> sizes["not"], dict(sizes)
    (3, {'to': 2, 'not': 3})
    """


@boundary
class OrderedQuery(Written, OrderedRelation[*Ts]):
    """A query that gives what is sorted: its view is a sequence too.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> longest = db.query(lambda: sorted(words, key=len, reverse=True)[:2]).materialize()
    >>> words.add_all(["to", "three", "not"])
    >>> longest[0], list(longest)
    ('three', ['three', 'not'])
    """


KINDS: dict[str, Any] = {"mapping": GroupedQuery, "order": OrderedQuery}


def query(engine: Any, function: Any) -> Any:
    """The relation of a function without parameters."""
    if isinstance(function, GeneratorType):
        raise PlanError("query takes a function\n  live(... for ... in ...) takes a generator")
    taken = opaque(function, 0, "query")
    check_noticed(function, taken)
    found = reading.read_function(_watched(taken, function), Comprehending(engine), function)
    return _made(engine, found, Text(function))


@outermost
def live(rows: Iterable[T]) -> Query[T]:
    """The relation of a generator expression over a table, a relation or a view.

    Parameters
    ----------
    rows: a generator expression that nobody has iterated yet. What else it names may be tables,
        relations and views too, and variables, which keep their value of now.

    Raises
    ------
    PlanError: it is something else, or reads what no query can.

    >>> from reactive import Database, live
    >>> words = Database().table(str, name="words")
    >>> least = 3
    >>> long = live(w.upper() for w in words if len(w) >= least).materialize()
    >>> words.add_all(["to", "be", "that"])
    >>> list(long)
    ['THAT']
    """
    if not isinstance(rows, GeneratorType) or rows.gi_code.co_name != "<genexpr>":
        raise PlanError(
            f"live takes a generator expression, not {type(rows).__name__}\n"
            "  live(row.name for row in table if row.paid); db.query(f) takes a function"
        )
    frame = rows.gi_frame
    first = None if frame is None else relation_of(frame.f_locals.get(".0"))
    if first is None or frame is None:
        raise PlanError(
            "live takes a generator over a relation that nobody has iterated yet\n"
            "  its first `for` is in a table, a relation or a view"
        )
    function = FunctionType(
        rows.gi_code, frame.f_globals, "<genexpr>", None, _cells(rows, frame.f_locals)
    )
    taken = opaque(function, 1, "live")
    check_noticed(function, taken)
    found = reading.read_generator(taken, first, Comprehending(first._engine))
    made: Query[T] = _made(first._engine, found, Text(function, first))
    return made


def _made(engine: Any, found: reading.Query, text: Text) -> Any:
    views: dict[AnyView, None] = {}
    for source in found.sources:
        views |= dict.fromkeys(source._kept_views())
    kind: Any = KINDS.get(found.kind, Query)
    node: plan.Node = found.node
    check_every_read(node)
    made = kind(engine, node, tuple(views))
    made.text, made.kind = text, found.kind
    return made


def _watched(taken: Opaque, function: Any) -> Opaque:
    """The function, of which its own name may change: it is the name of the query."""
    name = getattr(function, "__name__", "")
    return replace(taken, captures=tuple(c for c in taken.captures if c.name != name))


def _cells(rows: Any, values: dict[str, Any]) -> tuple[CellType, ...]:
    """The variables of a generator: those that it has itself, so that a change is noticed."""
    names = rows.gi_code.co_freevars
    known = [each for each in gc.get_referents(rows) if isinstance(each, CellType)]
    last = known[len(known) - len(names) :]
    if len(last) == len(names) and all(map(_is_of, last, names, [values] * len(names))):
        return tuple(last)
    return tuple(CellType(values[name]) for name in names)


def _is_of(cell: CellType, name: str, values: dict[str, Any]) -> bool:
    try:
        return cell.cell_contents is values.get(name)
    except ValueError:
        return name not in values
