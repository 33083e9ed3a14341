"""Keyed tables as mappings: a key is a key of the mapping, and its row the value.

    table[1]  get  keys  values  items  in      reading by key
    table[1] = row    del table[1]    pop       changes by key, each a commit
    update(1, total=3)                          replace fields of the row with a key

Iteration and `len` are about rows, as in every table.

State:  none; `KeyedStore` has the rows by key.
Cost:   O(1) by key; `keys`, `values`, `items` O(rows).

Optimistic reads: read what only commits change, without entering the lock while no thread commits.

    sequence = db_lock.sequence
    no thread is inside  -->  read  -->  no thread entered meanwhile: return it
                                    -->  else read again, inside the lock

`Gate.read` does the same. Here it is generated as one function per method, because in a look-up of
40 nanoseconds one more call doubles the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import signature
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, overload

from typing_extensions import TypeVar

from optimizer.errors import PlanError
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.collections import weight_tree
from reactive.engine.collections.zset import Pair
from reactive.engine.runtime.boundary import boundary, hide, outermost
from reactive.engine.runtime.interrupts import is_common
from reactive.engine.transactions import patches
from reactive.errors import MissingKeyError, TableError

if TYPE_CHECKING:
    from optimizer import plan
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.statements import Statements


F = TypeVar("F", bound=Callable[..., Any])

_TEXT = """\
def reading({parameters}):
    db_lock = self._db_lock
    sequence = db_lock.sequence
    if not db_lock.depth and {ready}:
        try:
            found = {read}
            if {if_found} and not db_lock.depth and db_lock.sequence == sequence:
                return {give}
        except Exception as error:  # it may be due to what another thread does: it will show
            if not is_common(error): raise
    try:
        return carefully({parameters})
    except Exception as error:
        hide(error)
        raise
"""


def optimistic_read(
    read: str, *, ready: str, if_found: str = "True", give: str = "found"
) -> Callable[[F], F]:
    """Let a method evaluate an expression without the lock first; if it cannot, the method runs.

    Parameters
    ----------
    read: the expression, whose value is `found`, valid if no thread commits meanwhile.
    ready: a condition for trying it.
    if_found: a condition on `found` for returning it; by default any value is returned. Otherwise
        the method runs, which may find, for example, a NaN that is another object.
    give: the returned expression, by default `found`.

    >>> from reactive.engine.runtime.lock import DatabaseLock
    >>> class Counter:
    ...     _db_lock, found = DatabaseLock(), {"a": 1}
    ...     @optimistic_read("self.found[item]", ready="self.found")
    ...     def count(self, item): return 0
    >>> Counter().count("a"), Counter().count("b")
    (1, 0)
    """

    def build_read(carefully: F) -> F:
        parts = {"ready": ready, "read": read, "if_found": if_found, "give": give}

        def first(self: Any, *arguments: Any, **named: Any) -> Any:
            """Generate the method at the first call, and replace this function by it."""
            made = _reading(carefully, parts)
            for kind in type(self).__mro__:
                if vars(kind).get(carefully.__name__) is waiting:
                    setattr(kind, carefully.__name__, made)
            try:
                return made(self, *arguments, **named)
            except Exception as error:
                hide(error)
                raise

        waiting: Any = wraps(carefully)(first)
        return waiting  # type: ignore[no-any-return]

    return build_read


def _reading(carefully: F, parts: dict[str, str]) -> F:
    """Return a generated fast form of a method, which calls `carefully` in uncommon cases."""
    values = BoundValues()
    values.by_name |= {"carefully": carefully, "hide": hide, "is_common": is_common}
    parameters = ", ".join(signature(carefully).parameters)
    made: Any = build("reading", _TEXT.format(parameters=parameters, **parts), values)
    made.__defaults__ = carefully.__defaults__
    return wraps(carefully)(made)  # type: ignore[return-value]


T = TypeVar("T")
K = TypeVar("K", default=Any)
D = TypeVar("D")

NEAR = "self._is_near and not db_lock.is_special"
"""Condition for reading the rows of a table in place: they are stored in this process, and no
transaction is open.
"""
_ROW = "self._keyed.by_key.get(key)"
"""The row of a key, or None."""
_NOTHING: Any = object()
"""The default of an omitted argument."""


class KeyedMethod:
    """A method that only tables with a key have.

    `dict(table)` treats an object with `keys` as a mapping, and iterates over any other one.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = outermost(method)
        self.__doc__, self.__name__ = method.__doc__, method.__name__

    def __get__(self, table: Any, kind: type) -> Any:
        if table is None:
            return self._method
        if table.plan.key is not None:
            return MethodType(self._method, table)
        try:
            raise AttributeError(
                f"{self.__name__} of table {table.name!r}, which has no key\n  {_MAKE}",
                name=self.__name__,
                obj=table,
            )
        except AttributeError as error:
            hide(error)
            raise


@boundary
class KeyedRows(Generic[T, K]):
    """The methods of a table that find and change rows by key."""

    name: str
    plan: plan.Table
    _engine: Engine
    _do: Statements
    _keyed: Any

    if TYPE_CHECKING:

        def _reading(self) -> Any: ...
        def _visible(self) -> Any: ...
        def _holds(self) -> str: ...
        def _check_stored(self, what: str) -> None: ...
        def _write(self, statement: Callable[[Any], Sequence[Pair]], of: Any) -> None: ...
        def _write_many(
            self, statement: Callable[..., Sequence[Pair]], *arguments: Any
        ) -> None: ...

    # Reading.

    @optimistic_read(_ROW, ready=NEAR, if_found="found is not None")
    def __getitem__(self, key: K) -> T:
        """Return the row of a key. Only for keyed tables.

        Raises
        ------
        MissingKeyError: no row has the key.
        """
        row: T | None = self._find(key)
        if row is None:
            self._need_key("table[key]")
            raise self._missing(key)
        return row

    if TYPE_CHECKING:

        @overload
        def get(self, key: K) -> T | None: ...
        @overload
        def get(self, key: K, default: D) -> T | D: ...
        def get(self, key: K, default: Any = None) -> Any:
            """Return the row of a key, or the default. Only for keyed tables."""

        def keys(self) -> list[K]:
            """Return the key of each row, in the order of iteration. Only for keyed tables."""

        def values(self) -> list[T]:
            """Return the rows, in the order of iteration. Only for keyed tables."""

    else:

        @optimistic_read(_ROW, ready=NEAR, if_found="found is not None")
        def get(self, key, default=None):
            """Return the row of a key, or the default. Only for keyed tables."""
            if (found := self._find(key)) is None:
                self._need_key("get")
                return default
            return found

        def keys(self):
            """Return the key of each row, in the order of iteration. Only for keyed tables."""
            return [key for key, _ in self._by_key()]

        def values(self):
            """Return the rows, in the order of iteration. Only for keyed tables."""
            return [row for _, row in self._by_key()]

        keys, values = KeyedMethod(keys), KeyedMethod(values)

    def items(self) -> list[tuple[Any, Any]]:
        """Return each key with its row; without a key, each different row with its count.

        `zset().items()` has rows with counts for every table.
        >>> from reactive import Database
        >>> words = Database().table(str, key=len)
        >>> words.add_all(["a", "be"])
        >>> words.items(), list(words.zset().items())
        ([(1, 'a'), (2, 'be')], [('a', 1), ('be', 1)])
        """
        self._check_stored("items")
        return self._pairs() if self.plan.key is None else self._by_key()

    def zset(self) -> weight_tree.ZSet[T]:
        """Return the current rows with their weights. Cost: O(rows)."""
        self._check_stored("zset")
        return weight_tree.zset_of(self._pairs())

    # Changes.

    if TYPE_CHECKING:

        @overload
        def update(self, old: T, new: T, /) -> None: ...
        @overload
        def update(self, key: K, /, **fields: Any) -> None: ...

    def update(self, key: Any, new: Any = _NOTHING, /, **fields: Any) -> None:
        """Replace one copy of a row, or change fields of the row with a key, in one commit.

        `update(old, new)` replaces a row; `update(key, total=3)` changes fields, in a keyed table.
        Subscribers see one `updated`, also through `where`, `select` and inner joins.

        Raises
        ------
        MissingKeyError: no row has the key.
        TableError: the old row is absent, the new row is refused, or rows have no such field.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> subscription = words.select(len).subscribe(lambda delta: print(delta.updated))
        >>> words.add("to")
        ()
        >>> words.update("to", "not")
        ((2, 3),)
        >>> from typing import NamedTuple
        >>> Order = NamedTuple("Order", [("id", int), ("total", int)])
        >>> orders = Database().table(Order, key="id")
        >>> orders.add(Order(1, 2))
        >>> orders.update(1, total=3)
        >>> orders[1]
        Order(id=1, total=3)
        """
        try:
            if new is _NOTHING or fields:
                self._update_fields(key, new, fields)
                return
            update = self._do.update_one or self._do.update
            self._engine.write(self, lambda new: update(key, new), new)  # type: ignore[arg-type]
        except Exception as error:
            hide(error)
            raise

    def upsert(self, row: T) -> None:
        """Insert a row, or replace the row with its key. Only for keyed tables.

        Subscribers see a replacement as one `updated`, as with `update`.
        """
        try:
            self._need_key("upsert")
            self._engine.write(self, self._do.upsert, row)  # type: ignore[arg-type]
        except Exception as error:
            hide(error)
            raise

    def upsert_all(self, rows: Iterable[T]) -> None:
        """Upsert each row, in one commit."""
        self._need_key("upsert_all")
        self._write_many(self._do.upsert_all, list(rows))

    def delete(self, key: K) -> None:
        """Remove the row of a key. Only for keyed tables.

        Raises
        ------
        MissingKeyError: no row has the key.
        """
        try:
            self._need_key("delete")
            self._engine.write(self, self._do.delete, key)  # type: ignore[arg-type]
        except Exception as error:
            hide(error)
            raise

    if TYPE_CHECKING:

        @overload
        def pop(self, key: K) -> T: ...
        @overload
        def pop(self, key: K, default: D) -> T | D: ...

    def pop(self, key: K, default: Any = _NOTHING) -> Any:
        """Remove the row of a key and return it, or the default. Only for keyed tables.

        Raises
        ------
        MissingKeyError: no row has the key, and no default is given.

        >>> from reactive import Database
        >>> words = Database().table(str, key=len)
        >>> words[2] = "be"
        >>> words.pop(2), words.pop(2, None)
        ('be', None)
        """
        self._need_key("pop")
        gone: list[Any] = []

        def statement(key: Any) -> Sequence[Pair]:
            found = self[key] if default is _NOTHING else self.get(key)
            gone.append(found)
            return () if found is None else self._do.remove(found)

        self._write(statement, key)
        return default if gone[-1] is None else gone[-1]

    def __setitem__(self, key: K, row: T) -> None:
        """Upsert `row`; refuses a row with another key than `key`."""
        try:
            self._need_key("table[key] = row")
            found = self._key_of(row)
            if found is not _NOTHING and found != key:
                raise TableError(
                    f"cannot put {row!r:.200} at {key!r:.100} in table {self.name!r}: its key is "
                    f"{found!r:.100}\n  upsert(row) puts it at its own key"
                )
            self.upsert(row)
        except Exception as error:
            hide(error)
            raise

    def __delitem__(self, key: K) -> None:
        """Remove the row of a key, as `delete` does."""
        try:
            self.delete(key)
        except Exception as error:
            hide(error)
            raise

    # How the above is done.

    def _update_fields(self, key: Any, new: Any, fields: dict[str, Any]) -> None:
        """Change fields of the row with a key; refuses a new row beside them, or no fields."""
        if new is not _NOTHING:
            raise PlanError(
                f"update of table {self.name!r} takes a new row, or fields by their names, not "
                "both\n  update(old, new) replaces a row, update(key, total=3) changes fields"
            )
        if not fields:
            raise PlanError(
                f"update of table {self.name!r}: nothing says what is to be there\n"
                "  update(old, new) replaces a row, update(key, total=3) changes fields"
            )
        self._need_key("update(key, field=value)")
        self._change(key, fields)

    def _change(self, key: Any, fields: dict[str, Any]) -> None:
        self._write(lambda key: patches.assign_fields(self._do, key, fields), key)

    def _pairs(self) -> list[Pair]:
        """Return the rows that the caller sees, with their counts."""
        with self._reading():
            return list(self._visible().pairs())

    def _by_key(self) -> list[tuple[Any, Any]]:
        """Return the rows with their keys; raises if the table does not store its rows."""
        self._check_stored("keys")
        key: Any = self.plan.key
        key_of = key.function
        return [(key_of(row), row) for row, _ in self._pairs()]

    def _key_of(self, row: Any) -> Any:
        """Return the key of `row`, or `_NOTHING` if it raises: a statement refuses it later."""
        key: Any = self.plan.key
        try:
            return key.function(row)
        except Exception:
            return _NOTHING

    def _find(self, key: Any) -> Any:
        raise NotImplementedError

    def _need_key(self, what: str) -> None:
        """Refuse `what` if the table has no key."""
        if self.plan.key is None:
            raise TableError(f"{what} of table {self.name!r}, which has no key\n  {_MAKE}")

    def _missing(self, key: Any) -> MissingKeyError:
        """Return the error for a key that no row has."""
        return MissingKeyError(
            f"table {self.name!r} has no row with key {key!r}\n  {self._holds()}", key
        )


_MAKE = "make it with db.table(..., key=...)"
