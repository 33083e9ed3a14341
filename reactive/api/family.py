"""Families: one query for many values of a parameter, each with a view of its own while it is held.

    family = db.family(lambda customer: orders.where(lambda o: o.customer == customer))
    family["ann"]       the view of the orders of ann: the same one while somebody holds it

The function is called once for each view that is made, so that it may make any query of its
parameters. Queries that differ in constants alone are planned once.

State:  a weak reference per view that somebody holds.
Cost:   of a view that is held, that of a look-up; of a new one, that of `Relation.materialize`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, cast
from weakref import WeakValueDictionary

from optimizer.callables.opaque import opaque
from optimizer.errors import PlanError
from reactive.api.callables import kind_shown
from reactive.api.relation import Relation
from reactive.engine.compiler.definition import agree
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.runtime.closeable import Closeable
from reactive.engine.runtime.copying import NotCopied
from reactive.errors import ClosedError

if TYPE_CHECKING:
    from reactive.api.view import View
    from reactive.engine.transactions.engine import Engine

K = TypeVar("K")
Ts = TypeVarTuple("Ts")


@boundary
class Family(NotCopied, Closeable, Generic[K, *Ts]):
    """The views of one query by the value of its parameter. Made by `Database.family`.

    `family[value]` is a view, and the same one as long as somebody holds it; of several parameters
    it is `family[first, second]`. Length, iteration and `in` are about the values whose views are
    held.

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
        self._least, self._most = _parameters(function)
        self._function = function
        self._label = str(opaque(function, self._most, "family"))
        self._held: WeakValueDictionary[Any, View[*Ts]] = WeakValueDictionary()
        self._is_closed = False

    def __getitem__(self, value: K) -> View[*Ts]:
        """The view for a value of the parameter, made if nobody holds it.

        Raises
        ------
        TypeError: the value has no hash.
        PlanError: the function gives no relation of this database; or it takes another number of
            parameters.
        ClosedError: the family was closed.
        """
        try:
            key = self._key(value)
            found = self._held.get(key)
            return found if found is not None and not found.closed else self._made(key)
        except Exception as error:
            hide(error)
            raise

    def __contains__(self, value: object) -> bool:
        """Whether somebody holds the view of a value."""
        found = self._held.get(_exactly(value))
        return found is not None and not found.closed

    def __iter__(self) -> Iterator[K]:
        """The values whose views somebody holds, in the order in which they were made."""
        held = [key[0] for key, view in self._held.items() if not view.closed]
        return iter(cast("list[K]", held))

    def __len__(self) -> int:
        """How many views somebody holds."""
        return sum(not view.closed for view in self._held.values())

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
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
        """What the view of a value is held by."""
        if self._is_closed:
            raise ClosedError(f"{self._called()} is closed\n  make another one")
        try:
            key = _exactly(value)
            hash(key)
        except TypeError as error:
            raise TypeError(
                f"{self._called()}: {value!r:.100} is no value of a parameter: {error}\n"
                "  views are found by it; use a tuple or a frozenset"
            ) from None
        return key

    def _made(self, key: Any) -> View[*Ts]:
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
        if self._most == 1:
            return (value,)
        if not isinstance(value, tuple) or not self._least <= len(value) <= self._most:
            raise PlanError(
                f"{self._called()} takes {self._most} parameters, not {value!r:.100}\n"
                "  family[first, second] gives one value for each"
            )
        return value


def _parameters(function: Any) -> tuple[int, int]:
    """How many values a function has to be given, and may be given."""
    if not callable(function):
        raise PlanError(
            f"family takes a callable, parameter -> relation, not {function!r:.100}\n"
            "  lambda customer: orders.where(lambda o: o.customer == customer)"
        )
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    every = list(inspect.signature(function).parameters.values())
    given = [parameter for parameter in every if parameter.kind in kinds]
    if not given or any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in every):
        raise PlanError(
            f"family takes a function of one or more named parameters, not {function!r:.100}\n"
            "  without a parameter there is one view: materialize() makes it"
        )
    least = [parameter for parameter in given if parameter.default is inspect.Parameter.empty]
    return len(least), len(given)


def _exactly(value: Any) -> tuple[Any, Any]:
    """A value, and what tells it from equal ones that a query tells apart: `1`, `1.0`, `True`."""
    return value, _kind(value)


def _kind(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_kind, value))
    return (float, repr(value)) if type(value) is float else type(value)
