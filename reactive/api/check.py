"""Compare a view with what Python makes of its text, for tests of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from reactive.api.equal_rows import same_as_bags
from reactive.api.query import Written
from reactive.api.text import plain
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import canonical
from reactive.engine.reference.order import runs
from reactive.engine.runtime.boundary import outermost
from reactive.errors import VerificationError

MOST_SHOWN = 5


@outermost
def check(*views: Any) -> None:
    """Compare views with what Python computes of the texts of their queries.

    Parameters
    ----------
    views: views of queries that were made by `Database.query` or `live`; others are verified
        by `View.verify`.

    The text runs over the rows of now, as plain lists. Where rows are tied, in `sorted(...)[:n]`
    and in `min` and `max` with a key, any of them is right.

    Raises
    ------
    VerificationError: a view differs; the message says in which rows.

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
        found = difference(view)
        if found is not None:
            raise VerificationError(f"{view._called()} is not what its text gives\n  {found}")


def difference(view: Any) -> str | None:
    """What a view and its text do not have in common; None if they are the same."""
    query = view.relation
    text, kind = query.text, query.kind
    shown = list(view)
    expected = text.run({}, tied=view._of_all_places() if kind == "order" else shown)
    if kind == "mapping":
        return _compared(shown, [pair_of(each) for each in expected.items()])
    rows = [expected] if kind == "value" else list(expected)
    if kind != "order":
        return _compared(shown, rows)
    form = form_of(shown)
    theirs = [alike(row, form) for row in rows]
    if shown == theirs or (len(shown) == len(theirs) and _are_tied(view, shown, theirs)):
        return None
    if shown == _in_sequence(text, form):
        return None
    return f"in order: {shown!r:.200}\n  and not {theirs!r:.200}"


def _are_tied(view: Any, shown: list[Any], theirs: list[Any]) -> bool:
    """Return True if rows of the text stand elsewhere only among rows whose keys are equal, and
    rows are shown without what they stand by: the text tells ties apart by what is not shown."""
    order = view.relation.plan
    if order.shown is None or order.limit is not None or order.offset:
        return False
    start = 0
    for alike_rows in runs(order, view._evaluated(order.input)):
        stop = start + len(alike_rows)
        wanted = Counter(alike_rows)
        if Counter(shown[start:stop]) != wanted or Counter(theirs[start:stop]) != wanted:
            return False
        start = stop
    return start == len(shown)


def _in_sequence(text: Any, form: Form) -> list[Any] | None:
    """The rows of a text over lists that stand by themselves, in which `sorted` keeps the order of
    what was sorted before; None if Python does not compare them."""
    try:
        return [alike(row, form) for row in text.run({}, is_by_itself=True)]
    except TypeError:
        return None


def pair_of(item: tuple[Any, Any]) -> tuple[Any, Any]:
    """A key and its value; the values of a group in no order."""
    key, value = item
    return key, Bag(map(plain, value)) if isinstance(value, list) else value


Form = Any
"""Where values have multisets: of one a list with the form of its values, of a tuple one for each
item, None of others."""


def form_of(values: Iterable[Any]) -> Form:
    """What all of some values have in common.

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
    """A value of a text as a view has it whose values have a form."""
    if isinstance(form, list) and isinstance(value, list):
        return Bag(alike(each, form[0]) for each in value)
    if isinstance(form, tuple) and type(value) is tuple and len(form) == len(value):
        return tuple(map(alike, value, form))
    return plain(value)


def _compared(mine: list[Any], theirs: list[Any]) -> str | None:
    form = form_of(mine)
    expected = [canonical(alike(row, form)) for row in theirs]
    if same_as_bags([(row, 1) for row in mine], expected):
        return None
    left, right = Bag(mine), Bag(expected)
    return (
        f"it has what the text does not give: {_more(left, right)}\n"
        f"  and lacks what it gives: {_more(right, left)}"
    )


def _more(of: Bag[Any], than: Bag[Any]) -> str:
    """What one has more of than the other."""
    counts = [(row, n - than.count(row)) for row, n in of.items()]
    found = [f"{n} x {row!r:.120}" for row, n in counts if n > 0]
    return ", ".join(found[:MOST_SHOWN]) or "nothing"
