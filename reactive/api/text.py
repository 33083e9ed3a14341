"""The text of a query, run over plain lists: what Python says that the query gives.

    debtors.on(orders=[...], customers=[...])

The function is made again with lists in the place of the relations that it names; so are functions
that it calls, and queries. One that calls itself is applied to the empty set, to what that gives,
and so on, until nothing changes. `sum` adds floats exactly, as views do.
"""

from __future__ import annotations

import builtins
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from operator import itemgetter
from types import CellType, CodeType, FunctionType, GeneratorType
from typing import Any

from optimizer.callables.loads import global_names
from optimizer.callables.source import code_of
from optimizer.comprehensions.functions import is_same_place
from optimizer.errors import PlanError
from optimizer.lifting.part import UNSET, resolve
from optimizer.record import record
from reactive.api.callables import Live
from reactive.api.comprehending import in_order
from reactive.engine.collections.order import tie_key

FIRST = ".0"


@record
class Text:
    """A function, and the relation whose rows it is given, if it is a generator's."""

    function: Any
    first: Any = None

    def run(
        self,
        lists: Mapping[str, Iterable[Any]],
        *,
        tied: Sequence[Any] | None = None,
        is_by_itself: bool = False,
    ) -> Any:
        """What Python computes, with these lists in the place of relations by their names.

        The others have their rows of now. With `tied`, rows with equal keys are in an order of
        their own, as in views; those that do not compare stand as they do in `tied`. With
        `is_by_itself`, the rows of now are sorted by themselves.
        """
        names = self.names()
        for name in lists:
            if name not in names:
                known = ", ".join(sorted(names))
                raise PlanError(f"the query reads no {name!r}\n  it reads {known}")
        run = _Run({name: list(rows) for name, rows in lists.items()}, tied)
        run.is_by_itself = is_by_itself
        if self.first is not None:
            rows = run.lists.get(_name_of(self.first))
            return list(run.made(self.function)(iter(run.rows_of(self.first, rows))))
        found = run.result(self.function)
        return list(found) if isinstance(found, GeneratorType) else found

    def names(self) -> set[str]:
        """The relations that it names."""
        names = _relations_of(self.function, set())
        return names if self.first is None else names | {_name_of(self.first)}


def _name_of(relation: Any) -> str:
    return str(getattr(relation, "name", None) or "rows")


def _relations_of(function: FunctionType, seen: set[CodeType]) -> set[str]:
    """The names of relations in a function, and in those that it calls."""
    found: set[str] = set()
    seen.add(function.__code__)
    for name in _names(function):
        value = resolve(function, name)
        called = _function_of(value)
        if called is not None and called.__code__ not in seen:
            found |= _relations_of(called, seen)
        elif isinstance(value, Live) and called is None:
            found.add(name)
    return found


def _names(function: FunctionType) -> tuple[str, ...]:
    """What a function reads from outside."""
    return (*function.__code__.co_freevars, *global_names(function.__code__))


def _function_of(value: Any) -> FunctionType | None:
    """A function of the user's, or that of a query."""
    if isinstance(value, FunctionType):
        return value
    text = getattr(value, "text", None) if isinstance(value, Live) else None
    made: Any = text.function if isinstance(text, Text) and text.first is None else None
    return made  # type: ignore[no-any-return]


class _Run:
    """One evaluation: the lists, and what functions that call themselves have given so far."""

    def __init__(self, lists: dict[str, list[Any]], tied: Sequence[Any] | None) -> None:
        self.lists = lists
        self.is_by_itself = False
        self._so_far: dict[CodeType, Any] = {}
        self._asked: set[CodeType] = set()
        self._standing: dict[int, Any] = {id(builtins.sum): exact_sum}
        if tied is not None:
            ties = Ties(tied)
            settled = {builtins.sorted: ties.sorted, builtins.min: ties.min, builtins.max: ties.max}
            self._standing |= {id(old): new for old, new in settled.items()}

    def result(self, function: FunctionType) -> Any:
        """What a function without parameters gives; the smallest set, if it calls itself."""
        code = function.__code__
        if code in self._so_far:
            self._asked.add(code)
            return self._so_far[code]
        self._so_far[code] = set()
        try:
            while True:
                found = self.made(function)()
                if code not in self._asked or found == self._so_far[code]:
                    return found
                self._so_far[code] = found
        finally:
            del self._so_far[code]
            self._asked.discard(code)

    def made(self, function: FunctionType) -> FunctionType:
        """The function over lists."""
        code = function.__code__
        cells = tuple(CellType(self._standing_for(function, name)) for name in code.co_freevars)
        names = {name: self._standing_for(function, name) for name in global_names(code)}
        known = {name: value for name, value in names.items() if value is not UNSET}
        module = {**known, "__builtins__": builtins, "__name__": function.__module__}
        made = FunctionType(code, module, function.__name__, function.__defaults__, cells or None)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    def _standing_for(self, function: FunctionType, name: str) -> Any:
        value = resolve(function, name)
        if value is UNSET and name == function.__name__:
            return _Result(self, function)
        called = _function_of(value)
        if name == function.__name__ and _is_again(called, function):
            return _Result(self, function)
        if called is not None:
            if not called.__code__.co_argcount and _relations_of(called, set()):
                return _Result(self, called)
            return self.made(called) if _relations_of(called, set()) else value
        if isinstance(value, Live):
            return self.rows_of(value, self.lists.get(name))
        return self._standing.get(id(value), value)

    def rows_of(self, relation: Any, given: list[Any] | None) -> list[Any]:
        """The rows that are given, or those of now."""
        if given is not None:
            return given
        if hasattr(relation, "materialize") and not hasattr(relation, "zset"):
            with relation.materialize() as view:
                return self._in_order_of(view)
        return self._in_order_of(relation)

    def _in_order_of(self, view: Any) -> list[Any]:
        """The rows of a table or view, as they stand or sorted by themselves."""
        is_sequence = hasattr(view, "_of_all_places")
        return sorted(view, key=tie_key) if self.is_by_itself and not is_sequence else list(view)


class _Result:
    """The result of another query, which a query calls, or iterates over by its name."""

    def __init__(self, run: _Run, function: FunctionType) -> None:
        self._run, self._function = run, function

    def __call__(self) -> Any:
        return self._run.result(self._function)

    def _rows(self) -> Any:
        found = self()
        if isinstance(found, dict):
            return list(found.items())
        return list(found) if isinstance(found, GeneratorType) else found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows())

    def __len__(self) -> int:
        return len(self._rows())

    def __contains__(self, row: object) -> bool:
        return row in self._rows()

    def __getitem__(self, key: Any) -> Any:
        return self()[key]


def _is_again(called: FunctionType | None, function: FunctionType) -> bool:
    """Whether a function is the same, or was made of the same lines before."""
    if called is None:
        return False
    code, own = code_of(called), function.__code__
    same = code is not None and own.co_name != "<lambda>" and is_same_place(code, own)
    return code is own or same


def exact_sum(values: Iterable[Any], start: Any = 0) -> Any:
    """As `sum`; floats are added exactly, and rounded once."""
    every = list(values)
    numbers = all(isinstance(v, int | float) for v in every)
    if numbers and any(isinstance(v, float) for v in every):
        return math.fsum(every) + start if start else math.fsum(every)
    return sum(every, start)


def plain(value: Any) -> Any:
    """A value as a row has it: lists as tuples, sets frozen."""
    if isinstance(value, set | frozenset):
        return frozenset(map(plain, value))
    if isinstance(value, list) or type(value) is tuple:
        return tuple(map(plain, value))
    if isinstance(value, Mapping):
        return frozenset((plain(k), plain(v)) for k, v in value.items())
    return value


class Ties:
    """What sorts rows whose order does not matter: as in views, and else as in a list.

    >>> Ties([2 + 0j, 1 + 0j]).sorted([1 + 0j, 2 + 0j, 3 + 0j], key=lambda number: number.imag)
    [(2+0j), (1+0j), (3+0j)]
    """

    def __init__(self, rows: Sequence[Any]) -> None:
        self._places: defaultdict[Any, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            self._places[row].append(place)

    def sorted(self, values: Iterable[Any], *, key: Any = None, reverse: bool = False) -> list[Any]:
        """As `sorted`."""
        of: Callable[[Any], Any] = (lambda row: row) if key is None else key
        return list(in_order([(of(value), value) for value in self._placed(values)], reverse))

    def min(self, *values: Any, **options: Any) -> Any:
        """As `min`."""
        return self._best(min, values, options, reverse=False)

    def max(self, *values: Any, **options: Any) -> Any:
        """As `max`."""
        return self._best(max, values, options, reverse=True)

    def _best(
        self,
        best: Callable[..., Any],
        values: tuple[Any, ...],
        options: dict[str, Any],
        *,
        reverse: bool,
    ) -> Any:
        if len(values) != 1 or options.get("key") is None:
            return best(*values, **options)
        (found,) = values
        ordered = self.sorted(found, key=options["key"], reverse=reverse)
        return ordered[0] if ordered else best(*values, **options)

    def _placed(self, values: Iterable[Any]) -> list[Any]:
        """Values as they stand in the list, each copy at a place; those that do not behind."""
        every = list(values)
        places = []
        copies: Counter[Any] = Counter()
        try:
            for value in map(plain, every):
                known = self._places.get(value, ())
                places.append(known[copies[value]] if copies[value] < len(known) else inf)
                copies[value] += 1
        except TypeError:  # what has no hash is no row
            return every
        return [value for _, value in sorted(zip(places, every, strict=True), key=itemgetter(0))]
