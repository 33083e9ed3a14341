"""A tree as text: the function that makes its query of tables, as a user would write it.

    def query(t0, t1):
        q0 = t0.where(f3)
        return q0.join(t1, on=f4).union_all(q0)

The names of callables are defined in the module that `texts` writes.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import reactive
from reactive import Aggregate, Monoid, Operator, lattices
from reactive.api import literal as values
from tests.random_queries.nodes import REDUCERS, Fold, Key, Node, every
from tests.random_queries.rows import CLASSES

Inside = Mapping[tuple[int, int], str]
State = tuple[int, int]


def own(of: Any) -> Aggregate[Any, Any]:
    """Sum and count, by an aggregate of one's own."""
    return Aggregate((0, 0), _plus, _minus, is_zero=lambda state: state == (0, 0), of=of)


def _plus(state: State, value: int) -> State:
    return state[0] + value, state[1] + 1


def _minus(state: State, value: int) -> State:
    return state[0] - value, state[1] - 1


class Copies(Operator[Any, int]):
    """Emit the number of each row that all inputs have: of several, the product of the numbers."""

    def __init__(self, inputs: int = 1) -> None:
        self._counts: list[Counter[Any]] = [Counter() for _ in range(inputs)]

    def step(self, *deltas: Sequence[tuple[Any, int]]) -> Iterator[tuple[int, int]]:
        changed = {row for delta in deltas for row, _ in delta}
        before = [*map(self._number, changed)]
        for counts, delta in zip(self._counts, deltas, strict=True):
            for row, weight in delta:
                counts[row] += weight
        yield from ((number, -1) for number in before if number)
        yield from ((number, 1) for number in map(self._number, changed) if number)

    def _number(self, row: Any) -> int:
        return math.prod(counts[row] for counts in self._counts)


VERBS: Mapping[str, Any] = {
    **{name: getattr(reactive, name) for name in ("Count", "Sum", "Avg", "Min", "Max")},
    **{name: getattr(reactive, name) for name in ("CountDistinct", "Collect", "asc", "desc")},
    **{name: getattr(reactive, name) for name in ("tumbling", "hopping", "session")},
    "datetime": datetime,
    "timedelta": datetime.timedelta,
    "fixpoint": reactive.fixpoint,
    "iterate": reactive.iterate,
    "Own": own,
    "Monoid": lambda of: Monoid(0, math.gcd, of=of),
    "REDUCERS": REDUCERS,
    "Copies": Copies,
    "union_of": lattices.union,
    "literal": lambda table, rows: table._new(values.literal(rows, None)),
    **CLASSES,
}
"""Names that the text of a query uses, beside its callables."""


def written(
    node: Node, count: int, known: Mapping[int, str] | None = None, *, shares: bool = True
) -> str:
    """The text of a query of `count` tables, and of views that are `known` by a name.

    What is in it several times is written once if it `shares`.
    """
    known = known or {}
    writer = _Writer(known, shares=shares)
    lines = [f"    {line}" for line in writer.statements(node)]
    parameters = ", ".join([*(f"t{place}" for place in range(count)), *known.values()])
    return "\n".join([f"def query({parameters}):", *lines, ""])


def relation(
    node: Node,
    names: Mapping[str, Any],
    tables: Sequence[Any],
    known: Mapping[int, Any] | None = None,
    *,
    shares: bool = True,
) -> Any:
    """The query of a tree over some tables; `known` views take the place of parts of it."""
    known = known or {}
    text = written(node, len(tables), {number: f"v{number}" for number in known}, shares=shares)
    space = {**VERBS, **names}
    exec(compile(text, "<query>", "exec", dont_inherit=True), space)
    return space["query"](*tables, *known.values())


class _Writer:
    """Write expressions; repeated parts get a name."""

    def __init__(self, known: Mapping[int, str], *, shares: bool) -> None:
        self._shares = shares
        self._names = dict(known)
        self._levels: dict[int, int] = {}

    def statements(self, root: Node) -> Iterator[str]:
        """A line for each part that has a name, and the last one."""
        for place, node in enumerate(self._shared(root) if self._shares else ()):
            text = self._text(node, {})
            self._names[node.number] = f"q{place}"
            yield f"q{place} = {text}"
        yield f"return {self._text(root, {})}"

    def _shared(self, root: Node) -> list[Node]:
        """Parts that are there several times, those first that were made first."""
        nodes = {node.number: node for node in every(root)}
        times = Counter(source.number for node in nodes.values() for source in node.inputs)
        parts = {n: node for n, node in nodes.items() if node.inputs and not node.free}
        return [parts[n] for n in sorted(parts) if times[n] > 1 and n not in self._names]

    def _text(self, node: Node, inside: Inside) -> str:
        if node.number in self._names:
            return self._names[node.number]
        match node.op:
            case "table":
                return f"t{node.more}"
            case "values":
                return f"literal(t0, [{', '.join(f'POOL[{place}]' for place in node.more)}])"
            case "recursive":
                return inside[node.more]
            case "fixpoint" | "best" | "lattice":
                return self._fixpoint(node, inside)
            case "iterate":
                start, (of, times) = self._text(node.inputs[0], inside), node.more
                body = self._step(node.inputs[1:], of, inside)
                return f"iterate({body}, {start}, times={times})"
            case "until":
                start, of = self._text(node.inputs[0], inside), node.more[0]
                body = self._step(node.inputs[1:], of, inside)
                return f"iterate({body}, {start}, until={node.calls['until']}, max_rounds=20)"
            case "watermark":
                return f"t{node.more}.watermark"
            case "each":
                groups = f"{self._text(node.inputs[0], inside)}.group_by({node.calls['key']})"
                return f"{groups}.each({self._step(node.inputs[1:], node.more[0], inside)})"
        source, *others = (self._text(each, inside) for each in node.inputs)
        return f"{source}{self._verb(node, others)}"

    def _verb(self, node: Node, others: list[str]) -> str:
        """Return the method call on the first input."""
        match node.op:
            case "where" | "select" | "select_many" | "unnest":
                return f".{node.op}({node.calls['of']})"
            case "extend" | "bind":
                return f".{node.op}({', '.join(node.calls.values())})"
            case "equals":
                field, place = node.more
                return f".where({field}=POOL[{place}])"
            case "group":
                groups = f".group_by({node.calls['key']})" if node.calls else ""
                return f"{groups}.aggregate({self._folds(node)})"
            case "reduce":
                return f".group_by({node.calls['key']}).reduce(REDUCERS[{node.more!r}])"
            case "through":
                groups = f".group_by({node.calls['key']})" if node.calls else ""
                given = [*others, f"inputs={1 + len(others)}"] if others else []
                return f"{groups}.through({', '.join(['Copies', *given])})"
            case "top":
                keys, count, how = node.more
                by = f"[{_keys(keys)}]"
                arguments = f"{count}, {by}" if how == "top" else by
                return f".group_by({node.calls['key']}).{how}({arguments})"
            case "order":
                keys, limit, offset = node.more
                ordered = f".order_by({_keys(keys)})"
                return ordered if limit is None else f"{ordered}.limit({limit}, {offset})"
            case "window":
                return f".window({_windows(node)}, at={node.calls['at']})"
            case "over":
                keys = node.more[0]
                given = [f"by={node.calls['by']}"] if "by" in node.calls else []
                given += [f"order=[{_keys(keys)}]"] if keys else []
                return f".over({', '.join(given)}).select({node.calls['select']})"
            case "lookup":
                given = [*others, *(f"{part}={call}" for part, call in node.calls.items())]
                return f".{'left_' if node.more else ''}lookup({', '.join(given)})"
            case "asof":
                direction, tolerance, allow_equal, keeps = node.more
                given = [f"{part}={call}" for part, call in node.calls.items()]
                given += [f"{direction=}", f"{tolerance=}", f"{allow_equal=}"]
                return f".{'left_' if keeps else ''}asof_join({', '.join([*others, *given])})"
        name = f"{node.more}_join" if node.op == "outer" else node.op
        conditions = [f"{part}={call}" for part, call in node.calls.items()]
        return f".{name}({', '.join([*others, *conditions])})"

    def _folds(self, node: Node) -> str:
        texts = [*map(_fold, node.more)]
        if node.more[0].column is not None and str(node.row) in CLASSES:
            texts.append(f"as_={node.row}")
        return ", ".join(texts)

    def _fixpoint(self, node: Node, inside: Inside) -> str:
        if node.op == "lattice":
            step = self._step(node.inputs, node.more[0], inside)
            return f"fixpoint({step}, keep=union_of({node.calls['value']}), by={node.calls['by']})"
        of, more = node.more
        step = self._step(node.inputs, of, inside)
        if node.op == "best":
            keep = f"{'Max' if more else 'Min'}({node.calls['value']})"
            return f"fixpoint({step}, keep={keep}, by={node.calls['by']})"
        return f"fixpoint({step})" + (f"[{more}]" if len(node.inputs) > 1 else "")

    def _step(self, bodies: Sequence[Node], of: int, inside: Inside) -> str:
        """A lambda of relations that are not known yet."""
        level = self._levels.setdefault(of, len(self._levels))
        mine = {(of, place): f"r{level}{'abc'[place]}" for place in range(len(bodies))}
        texts = [self._text(body, {**inside, **mine}) for body in bodies]
        found = f"({', '.join(texts)})" if len(texts) > 1 else texts[0]
        return f"lambda {', '.join(mine.values())}: {found}"


def _fold(fold: Fold) -> str:
    arguments = [fold.of or "", "skip_none=True" if fold.skip_none else ""]
    made = f"{fold.name}({', '.join(filter(None, arguments))})"
    return made if fold.column is None else f"{fold.column}={made}"


def _windows(node: Node) -> str:
    kind, *minutes = node.more
    sizes = [f"timedelta(minutes={each})" for each in minutes]
    sizes += [f"by={node.calls['by']}"] if "by" in node.calls else []
    return f"{kind}({', '.join(sizes)})"


def _keys(keys: Sequence[Key]) -> str:
    return ", ".join(
        f"{'desc' if key.descending else 'asc'}({key.of}, nulls={key.nulls!r})" for key in keys
    )
