"""A fragment as what its state holds, how that is merged, and what its output is made of it.

    where total > 10                answer
      aggregate Sum, Avg by town    h: sums and counts of each group      merge: +
        join ...                    answer: Avg = sum / count, then what is above

Source: [mrql] a homomorphism, its monoid, and an answer function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from optimizer import plan
from optimizer.expressions.text import written
from optimizer.plans.explain import headline
from reactive.engine.operators import accumulators
from reactive.engine.operators.plain import chain_over
from reactive.engine.operators.tolerant import Tolerant

_HELD = {
    accumulators.CountAccumulator: "counts",
    accumulators.SumAccumulator: "sums",
    accumulators.AvgAccumulator: "sums and counts",
    accumulators.MinAccumulator: "values with their weights",
    accumulators.MaxAccumulator: "values with their weights",
    accumulators.CountDistinctAccumulator: "values with their weights",
    accumulators.CollectAccumulator: "values with their weights",
    accumulators.UserAccumulator: "values with their weights",
    accumulators.MonoidAccumulator: "values with their weights",
}
_SHOWN = {
    accumulators.AvgAccumulator: "Avg = sum / count",
    accumulators.MinAccumulator: "Min = least value",
    accumulators.MaxAccumulator: "Max = greatest value",
    accumulators.CountDistinctAccumulator: "CountDistinct = number of values",
    accumulators.CollectAccumulator: "Collect = the values",
    accumulators.UserAccumulator: "what its callables make of the values",
    accumulators.MonoidAccumulator: "what its callables make of the values",
}
ADDED = "+, of weights and sums"


@dataclass(frozen=True, slots=True)
class Split:
    """What the last operator of a fragment that keeps anything holds, and what follows on it."""

    held: str
    merge: str
    answer: tuple[str, ...]

    def lines(self) -> list[str]:
        """For `explain`."""
        answer = ", then ".join(self.answer) or "as it is"
        return [f"h: {self.held}", f"merge: {self.merge}", f"answer, of what changed: {answer}"]


def split_of(node: plan.Node) -> Split:
    """How a fragment splits.

    >>> given = plan.Recursive("part", 0, "input 1", False)
    >>> split_of(plan.Distinct(given)).lines()[0]
    'h: the weight of each row'
    """
    chain, top = chain_over(node)
    held, shown = _of(top)
    return Split(held, ADDED, (*shown, *map(headline, chain)))


def _of(node: plan.Node) -> tuple[str, tuple[str, ...]]:
    """What an operator holds, and what is made of it."""
    match node:
        case plan.Aggregate():
            return _of_aggregate(node)
        case plan.Top():
            return f"the rows by {written(node.key)}", (headline(node),)
        case plan.Reduce():
            return f"the rows by {written(node.key)}", (f"what {written(node.function)} gives",)
        case plan.OrderBy():
            return "the rows, and the first of them apart", (headline(node),)
        case plan.Distinct():
            return "the weight of each row", ("1 of each row that is there",)
        case plan.SemiJoin() | plan.AntiJoin():
            is_semi = isinstance(node, plan.SemiJoin)
            return "the rows of both sides by key", (
                f"those {'with' if is_semi else 'without'} a partner",
            )
        case plan.OuterJoin():
            return "the rows of both sides by key", ("pairs, and rows without a partner",)
        case plan.Join():
            return "the rows of both sides by key", ("their pairs",)
        case plan.UnionAll(left, right):
            return " and ".join(_of(side)[0] for side in (left, right)), ("rows of both",)
        case plan.Recursive():
            return "rows", ()
        case plan.Fixpoint() | plan.Iterate() | plan.Component():
            return "the rows of its relations and of its sides", (
                "what it comes to over these, less what it was",
            )
        case (
            plan.Union()
            | plan.Difference()
            | plan.DifferenceAll()
            | plan.Intersection()
            | plan.IntersectionAll()
        ):
            return "the weights of each row on both sides", (headline(node),)
        case _:
            return f"what {headline(node)} keeps", ()


def _of_aggregate(node: plan.Aggregate) -> tuple[str, tuple[str, ...]]:
    kinds = [type(folded.accumulator) for folded in map(_as_written, node.aggregates)]
    held = list(dict.fromkeys(_HELD[kind] for kind in kinds if kind in _HELD))
    shown = tuple(dict.fromkeys(_SHOWN[kind] for kind in kinds if kind in _SHOWN))
    of = "of all rows" if node.key is None else f"by {written(node.key)}"
    return f"{', '.join(held)} {of}", shown


def _as_written(folded: plan.Folded) -> plan.Folded:
    """Return the aggregate without the policy of its view."""
    own = folded.accumulator
    return replace(folded, accumulator=own.inner) if isinstance(own, Tolerant) else folded
