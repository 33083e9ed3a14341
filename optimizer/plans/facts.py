"""Plan nodes: their common base, the facts that each node states about itself, and its cost.

Each node class states its facts, so that other modules do not depend on the class:

    class Where(Node):
        input: Node
        predicate: Function

        facts = Facts(
            calls=(Calls("predicate", of_input),),
            raises=False,
            recursion=monotone,
            shapes=same_rows,
            is_set=same,
            costs=constant,
            degree=degree_as_input,
            headline=...,
        )

Facts have no defaults: a node class without one of them cannot be defined. Callers are `traverse`
(callables), `raising`, `strata`, `properties` and `explain`.

A fact of the rows is a function of the node and of the same fact of its inputs, so that
`properties` can compute it for deep plans without recursion.

`Tree` compares, hashes and shows trees of nodes of any depth. The methods that dataclasses generate
call themselves for each input, and Python allows about a thousand nested calls.

The cost of one changed row in an operator, and the degree of a query, are known before it runs:

    O(1)        whatever the tables hold
    O(log n)    a place among rows in order
    matches     the rows of the other side that match the row
    group       all rows of its group
    rounds      the rows that a recursion or an iteration derives again
    all pairs   all rows of the other side

Each emitted row of an operator is a changed row for the operator above.

The degree is the number of times that a delta of the query's delta can be taken until it reads
nothing of the database: 1 for a node that treats each row by itself, and the sum of both sides for
a join. A node that compares its rows with earlier rows, as `distinct` does, has none.

Source: [slender] chapter 3: cost and degree of nested queries, applied to the plan that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field, fields
from enum import IntEnum
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from optimizer.expr import Function, Lifted
from optimizer.expressions.knowledge import Shape, Shapes, shape_of
from optimizer.expressions.text import naming_of
from optimizer.record import record

Barrier = Literal["negation", "aggregate", "operator", "order", "past"]
"""Reason why a recursion may not pass through an input: a new row may delete rows, or the rows are
of another commit."""


@record
class Calls:
    """A field of a node that holds a callable, or several.

    Parameters
    ----------
    path: the name of the field; through other records, and tuples of them, by dots.
    given: shapes of the node's inputs, place in the tuple -> shapes of the arguments.
    of_rows: True if it is called for each row, so that lifting it pays.
    """

    path: str
    given: Callable[[Sequence[Shapes], int], Shapes]
    of_rows: bool = True
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.path.split(".")))


@record
class Facts:
    """Everything that the optimizer needs to know of a kind of node.

    Parameters
    ----------
    calls: the fields with the user's callables.
    raises: True if it may raise though no callable does: it iterates, compares or adds values.
    recursion: per input, why a recursion may not pass through it; None where it may.
    shapes: the shape of each binding of its rows.
    is_set: True if no row occurs twice.
    costs: the cost of one changed row of each input, if partners are found by a key.
    degree: the number of deltas of deltas until nothing of the database is read.
    headline: the node in words, without its inputs.
    """

    calls: tuple[Calls, ...]
    raises: bool
    recursion: Callable[[Any], Sequence[Barrier | None]]
    shapes: Callable[[Any, Sequence[Shapes]], Shapes]
    is_set: Callable[[Any, Sequence[bool]], bool]
    costs: Callable[[Any], Costs]
    degree: Callable[[Any, Sequence[float]], float]
    headline: Callable[[Any], str]


# Shapes of the arguments of callables.


def of_input(inputs: Sequence[Shapes], place: int) -> Shapes:
    """Return the bindings of the first input, whatever `place` is."""
    return inputs[0]


def row_of_right_input(inputs: Sequence[Shapes], place: int) -> Shapes:
    """Return a row of the second input, as one value, whatever `place` is."""
    return (as_row(inputs[1]),)


def bindings_of_pair(inputs: Sequence[Shapes], place: int) -> Shapes:
    """Return the bindings of the first input and a row of the second, whatever `place` is."""
    return (*inputs[0], as_row(inputs[1]))


def of_each(inputs: Sequence[Shapes], place: int) -> Shapes:
    """Return the bindings of the input with the place of the callable."""
    return inputs[place]


def as_row(of: Shapes) -> Shape:
    """Return the shape of a row as one value."""
    return of[0] if len(of) == 1 else of


# Recursion.


def monotone(node: Any) -> Sequence[Barrier | None]:
    """Allow a recursion through each input, as a new row deletes no row: None for each."""
    return (None,) * len(node.inputs())


def orders(node: Any) -> Sequence[Barrier | None]:
    """Refuse a recursion through each input: a new row may take the place of another."""
    barrier: Barrier = "order"
    return (barrier,) * len(node.inputs())


def right_negates(node: Any) -> Sequence[Barrier | None]:
    return (None, "negation")


def negates_of_outer_join(node: Any) -> Sequence[Barrier | None]:
    """Allow a recursion through the left of a left join only.

    A row of the other side may delete the row that pairs a left row with None.
    """
    return (None, "negation") if node.kind == "left" else ("negation", "negation")


def both_negate(node: Any) -> Sequence[Barrier | None]:
    return ("negation", "negation")


# Shapes of rows.


def same_rows(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    return inputs[0]


def shapes_of_pairs(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    return bindings_of_pair(inputs, 0)


def rows_of_both(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    """Return the shapes that the rows of both inputs have."""
    return tuple(a if a == b else None for a, b in zip(*inputs, strict=True))


def rows_of_difference_all(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    """Return the left shapes if the right input is empty, else the shapes that both inputs share.

    When a right row is deleted, that object can be emitted as the result row.
    """
    return inputs[0] if type(node.right).__name__ == "Empty" else rows_of_both(node, inputs)


def rows_of_outer_join(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    """Return the shapes of an outer join's bindings; None where a partner may be missing."""
    left, right = inputs
    return (
        *(left if node.kind == "left" else (None,) * len(left)),
        as_row(right) if node.kind == "right" else None,
    )


def shapes_of_groups(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    """Return the shapes of the key and the aggregates; or of one record of them."""
    if node.row is not None:
        return (node.row,)
    key = () if node.key is None else (shape_made(node.key, inputs[0]),)
    return (*key, *[None] * len(node.aggregates))


def shape_made(function: Function, of: Shapes) -> Shape:
    """Return the shape of a callable's result."""
    naming = naming_of(function)
    if naming is not None:
        kind: type = naming.kind
        return kind
    return shape_of(function.body, of) if isinstance(function, Lifted) else None


def one_unknown(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    return (None,)


# Sets.


def always(node: Any, inputs: Sequence[bool]) -> bool:
    return True


def never(node: Any, inputs: Sequence[bool]) -> bool:
    return False


def as_first(node: Any, inputs: Sequence[bool]) -> bool:
    return inputs[0]


def if_both(node: Any, inputs: Sequence[bool]) -> bool:
    return all(inputs)


def if_either(node: Any, inputs: Sequence[bool]) -> bool:
    return any(inputs)


def is_set_of_outer_join(node: Any, inputs: Sequence[bool]) -> bool:
    """Return False for a full join: rows that are None may be without partner on both sides."""
    return node.kind != "full" and all(inputs)


_ITERATIVE = ("__eq__", "__hash__", "__repr__", "__getstate__")


@record
class Tree:
    """Base of nodes whose inputs are nodes: the fields that hold one, or a tuple of them.

    Fields that are not compared do not count for equality. `known` caches facts about a node.
    """

    known: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        for name in _ITERATIVE:  # dataclass methods recurse into inputs, and pickle `known`
            setattr(cls, name, getattr(Tree, name))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Tree) and _are_equal(self, other))

    def __hash__(self) -> int:
        waiting = [] if "hash" in self.known else [self]
        while waiting:
            node = waiting[-1]
            missing = [source for source in node.inputs() if "hash" not in source.known]
            waiting.extend(missing)
            if not missing:
                waiting.pop()
                inputs = [source.known["hash"] for source in node.inputs()]
                node.known["hash"] = hash((type(node), *inputs, *own_values_of(node)))
        found: int = self.known["hash"]
        return found

    def __repr__(self) -> str:
        waiting: list[Any] = [self]
        shown: list[str] = []
        while waiting:
            value = waiting.pop()
            shown.append(value if isinstance(value, str) else f"{type(value).__name__}(")
            if not isinstance(value, str):
                waiting.extend(reversed([*_repr_parts(value), ")"]))
        return "".join(shown)

    def __getstate__(self) -> list[Any]:
        """Return the fields as dataclasses restore them; `known` is empty, as hashes differ by
        process."""
        return [{} if f.name == "known" else getattr(self, f.name) for f in fields(self)]

    def inputs(self) -> tuple[Any, ...]:
        """Return the nodes whose rows this one reads, left to right."""
        if "inputs" in self.known:
            return self.known["inputs"]  # type: ignore[no-any-return]
        kind: Any = type(self)
        found: list[Any] = []
        for name in _compared_fields(kind):
            value = getattr(self, name)
            if isinstance(value, Tree):
                found.append(value)
            elif value.__class__ is tuple and value and isinstance(value[0], Tree):
                found += value
        inputs = self.known["inputs"] = tuple(found)
        return inputs


class CachedHash:
    """A value with a cached hash, because it is looked up more often than created."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Hashable) -> None:
        self.value = value
        self._hash: int | None = None

    def __hash__(self) -> int:
        found = self._hash
        if found is None:
            found = self._hash = hash(self.value)
        return found

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, CachedHash) or hash(self) != hash(other):
            return False
        return bool(self.value == other.value)

    def __repr__(self) -> str:
        return repr(self.value)


def nodes_in(value: Any) -> tuple[Any, ...]:
    """Return the nodes in a field of a node: the field itself, the nodes of a tuple, or none."""
    if isinstance(value, Tree):
        return (value,)
    is_several = value.__class__ is tuple and value and isinstance(value[0], Tree)
    return value if is_several else ()


@lru_cache(maxsize=64)
def _compared_fields(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.compare)


def own_values_of(node: Tree) -> tuple[Any, ...]:
    """Return the compared fields of a node; for a field with inputs, their number."""
    known: tuple[Any, ...] | None = node.known.get("own values")
    if known is None:
        kind: Any = type(node)
        values: list[Any] = []
        for name in _compared_fields(kind):
            value = getattr(node, name)
            if isinstance(value, Tree):  # as `nodes_in`, without a call for each field
                value = 1
            elif value.__class__ is tuple and value and isinstance(value[0], Tree):
                value = len(value)
            values.append(value)
        known = node.known["own values"] = tuple(values)
    return known


def _are_equal(a: Tree, b: Tree) -> bool:
    """Return True if two plans have equal nodes; without recursion, and each pair is compared
    once."""
    asked: set[tuple[int, int]] = set()
    waiting = [(a, b)]
    while waiting:
        a, b = waiting.pop()
        if a is b or (id(a), id(b)) in asked:
            continue
        asked.add((id(a), id(b)))
        if type(a) is not type(b) or own_values_of(a) != own_values_of(b):
            return False
        waiting.extend(zip(a.inputs(), b.inputs(), strict=True))
    return True


def _repr_parts(node: Tree) -> Iterator[Any]:
    """Iterate over the parts of a node's repr: texts, and the nodes whose repr they contain."""
    between = ""
    for each in fields(node):
        if each.repr:
            value = getattr(node, each.name)
            yield f"{between}{each.name}="
            between = ", "
            if value.__class__ is tuple and nodes_in(value):
                yield "("
                for number, part in enumerate(value):
                    yield from (", ", part) if number else (part,)
                yield ",)" if len(value) == 1 else ")"
            else:
                yield value if isinstance(value, Tree) else repr(value)


# The base of the nodes of a logical plan.


@record
class Node(Tree):
    """Base of all plan nodes. Each kind states its `facts`; there are no defaults."""

    facts: ClassVar[Facts]

    def __init_subclass__(cls) -> None:
        super(Node, cls).__init_subclass__()  # noqa: UP008 (the decorator makes the class again)
        if "facts" not in vars(cls):
            raise TypeError(
                f"plan node {cls.__name__} does not say what it is\n"
                "  give the class `facts = Facts(...)`, as its neighbours have"
            )

    if TYPE_CHECKING:

        def inputs(self) -> tuple[Node, ...]: ...


class Cost(IntEnum):
    """A class of costs of one changed row; a higher class costs more."""

    ONE = 0
    LOG = 1
    MATCHES = 2
    GROUP = 3
    ROUNDS = 4
    PAIRS = 5

    def __str__(self) -> str:
        return ("O(1)", "O(log n)", "matches", "group", "rounds", "all pairs")[self]


Costs = Sequence[Cost]
"""The cost for each input of a node."""


# Costs.


def nothing(node: Any) -> Costs:
    """Return (), the costs of a node without inputs."""
    return ()


def constant_cost(node: Any) -> Costs:
    return (Cost.ONE,) * len(node.inputs())


def logarithmic(node: Any) -> Costs:
    return (Cost.LOG,) * len(node.inputs())


def rounds(node: Any) -> Costs:
    return (Cost.ROUNDS,) * len(node.inputs())


def of_aggregates(node: Any) -> Costs:
    """Return the highest cost of the aggregates."""
    return (max((each.accumulator.cost for each in node.aggregates), default=Cost.ONE),)


def matches(node: Any) -> Costs:
    return (Cost.MATCHES, Cost.MATCHES)


def matches_of_right(node: Any) -> Costs:
    """Return the costs of a semi or anti join: a left row reads only the number of its partners,
    which is stored."""
    return (Cost.ONE, Cost.MATCHES)


def all_pairs(node: Any) -> Costs:
    return (Cost.PAIRS, Cost.PAIRS)


# Degrees.


def degree_of_rows(node: Any, inputs: Sequence[float]) -> float:
    """Return the degree of a table."""
    return 1.0


def degree_of_none(node: Any, inputs: Sequence[float]) -> float:
    """Return the degree of a node that reads nothing of the database."""
    return 0.0


def degree_as_input(node: Any, inputs: Sequence[float]) -> float:
    return max(inputs)


def degree_of_both(node: Any, inputs: Sequence[float]) -> float:
    return sum(inputs)


def no_degree(node: Any, inputs: Sequence[float]) -> float:
    """Return the degree of a node that compares its rows with earlier rows."""
    return inf


def degree_of_aggregates(node: Any, inputs: Sequence[float]) -> float:
    """Return the degree of an aggregate: sums are linear in the rows, a minimum is not."""
    return inputs[0] if max(of_aggregates(node)) is Cost.ONE else inf
