"""The methods `head` and `first` of tables, relations and views, and `why` of views.

Reading a relation as if it had rows raises an error with the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from optimizer.errors import PlanError
from reactive.api import commits, proving
from reactive.api.each_row import each_row
from reactive.engine.runtime.boundary import boundary, hide
from reactive.errors import NoRows

if TYPE_CHECKING:
    from reactive.api.commits import Turning
    from reactive.api.obstacles import WhyNot
    from reactive.api.proofs import Proof
    from reactive.engine.dataflow.delta import Delta

NO_ROW: Any = object()
"""Stands for a row that is not given; None may be one."""
Ts = TypeVarTuple("Ts")
T = TypeVar("T")
D = TypeVar("D")
A = TypeVar("A")
B = TypeVar("B")
Cs = TypeVarTuple("Cs")


@boundary
class First(Generic[*Ts]):
    """Base of tables, views and relations: they have rows, or compute them."""

    _sql_columns: list[str] | None = None
    """The columns of a query that was written in SQL."""

    def _first_rows(self, n: int) -> list[Any]:
        """Return at most `n` rows."""
        raise NotImplementedError

    @overload
    def head(self: First[T], n: int) -> list[T]: ...
    @overload
    def head(self: First[A, B, *Cs], n: int) -> list[tuple[A, B, *Cs]]: ...
    def head(self, n: int) -> list[Any]:
        """Return the first `n` current rows, or fewer if there are fewer.

        An ordered relation returns them in its order, a table or a view in the order of iteration.
        A relation computes them each time, at the cost of making a view.

        Raises
        ------
        PlanError: `n` is not an int from 0 on.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> words.add_all(["three", "a", "to"])
        >>> words.order_by(len).head(2), words.head(1)
        (['a', 'to'], ['three'])
        """
        if type(n) is not int or n < 0:
            raise PlanError(f"head takes a number of rows, from 0 on, not {n!r:.60}")
        return self._first_rows(n)

    @overload
    def first(self: First[T]) -> T | None: ...
    @overload
    def first(self: First[T], default: D) -> T | D: ...
    @overload
    def first(self: First[A, B, *Cs]) -> tuple[A, B, *Cs] | None: ...
    @overload
    def first(self: First[A, B, *Cs], default: D) -> tuple[A, B, *Cs] | D: ...
    def first(self, default: Any = None) -> Any:
        """Return the first current row, or `default` if there is none; see `head`.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> words.first(), words.first(default="none")
        (None, 'none')
        """
        return next(iter(self._first_rows(1)), default)

    def __iter__(self) -> Any:
        return each_row(self, self._no_rows)

    if not TYPE_CHECKING:  # type checkers refuse these by themselves

        def __len__(self):
            try:
                raise NoRows(f"a relation is a query and has no rows to count\n  {_FIRST}")
            except NoRows as error:
                hide(error)
                raise

        def __getitem__(self, key):
            try:
                raise PlanError(self._not_found(key))
            except PlanError as error:
                hide(error)
                raise

    def _not_found(self, key: Any) -> str:
        """Return the error text for `[key]` on a query, or on a view without keys and order."""
        channel = getattr(self, "_channel", None)
        if channel is not None:
            return f"{channel} has no [{key!r:.100}]: its rows have no keys and no order\n  {_KEYS}"
        if isinstance(key, slice):
            return f"a relation is a query and has no part [{_slice(key)}]\n  {_PART}"
        of_field = f"; select({key!r}) is a query of one field" if isinstance(key, str) else ""
        return f"a relation is a query and has no row {key!r:.100}\n  {_FIRST}{of_field}"

    def _no_rows(self) -> Any:
        raise PlanError(f"a relation is a query and has no rows to iterate over\n  {_FIRST}")


def _slice(part: slice) -> str:
    """Return a slice as it is written between brackets."""
    ends = [part.start, part.stop, *([] if part.step is None else [part.step])]
    return ":".join("" if end is None else str(end) for end in ends)


_PART = "order_by(key).limit(n, offset=m) is a query of a part; a view of what is ordered has [m:n]"
_FIRST = "materialize() it first; the view has them"
_KEYS = "group_by(key).aggregate(...) has keys, order_by(key) an order; list(view) has all rows"


@boundary
class Explained(Generic[*Ts]):
    """Base of views: they tell why a row is there."""

    _explainer: Any = None

    def why(self, row: Any) -> Proof:
        """Return the lowest proof of a row: how it is made of rows of tables.

        Of several proofs it is one of the least height, and among those one with few facts. A view
        of groups takes the key of a group, too.

        Cost: of the rows found backwards from the row, through indexes. The first question makes
        the indexes, and views of recursions where the query runs none that has all their rows; the
        indexes are made again after a commit, except those of single fields of tables.
        Nothing is kept before the first question. Source: Soufflé's proof trees; here the heights
        are found and not stored.

        Raises
        ------
        PlanError: the view does not have the row; or no proof was found, as may be for callables
            that are not deterministic.
        TableError: the query reads a table that is not stored.
        TransactionError: a transaction is open that has changed something.

        >>> from reactive import Database
        >>> db = Database()
        >>> edges = db.table(tuple[int, int], name="edges")
        >>> edges.add_all([(1, 2), (2, 3)])
        >>> view = edges.select(lambda e: e[0] + e[1]).materialize("sums")
        >>> proof = view.why(5)
        >>> proof.name, proof.row, proof.facts()
        ('sums', 5, [('edges', (2, 3))])
        """
        with self._reading():  # type: ignore[attr-defined]
            return proving.explainer_of(self).why(proving.row_in(self, row))

    def whys(self, row: Any) -> Iterator[Proof]:
        """Yield all proofs of a row that do not contain themselves, each found when asked for.

        Their number may be exponential in the height. The rows must not change between two of them.

        >>> from reactive import Database
        >>> names = Database().table(tuple[str, int], name="names")
        >>> names.add_all([("a", 1), ("a", 2)])
        >>> view = names.select(lambda n: n[0]).distinct().materialize()
        >>> [proof.facts() for proof in view.whys("a")]
        [[('names', ('a', 1))], [('names', ('a', 2))]]
        """
        with self._reading():  # type: ignore[attr-defined]
            found = proving.explainer_of(self).whys(proving.row_in(self, row))
        while True:
            with self._reading():  # type: ignore[attr-defined]
                proof = next(found, None)
            if proof is None:
                return
            yield proof

    def diff(self) -> Delta[Any]:
        """Return how the rows differ from those of the last commit, inside `db.suppose()`.

        Raises
        ------
        TransactionError: no supposition has begun.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> words.add_all(["to", "be"])
        >>> lengths = words.select(len).materialize()
        >>> with db.suppose():
        ...     words.remove("be")
        ...     print(lengths.diff())
        Delta(version=2, removed=(2,))
        >>> len(lengths)
        2
        """
        with self._reading():  # type: ignore[attr-defined]
            return proving.supposed_delta(self)

    def why_not(self, row: Any = NO_ROW, /, **fields: Any) -> WhyNot:
        """Return why a row is not in the view, or no row with some values of fields.

        For each way to the row, that is what holds and what fails: missing rows of tables, a
        condition that is false, a row that is in the way, a place beyond a limit. Where the wanted
        values decide a whole row of a table, that row is named, and if adding the missing rows
        makes the row, the way is complete.

        Cost: as of `why`; of each input a few rows are followed.
        Source: Lee, Ludäscher, Glavic, PUG, VLDB Journal 2019.

        Raises
        ------
        PlanError: the view has the row; or neither a row nor fields are given, or both are.

        >>> from reactive import Database
        >>> db = Database()
        >>> edges = db.table(tuple[int, int], name="edges")
        >>> edges.add_all([(1, 2), (2, 3)])
        >>> hops = edges.join(edges, on=lambda a, b: a[1] == b[0])
        >>> view = hops.select(lambda a, b: (a[0], b[1])).materialize("hops")
        >>> print(view.why_not((1, 4))[0])
        edges (2, 4) is missing; edges (1, 2) holds
        """
        if (row is NO_ROW) is not bool(fields):
            raise PlanError(
                "why_not takes a row, or values of fields\n"
                '  view.why_not(row), view.why_not(town="Bonn")'
            )
        with self._reading():  # type: ignore[attr-defined]
            return proving.explainer_of(self).why_not(row, fields)

    def why_gone(self, row: Any) -> Turning:
        """Return the commit with which a row has gone, and which of its changes decided that.

        The kept commits are taken back one after the other, as in `db.suppose()`, until the row is
        there; `proof` tells why it was.

        Cost: that of the commits since, and of `why`.

        Raises
        ------
        PlanError: the row is there; or it was not there in any commit that is kept, see
            `Database.journal`.

        >>> from reactive import Database
        >>> db = Database(keep=100)
        >>> edges = db.table(tuple[int, int], name="edges")
        >>> ends = edges.select(lambda e: e[1]).distinct().materialize()
        >>> edges.add_all([(1, 2), (2, 3)])
        >>> with db.transaction(label="cleaning"):
        ...     edges.remove((2, 3))
        >>> print(ends.why_gone(3))
        3 has gone with commit 2 'cleaning'
          edges (2, 3) was removed
        """
        return commits.turning(self, row, has_gone=True)

    def since(self, row: Any) -> Turning:
        """Return the commit since which a row is there, and which of its changes decided that.

        Cost and errors are those of `why_gone`.

        >>> from reactive import Database
        >>> db = Database(keep=100)
        >>> words = db.table(str, name="words")
        >>> lengths = words.select(len).distinct().materialize()
        >>> words.add("to")
        >>> words.add("be")
        >>> lengths.since(2).version, lengths.since(2).facts
        (1, (('words', 'to', 1),))
        """
        return commits.turning(self, row, has_gone=False)
