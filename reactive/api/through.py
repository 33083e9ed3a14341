"""The plan of an operator of the user's own: `relation.through(MyOperator, other, limit=5)`.

    Values(begin) + numbered(relation) + numbered(other)   in one group, which the operator keeps

As in the plan of `apply`, `Values(begin)` keeps the group alive if all relations are empty. Two
operators of one class with equal arguments, over equal relations, are one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, ClassVar

from optimizer import plan
from optimizer.callables.captures import meaning
from optimizer.errors import PlanError
from optimizer.plans.facts import Cost
from optimizer.plans.nodes.groups import kept_by
from optimizer.plans.properties import free, may_be_negative
from optimizer.record import record
from reactive.api.nesting import number_relations, one_group
from reactive.engine.collections.bag import Bag
from reactive.engine.operators.own_operator import (
    Operator,
    OperatorState,
    OwnOperators,
    evaluate,
)


@record
class OperatorFunction:
    """The function of the plan that stands for an operator of the user's own.

    `inputs` is the number of its inputs; 0 if rows have no number.
    """

    kind: type[Operator[Any, Any]]
    arguments: Mapping[str, Any] = field(compare=False)
    meaning: Any = field(repr=False)
    inputs: int
    is_checked: bool
    shape: ClassVar[Any] = None
    method: ClassVar[str] = "through"
    cost: ClassVar[Cost] = Cost.MATCHES
    stays_whole: ClassVar[bool] = True

    def __call__(self, key: Any, rows: Bag[Any]) -> Any:
        """Return the rows of a new operator for all rows of a group."""
        return Bag(dict(evaluate(self.kept()(), list(rows.items()))))

    def operator(self, key: Any, new: Callable[[], OperatorState]) -> OwnOperators:
        """Return the engine's operator of the groups."""
        return OwnOperators(key, new)

    def kept(self) -> Callable[[], OperatorState]:
        """Return the maker of the state of a group."""
        return lambda: OperatorState(self._new, self.inputs, is_checked=self.is_checked)

    def _new(self) -> Operator[Any, Any]:
        return self.kind(**self.arguments)

    @property
    def is_bounded(self) -> bool:
        """True if the class says that its state is bounded."""
        return self.kind.is_bounded

    def limited(self, item: int, most: int) -> Any:
        """Return None: the rows that are left out may change others."""
        return None

    def dropping(self) -> Any:
        """Return itself: what the operator raises stays an error."""
        return self


def plan_through(
    kind: Any, sources: tuple[plan.Node, ...], arguments: Mapping[str, Any], engine: Any
) -> plan.Node:
    """Return the plan of an operator over whole relations.

    Raises
    ------
    PlanError: `kind` is no class of operators, or its step does not take so many deltas.
    """
    function = _checked(kind, sources, arguments, len(sources), engine)
    return one_group(number_relations(sources), kept_by(function, _name(kind, arguments)))


def plan_through_groups(
    kind: Any, source: plan.Node, key: Any, arguments: Mapping[str, Any], engine: Any
) -> plan.Node:
    """Return the plan of one operator for each group: its rows, each after the key of its group."""
    function = _checked(kind, (source,), arguments, 0, engine)
    return plan.Reduce(source, key, kept_by(function, _name(kind, arguments)))


def _checked(
    kind: Any,
    sources: tuple[plan.Node, ...],
    arguments: Mapping[str, Any],
    inputs: int,
    engine: Any,
) -> OperatorFunction:
    """Return the function of an operator; refuse a class or arguments that do not fit."""
    if not isinstance(kind, type) or not issubclass(kind, Operator):
        shown = f"{type(kind).__name__}(...)" if isinstance(kind, Operator) else repr(kind)
        raise PlanError(
            f"through takes a class derived from Operator, not {shown:.80}\n"
            "  the arguments of its __init__ are named: through(MyOperator, other, limit=5)"
        )
    try:
        made = kind(**arguments)
    except TypeError as error:
        raise PlanError(f"through cannot make {kind.__name__}: {error}") from error
    count = len(sources)
    try:
        inspect.signature(made.step).bind(*[()] * count)
    except TypeError:
        raise PlanError(
            f"{kind.__name__}.step does not take {count} delta{'s' * (count > 1)}: "
            f"step{inspect.signature(made.step)}\n"
            "  it takes a delta for each relation: a.through(MyOperator, b) calls step(of_a, of_b)"
        ) from None
    is_open = any(map(free, sources))  # in a recursion, whose database is not known yet
    is_checked = not is_open and engine.strict and not any(map(may_be_negative, sources))
    given = tuple((name, meaning(value)) for name, value in sorted(arguments.items()))
    return OperatorFunction(kind, dict(arguments), given, inputs, is_checked)


def _name(kind: type, arguments: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name}={value!r:.40}" for name, value in arguments.items())
    return f"{kind.__name__}({given})"
