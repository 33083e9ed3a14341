"""Functors of the user: Python callables, with the types that a program declares.

.functor shout(text: symbol): symbol            functors={"shout": lambda text: text + "!"}
loud(@shout(x)) :- word(x).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from optimizer.errors import PlanError
from reactive.languages.datalog import rules
from reactive.languages.datalog.functors import UNSIGNED_BITS, Ordinals, signed, unsigned
from reactive.languages.datalog.inference import KINDS, Kind, ProgramTypes
from reactive.languages.datalog.tokens import suggest_name, wrong

Functions = Mapping[str, Callable[..., Any]]


class OwnFunctors:
    """The callables of a program by name, and the numbers that its `ord` and `autoinc` give.

    Raises
    ------
    PlanError: the program does not declare a callable, or with other arguments or types.
    """

    def __init__(self, types: ProgramTypes, functions: Functions, bits: int | None) -> None:
        self.ordinals = Ordinals()
        self._functions: dict[str, Any] = {}
        for name, function in functions.items():
            if name not in types.functors:
                hint = suggest_name(name, types.functors, "there are") or "declare it by .functor"
                raise PlanError(f"functors: the program declares no functor {name!r}\n  {hint}")
            _check(name, function, *types.functors[name])
            self._functions[name] = TypedFunctor(name, function, types, bits)

    def function(self, functor: rules.Functor) -> Any:
        """Return the callable of a functor; raises if none was given."""
        name = functor.name[1:]
        if name not in self._functions:
            remedy = f'give it: db.datalog(text, functors={{"{name}": ...}})'
            raise wrong(functor.at, f"functor {functor.name!r} has no callable", remedy)
        return self._functions[name]


def _check(name: str, function: Any, arguments: tuple[Kind, ...], result: Kind) -> None:
    """Refuse a callable that takes another number of arguments, or is annotated with other types.

    A callable without a signature, or with annotations that cannot be read, is not checked.
    """
    if not callable(function):
        raise PlanError(f"functors: {name!r} is no callable, but {function!r:.60}")
    try:
        signature = inspect.signature(function, eval_str=True)
    except (TypeError, ValueError, NameError):
        return
    try:
        bound = signature.bind(*arguments).arguments
    except TypeError:
        raise PlanError(
            f"functors: {name!r} is declared with {len(arguments)} arguments, and takes {signature}"
        ) from None
    hints = {name: each.annotation for name, each in signature.parameters.items()}
    declared = [*zip(bound, arguments, strict=False), ("return", result)]
    for place, kind in declared:
        wanted = KINDS.get(kind.family)
        found = hints.get(place, signature.return_annotation)
        if wanted and found in (int, float, str, bool, bytes) and found is not wanted:
            what = "result" if place == "return" else f"argument {place!r}"
            raise PlanError(
                f"functors: the {what} of {name!r} is annotated {found.__name__}, and declared "
                f"{kind}, which is {wanted.__name__}"
            )


class TypedFunctor:
    """A callable whose results are checked to be of the declared type, and put in its range."""

    def __init__(self, name: str, function: Any, types: ProgramTypes, bits: int | None) -> None:
        _, self._result = types.functors[name]
        self._name, self._function, self._bits = name, function, bits
        self._made: Any = (
            types.record_class(self._result) if self._result.family == "record" else None
        )
        self.__name__ = name

    def __call__(self, *arguments: Any) -> Any:
        found = self._function(*arguments)
        family = self._result.family
        wanted = KINDS.get(family)
        if wanted is None:
            return self._record(found) if self._made is not None else found
        if wanted is float and type(found) is int:
            return float(found)
        if not isinstance(found, wanted) or isinstance(found, bool):
            raise self._wrong(found)
        if family == "unsigned":
            return unsigned(found, self._bits or UNSIGNED_BITS)
        return found if family != "number" or self._bits is None else signed(found, self._bits)

    def _record(self, found: Any) -> Any:
        """Return a record; of a plain tuple, the record of its items."""
        if found is None or isinstance(found, self._made):
            return found
        if type(found) is not tuple or len(found) != len(self._made._fields):
            raise self._wrong(found)
        return self._made(*found)

    def _wrong(self, found: Any) -> TypeError:
        return TypeError(
            f"functor {self._name!r} is declared {self._result}, and gave {found!r:.60}"
        )
