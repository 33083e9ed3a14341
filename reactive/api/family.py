"""Queries as functions, families of views by parameter, and checks of views against their queries.

Families: one query for many values of a parameter, with one view per value.

    family = db.family(lambda customer: orders.where(lambda o: o.customer == customer))
    family["ann"]       the view of the orders of ann: the same one while it is referenced

The function is called once for each view that is made, so that it may return any query of its
parameters. Queries that differ only in constants are planned once.

State:  a weak reference per view.
Cost:   a look-up for a view that exists, else that of `Relation.materialize`.

Queries as functions: comprehensions over tables, relations and views, which are relations.

@db.query
def debtors() -> list[str]:
    return [c.name for c in customers if any(o.cid == c.id for o in orders if not o.paid)]

debtors.materialize()               as any relation
debtors.on(orders=[...], ...)       the same function over plain lists

Dropped and replaced tables, and the readers of them.

    drop     the views and subscriptions over the table end with a reason; its rows are discarded
    replace  the same, after another table of its name has been made

A query over such a table still exists, but cannot be computed.

Cost: the state of the views is freed; nothing is computed.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import CellType, FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, cast
from weakref import WeakValueDictionary

from optimizer.callables.opaque import Opaque, opaque
from optimizer.comprehensions import query as reading
from optimizer.comprehensions.calls import CalledTooEarly
from optimizer.errors import PlanError
from optimizer.plans.check_reads import check_every_read
from optimizer.plans.properties import tables
from reactive.api import equal_rows, window_bindings
from reactive.api.columns import check_noticed, kind_shown
from reactive.api.comprehending import Comprehending, QueryText, plain
from reactive.api.each_row import relation_of
from reactive.api.family_parameters import count_parameters, exactly
from reactive.api.relation import GroupedRelation, OrderedRelation, Relation
from reactive.api.table import Table
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import canonical
from reactive.engine.compiler import equality_checks
from reactive.engine.compiler.placement import agree
from reactive.engine.reference.bags import runs
from reactive.engine.reference.verify import verify_together
from reactive.engine.runtime.boundary import boundary, hide, outermost
from reactive.engine.runtime.closeable import Closeable, Uncopyable
from reactive.errors import ClosedError, TransactionError, VerificationError

if TYPE_CHECKING:
    from optimizer import plan
    from reactive.api.view import AnyView, View
    from reactive.engine.dataflow.node import Node
    from reactive.engine.transactions.engine import Engine

K = TypeVar("K")
Ts = TypeVarTuple("Ts")


@boundary
class Family(Uncopyable, Closeable, Generic[K, *Ts]):
    """The views of one query by the value of its parameter. `Database.family` makes it.

    `family[value]` is a view, the same one as long as it is referenced; with several parameters
    write `family[first, second]`. `len`, iteration and `in` are about the values whose views are
    referenced.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> of_length = db.family(lambda n: words.where(lambda w: len(w) == n))
    >>> two, four = of_length[2], of_length[4]
    >>> words.add_all(["to", "be", "that"])
    >>> sorted(two), list(four), two is of_length[2]
    (['be', 'to'], ['that'], True)
    >>> list(of_length), 3 in of_length
    ([2, 4], False)
    """

    def __init__(self, engine: Engine, function: Callable[..., Relation[*Ts]]) -> None:
        self._engine = engine
        self._least, self._most = count_parameters(function)
        self._function = function
        self._label = str(opaque(function, self._most, "family"))
        self._held: WeakValueDictionary[Any, View[*Ts]] = WeakValueDictionary()
        self._is_closed = False

    def __getitem__(self, value: K) -> View[*Ts]:
        """Return the view for a value of the parameter, which is made if it does not exist.

        Raises
        ------
        TypeError: the value is not hashable.
        PlanError: the function does not return a relation of this database, or takes another number
            of parameters.
        ClosedError: the family was closed.
        """
        try:
            key = self._key(value)
            found = self._held.get(key)
            return found if found is not None and not found.closed else self._make_view(key)
        except Exception as error:
            hide(error)
            raise

    def __contains__(self, value: object) -> bool:
        """Return True if the view of a value is referenced."""
        found = self._held.get(exactly(value))
        return found is not None and not found.closed

    def __iter__(self) -> Iterator[K]:
        """Iterate over the values whose views are referenced, in the order of their making."""
        held = [key[0] for key, view in self._held.items() if not view.closed]
        return iter(cast("list[K]", held))

    def __len__(self) -> int:
        """Return the number of referenced views."""
        return sum(not view.closed for view in self._held.values())

    @property
    def closed(self) -> bool:
        """True after the family was closed."""
        return self._is_closed

    def close(self) -> None:
        """Close its views. Asking it for a view afterwards is an error."""
        self._is_closed = True
        for view in list(self._held.values()):
            view.close()

    _copy_instead = "make another one, of the same function"
    _pickle_instead = "make it where the database is; the rows of its views can be pickled"

    def _called(self) -> str:
        return f"family {self._label}"

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{len(self)} views"
        return f"Family({self._label}, {state})"

    def _key(self, value: K) -> Any:
        """Return the key of a value in `_held`; raises without a hash, or after `close`."""
        if self._is_closed:
            raise ClosedError(f"{self._called()} is closed\n  make another one")
        try:
            key = exactly(value)
            hash(key)
        except TypeError as error:
            raise TypeError(
                f"{self._called()}: {value!r:.100} is no value of a parameter: {error}\n"
                "  views are found by it; use a tuple or a frozenset"
            ) from None
        return key

    def _make_view(self, key: Any) -> View[*Ts]:
        """Return the view of a key, made by the function.

        If another thread has made it meanwhile, that view is returned, unless it is closed.
        Raises `PlanError` if the function returns no relation of this database.
        """
        relation: Any = self._function(*self._arguments(key[0]))
        if not isinstance(relation, Relation):
            raise PlanError(
                f"{self._called()} gave {kind_shown(relation)} for {key[0]!r:.100}, not a relation"
                "\n  return a query of the tables, such as orders.where(...)"
            )
        if not agree(self._engine, relation._engine):
            raise PlanError(
                f"{self._called()} gave a relation of another database for {key[0]!r:.100}\n"
                "  call family() of the database that has its tables"
            )
        view: View[*Ts] = relation.materialize()
        other = self._held.setdefault(key, view)  # another thread may have made it meanwhile
        if other is not view:
            if not other.closed:
                view.close()
                return other
            self._held[key] = view
        return view

    def _arguments(self, value: Any) -> tuple[Any, ...]:
        """Return the arguments for the function; refuses another number of parameters."""
        if self._most == 1:
            return (value,)
        if not isinstance(value, tuple) or not self._least <= len(value) <= self._most:
            raise PlanError(
                f"{self._called()} takes {self._most} parameters, not {value!r:.100}\n"
                "  family[first, second] gives one value for each"
            )
        return value


T = TypeVar("T")
V = TypeVar("V")


class Written:
    """Base of queries that are written as a function."""

    text: QueryText
    kind: reading.Kind

    def on(self, **lists: Iterable[Any]) -> Any:
        """Run the function in Python over plain lists, and return its result.

        Parameters
        ----------
        lists: the rows of relations by their names in the function. Other relations have their
            current rows.

        `sum` adds floats exactly. A function that calls itself is applied to the empty set, then to
        its result, until nothing changes.

        Raises
        ------
        PlanError: the function names no relation of a given name.
        Exception: raised by the function.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> short = db.query(lambda: [w.upper() for w in words if len(w) < 3])
        >>> short.on(words=["to", "be", "not"])
        ['TO', 'BE']
        """
        return self.text.run(lists)

    def __call__(self) -> Any:
        """Run the function in Python over the current rows, and return its result."""
        return self.text.run({})


@boundary
class Query(Written, Relation[*Ts]):
    """A relation written as a function or a generator expression.

    `Database.query` and `live` make it. It is a relation like any other, and can also be called:
    Python then computes the result once, over the current rows.

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

    A query that calls one that is not defined yet is read when it is used for the first time: so
    queries may call each other.
    """

    def __getattr__(self, name: str) -> Any:
        if name in ("plan", "kind", "_views") and "text" in vars(self):
            _read_late(self)
            return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@boundary
class GroupedQuery(Written, GroupedRelation[K, *Ts]):
    """A query that returns a dictionary; its view is also a mapping.

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
    """A query that returns a sorted list; its view is also a sequence.

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
    """Return the relation of a function without parameters; refuses a generator."""
    if isinstance(function, GeneratorType):
        raise PlanError("query takes a function\n  live(... for ... in ...) takes a generator")
    try:
        return _make_query(engine, _read(engine, function), QueryText(function))
    except CalledTooEarly:
        made: Any = Query.__new__(Query)
        made._engine, made.text = engine, QueryText(function)
        return made


def _read(engine: Any, function: Any) -> reading.Query:
    """Read the query of a function."""
    taken = opaque(function, 0, "query")
    check_noticed(function, taken)
    read = partial(reading.read_function, engine=Comprehending(engine), written=function)
    return _recipes_of(engine).find(taken, _without_own_name(taken, function), read)


def _read_late(made: Any) -> None:
    """Read a query that was made before the queries that it calls.

    Raises
    ------
    PlanError: it still calls a function that is not defined, or gives neither a list nor a set.
    """
    engine, function = made._engine, made.text.function
    try:
        found = _read(engine, function)
    except CalledTooEarly as early:
        raise PlanError(*early.args) from None
    if found.kind in KINDS:
        raise PlanError(
            f"query: {function.__name__} was written before the queries that it calls, and gives"
            " a dictionary or an order\n  define these before it; a set or a list may come first"
        )
    vars(made).update(vars(_make_query(engine, found, made.text)))


@outermost
def live(rows: Iterable[T]) -> Query[T]:
    """Return the live query of a generator expression over a table, a relation or a view.

    Parameters
    ----------
    rows: a generator expression that was not iterated yet. It may name other tables, relations and
        views, and variables, whose current values become constants.

    Raises
    ------
    PlanError: `rows` is not such a generator, or cannot be lifted to a query.

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
    read = partial(reading.read_generator, first=first, engine=Comprehending(first._engine))
    found = _recipes_of(first._engine).find(taken, taken, read, first)
    made: Query[T] = _make_query(first._engine, found, QueryText(function, first))
    return made


def _recipes_of(engine: Any) -> reading.FunctionRecipes:
    """Return the recipes of the functions of a database, made at the first call."""
    if engine.recipes is None:
        engine.recipes = reading.FunctionRecipes(lambda value: _is_table_of(engine, value))
    found: reading.FunctionRecipes = engine.recipes
    return found


def _is_table_of(engine: Any, value: Any) -> bool:
    return isinstance(value, Table) and value._engine is engine


def _make_query(engine: Any, found: reading.Query, text: QueryText) -> Any:
    """Return the query read from a text, as the class for its kind."""
    views: dict[AnyView, None] = {}
    node: plan.Node = found.node
    for source in found.sources:
        views |= dict.fromkeys(source._kept_views())
        if source._has_windows:
            node = window_bindings.resolved(node)
    kind: Any = KINDS.get(found.kind, Query)
    check_every_read(node)
    made = kind(engine, node, tuple(views))
    made.text, made.kind = text, found.kind
    return made


def _without_own_name(taken: Opaque, function: Any) -> Opaque:
    """Return the function without its own name among the captures: the name becomes the query's."""
    name = getattr(function, "__name__", "")
    return replace(taken, captures=tuple(c for c in taken.captures if c.name != name))


def _cells(rows: Any, values: dict[str, Any]) -> tuple[CellType, ...]:
    """Return the cells of a generator's variables: its own, so that their changes are noticed.

    If these cannot be found, return new cells with the present `values`.
    """
    names = rows.gi_code.co_freevars
    known = [each for each in gc.get_referents(rows) if isinstance(each, CellType)]
    last = known[len(known) - len(names) :]
    if len(last) == len(names) and all(map(_is_of, last, names, [values] * len(names))):
        return tuple(last)
    return tuple(CellType(values[name]) for name in names)


def _is_of(cell: CellType, name: str, values: dict[str, Any]) -> bool:
    """Return True if a cell holds the very value of `name`; if it has none, for an empty cell."""
    try:
        return cell.cell_contents is values.get(name)
    except ValueError:
        return name not in values


# Compare a view with the result of its function in Python, for tests of queries.

MOST_SHOWN = 5


@outermost
def check(*views: Any) -> None:
    """Compare views with the results of their query functions in Python.

    Parameters
    ----------
    views: views of queries made by `Database.query` or `live`; other views are verified by
        `View.verify`.

    The functions run over the current rows, as plain lists. Any of several tied rows is accepted,
    in `sorted(...)[:n]` and in `min` and `max` with a key.

    Raises
    ------
    VerificationError: a view differs; the message shows the rows.

    >>> from reactive import Database, check
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> short = db.query(lambda: {w for w in words if len(w) < 3}).materialize()
    >>> words.add_all(["to", "be", "not", "to"])
    >>> check(short)
    """
    for view in views:
        if not isinstance(getattr(view, "relation", None), Written):
            view.verify()
            continue
        found = find_difference(view)
        if found is not None:
            raise VerificationError(f"{view._called()} is not what its text gives\n  {found}")


def find_difference(view: Any) -> str | None:
    """Return the difference between a view and its function's result; None if they are the same."""
    query = view.relation
    text, kind = query.text, query.kind
    shown = list(view)
    expected = text.run({}, tied=view._of_all_places() if kind == "order" else shown)
    if kind == "mapping":
        return _compare_bags(shown, [pair_of(each) for each in expected.items()])
    rows = [expected] if kind == "value" else list(expected)
    if kind != "order":
        return _compare_bags(shown, rows)
    form = form_of(shown)
    theirs = [alike(row, form) for row in rows]
    if shown == theirs or (len(shown) == len(theirs) and _are_tied(view, shown, theirs)):
        return None
    if shown == _in_sequence(text, form):
        return None
    return f"in order: {shown!r:.200}\n  and not {theirs!r:.200}"


def _are_tied(view: Any, shown: list[Any], theirs: list[Any]) -> bool:
    """Return True if the rows differ only in the order of rows with equal keys.

    It is False if the rows show the values that they are sorted by, or only a part of the order is
    shown.
    """
    order = view.relation.plan
    if order.shown is None or order.limit is not None or order.offset:
        return False
    start = 0
    for alike_rows in runs(order, view._evaluate_plan(order.input)):
        stop = start + len(alike_rows)
        wanted = Counter(alike_rows)
        if Counter(shown[start:stop]) != wanted or Counter(theirs[start:stop]) != wanted:
            return False
        start = stop
    return start == len(shown)


def _in_sequence(text: Any, form: Form) -> list[Any] | None:
    """Return the rows of a function over lists sorted by themselves, as `sorted` is stable.

    Return None if Python does not compare the rows.
    """
    try:
        return [alike(row, form) for row in text.run({}, is_by_itself=True)]
    except TypeError:
        return None


def pair_of(item: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return a key and its value; a list, which is the values of a group, becomes a `Bag`."""
    key, value = item
    return key, Bag(map(plain, value)) if isinstance(value, list) else value


Form = Any
"""The places of bags in values: for a bag a list with the form of its values, for a tuple a tuple
    with
a form for each item, else None.
"""


def form_of(values: Iterable[Any]) -> Form:
    """Return the form that all values share.

    >>> form_of([("a", Bag()), ("b", Bag([1]))])
    (None, [None])
    """
    every = list(values)
    if every and all(isinstance(value, Bag) for value in every):
        return [form_of(each for value in every for each in value)]
    if every and all(type(value) is tuple for value in every):
        return tuple(map(form_of, zip(*every, strict=False)))
    return None


def alike(value: Any, form: Form) -> Any:
    """Convert a value of a function's result to the type that it has in a view, by its form."""
    if isinstance(form, list) and isinstance(value, list):
        return Bag(alike(each, form[0]) for each in value)
    if isinstance(form, tuple) and type(value) is tuple and len(form) == len(value):
        return tuple(map(alike, value, form))
    return plain(value)


def _compare_bags(mine: list[Any], theirs: list[Any]) -> str | None:
    """Return how the rows of a view differ from those of its function; None if they do not.

    They are compared as bags.
    """
    form = form_of(mine)
    expected = [canonical(alike(row, form)) for row in theirs]
    if equal_rows.same_as_bags([(row, 1) for row in mine], expected):
        return None
    left, right = Bag(mine), Bag(expected)
    return (
        f"it has what the text does not give: {_more(left, right)}\n"
        f"  and lacks what it gives: {_more(right, left)}"
    )


def _more(of: Bag[Any], than: Bag[Any]) -> str:
    """Describe the rows that `of` has more often than `than`."""
    counts = [(row, n - than.count(row)) for row, n in of.items()]
    found = [f"{n} x {row!r:.120}" for row, n in counts if n > 0]
    return ", ".join(found[:MOST_SHOWN]) or "nothing"


SHOWN = 5
"""The most views that a message names."""
AGAIN = "make its query again, over a table that is there: see db.tables()"


def drop(engine: Engine, table: Table[Any], *, views: bool, why: str) -> None:
    """Remove a table from its database; see `Database.drop`. Call it inside the lock, to write."""
    _check_droppable(engine, table)
    engine.drain()
    own = engine.constraints.get(table.plan.number, ())
    found = readers(engine, table)
    others = [leaf for leaf in found if engine.views.get(leaf.rank) not in own] if own else found
    if others and not views:
        raise PlanError(_refusal(engine, table, others))
    if engine.catalog is not None and len(found) > len(own):
        engine.catalog.end_constraints(table, {engine.views.get(leaf.rank) for leaf in found})
    if engine.journal is not None:
        engine.journal.forget(table)
    engine.db_lock.critical = True  # Ctrl-C comes when it is done
    for leaf in found:
        leaf.leaf.remedy = AGAIN
        engine.end(leaf, why)
    del engine.tables[table.plan.number]
    engine.constraints.pop(table.plan.number, None)
    engine.offloading.forget(table)
    if engine.catalog is not None:
        engine.catalog.forget(table.plan.number)
    engine.graph.drop_source(table._node)
    table._give_up(why)


def readers(engine: Engine, table: Table[Any]) -> list[Node]:
    """Return the leaves of views and subscriptions whose query reads a table."""
    number = table.plan.number
    leaves = engine.graph.leaves()
    return [leaf for leaf in leaves if any(t.number == number for t in tables(leaf.leaf.plan))]


def _check_droppable(engine: Engine, table: Any) -> None:
    """Refuse to drop an object that is no table of this database, or inside a transaction."""
    if not isinstance(table, Table):
        raise PlanError(
            f"drop takes a table, not {table!r:.100}\n"
            "  db.tables() has them all; a view ends with view.close()"
        )
    found: object = engine.tables.get(table.plan.number)
    if found is not table:
        raise PlanError(f"table {table.name!r} is none of this database, or dropped already")
    if engine.pending is not None:
        raise TransactionError(
            f"table {table.name!r} cannot be dropped or replaced inside a transaction\n"
            "  do it after the `with` block"
        )


def _refusal(engine: Engine, table: Table[Any], found: list[Node]) -> str:
    """Return the message for a table that cannot be dropped, as the views in `found` read it."""
    return (
        f"table {table.name!r} cannot be dropped: it is read by {names_of_leaves(engine, found)}\n"
        "  close them first; drop(table, views=True) closes them too"
    )


def names_of_leaves(engine: Engine, found: list[Node]) -> str:
    """Return how messages name leaves: the first few, and the number of the others."""
    names = [_describe_leaf(engine, leaf) for leaf in found[:SHOWN]]
    names += [f"{len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return ", ".join(names)


def _describe_leaf(engine: Engine, leaf: Node) -> str:
    """Return how messages name a leaf: the view, with its place, or the subscription."""
    channel, view = leaf.leaf, engine.views.get(leaf.rank)
    for number, views in engine.constraints.items():
        if view in views:
            return f"a constraint of table {engine.tables[number].name!r}"
    if view is None:
        return f"a subscription made at {channel.place}"
    return f"{channel}" if channel.name is None else f"{channel} ({channel.place})"


# Compare all views of a database with their queries.


def verify_views(engine: Any, views: Sequence[AnyView]) -> None:
    """Raise `VerificationError` unless each view has the rows of its query.

    With `Database(strict=True)` the tables that the queries read are verified, too.
    """
    engine.check_open()
    if not views:
        return
    with engine.inside():
        engine.offloading.flush()
        _verify(engine, views)
        if engine.strict:
            read = {id(t): t for view in views for t in tables(view.relation.plan)}
            for table in read.values():
                engine.table_of(table).verify()


def _has_log(engine: Any, node: Any) -> bool:
    """Return True for a durable stream; a part of a late view is no table."""
    table = engine.tables.get(node.number)
    return table is not None and table._log is not None


def _verify(engine: Any, views: Sequence[AnyView]) -> None:
    """Compare views with their queries, evaluated with their checks of equality.

    If a `==` raises in the evaluation, checks are added, and the views are evaluated again.
    """
    queries = engine.queries
    while True:
        shown = [(queries.base(v.relation.plan), v._contents, str(v._channel)) for v in views]
        try:
            verify_together(
                shown,
                lambda t: engine.table_of(t)._all(),
                engine.graph.running(),
                lambda t: t.stored or _has_log(engine, t),
            )
            return
        except Exception as error:
            written = [view.relation.plan for view in views]
            if not any(equality_checks.check_again(queries, each, error) for each in written):
                raise
