"""The evaluation of `verify` equals a naive one: all pairs, and recursion round by round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from optimizer import plan
from reactive import Database, Max, Min, fixpoint, iterate
from reactive.engine.reference.evaluate import evaluate
from tests import naive
from tests.budget import examples
from tests.engine.operators.fixpoint.histories import ROWS
from tests.random_queries.drawn import SEEDS, draw, some_tuples
from tests.random_queries.programs import INPUTS, Generator
from tests.random_queries.term_queries import Builder, Opaque

Rel = Any
NAN = float("nan")


def outcome(evaluated: Callable[..., Counter[Any]], node: plan.Node, rows: Any) -> Any:
    """Return the result of an evaluation, or "raises"; which error is first may differ."""
    try:
        return evaluated(node, lambda table: Counter(rows[table.name]).items())
    except Exception:
        return "raises"


def agree(relation: Rel, rows: Any) -> None:
    """Check that both evaluations have equal results."""
    node = relation.plan
    assert outcome(evaluate, node, rows) == outcome(naive.evaluate, node, rows)


@examples(50)
@given(seed=SEEDS)
def test_queries_come_to_what_they_naively_do(seed: int) -> None:
    drawn = draw(seed, steps=0, tables=some_tuples)
    (relation,) = drawn.relations(drawn.open(Database()))
    script = drawn.script()
    list(script)
    rows = zip(("t0", "t1"), script.model.tables, strict=True)
    agree(relation, {name: Counter(held) for name, held in rows})


@dataclass(frozen=True)
class Loose:
    """Equal to values with another hash; raises when it is compared with text."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            raise ValueError("compared with text")
        return isinstance(other, Loose) and str(self.value)[:1] == str(other.value)[:1]

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True)
class Plain:
    """Equal as its fields are."""

    value: Any


class Bare:
    """Equal to nothing but itself."""


BARE = Bare()
KEYS: list[Any] = [
    *(0, 1, 2, 1.0, True, False, None, NAN, -0.0, Decimal(1), Decimal("NaN"), Decimal("sNaN")),
    *("", "1", "a", b"a", (1, "a"), (1.0, "a"), (NAN,), frozenset([1]), BARE),
    *(Loose(1), Loose(12), Plain(1), Plain(1.0), Plain(Loose(1)), Plain(Loose(12))),
]
ODD = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, len(KEYS) - 1), st.sampled_from([0, 1, 2, "x"])),
    max_size=8,
)
"""Rows of a number, the place of a key among all, and something that may not compare."""


def key(row: Any) -> Any:
    """The key itself, which may have no hash; a place of 30 has none at all."""
    return [row[1]] if row[0] == 7 else KEYS[row[1]] if row[0] < 30 else KEYS[1 // 0]


PREDICATES: list[Callable[[Any, Any], object]] = [
    lambda a, b: key(a) == key(b),
    lambda a, b: a[2] == b[2] and key(a) == key(b),
    lambda a, b: a[0] < 20 and key(a) == key(b) and b[0] > 2,
    lambda a, b: a[2] < b[2] and a[1] == b[1],
    lambda a, b: a[2] != b[2] and a[1] == b[1] and 1 // (a[0] - 5),
    lambda a, b: key(a) != key(b) and a[1] % 3 == b[1] % 3,
    lambda a, b: 1 // (a[0] - 3) and 1 // (b[0] - 4) < 1 and a[1] == b[1],
    lambda a, b: a[1] == b[1] or a[0] == b[0],
    lambda a, b: (a[1], a[2]) == (b[1], b[2]),
    lambda a, b: (a[1] == 1 or a[2] == 2) and a[1] == b[1],
    lambda a, b: a[0] < b[0] <= a[1] and a[2] == b[2],
    lambda a, b: key(a) and key(b) == key(a),
    lambda a, b: not (a[2] < b[2]) and a[1] == b[1],
    lambda a, b: [a[1]] == [b[1]],
]
KINDS = ["join", "semi_join", "anti_join", "left_join", "right_join", "full_join", "where"]


@examples(200)
@given(
    left=ODD,
    right=ODD,
    on=st.sampled_from(PREDICATES),
    then=st.sampled_from(PREDICATES),
    kind=st.sampled_from(KINDS),
    wrapped=st.sampled_from([None, Opaque]),
)
def test_joins_ask_what_all_pairs_would_be_asked(
    left: Any, right: Any, on: Any, then: Any, kind: str, wrapped: Any
) -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    on = on if wrapped is None else wrapped(on)
    if kind == "where":
        joined: Rel = a.join(b).where(on).where(then)
    else:
        joined = getattr(a, kind)(b, on=on)
    agree(joined, {"a": left, "b": right})


@examples(80)
@given(
    rows=st.tuples(ODD, ODD, ODD),
    on=st.sampled_from(PREDICATES),
    then=st.sampled_from(PREDICATES),
    last=st.sampled_from(PREDICATES),
)
def test_filters_of_three_ask_what_all_triples_would_be_asked(
    rows: Any, on: Any, then: Any, last: Any
) -> None:
    db = Database()
    a, b, c = (db.table(tuple, name=name) for name in "abc")
    agree(
        a.join(b)
        .join(c)
        .where(lambda a, b, c: on(a, b) and then(b, c))
        .where(lambda a, b, c: last(c, a)),
        dict(zip("abc", rows, strict=True)),
    )


INPUT_ROWS = st.fixed_dictionaries(
    {name: st.dictionaries(ROWS, st.integers(1, 2), max_size=8) for name in INPUTS}
)


@examples(150)
@given(
    data=st.data(),
    rows=INPUT_ROWS,
    depth=st.integers(1, 3),
    kind=st.sampled_from(["program", "iteration", "raising"]),
)
def test_recursions_come_to_what_they_naively_do(
    data: Any, rows: Any, depth: int, kind: str
) -> None:
    generator = Generator(
        lambda n: int(data.draw(st.integers(0, n - 1))), raising=kind == "raising"
    )
    made = (generator.iteration(depth),) if kind == "iteration" else generator.program(depth)
    db = Database()
    tables: Any = {name: db.table(tuple, name=name) for name in INPUTS}
    builder = Builder(tables, lambda function: function)
    for term in made:
        agree(builder.relation(term), rows)


@examples(60)
@given(
    rows=INPUT_ROWS,
    kind=st.sampled_from(["semi_join", "anti_join"]),
    signed=st.sampled_from(["left", "right", "both"]),
    times=st.integers(1, 5),
)
def test_partners_in_an_iteration_may_have_negative_weights(
    rows: Any, kind: str, signed: str, times: int
) -> None:
    db = Database()
    a, b, c = (db.table(tuple, name=name) for name in INPUTS)
    start = a.union_all(b.negate())

    def step(r: Rel) -> Rel:
        moved = r.select(lambda row: ((row[0] + 1) % 4, row[1]))
        left, right = {"left": (moved, c), "right": (c, moved), "both": (moved, r)}[signed]
        found = getattr(left, kind)(right, on=lambda x, y: x[0] == y[0])
        return found if signed == "left" else found.union_all(moved)

    written_out = start
    for _ in range(times):
        written_out = step(written_out)
    assert evaluated(iterate(step, start, times=times), rows) == evaluated(written_out, rows)


def evaluated(relation: Rel, rows: Any) -> Any:
    return outcome(evaluate, relation.plan, rows)


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "longer": lambda a, b: (b[1], min(a[1] + b[0], 6)),
    "other way": lambda a, b: (b[1], max(b[0] - a[1], -6)),
    "round": lambda a, b: (b[1], (a[1] + b[0]) % 4),
    "along": lambda a, b: (b[1], a[1]),
}
"""Steps from a kept row: worse for a worse row, better for a worse row, and neither."""


@examples(150)
@given(
    rows=INPUT_ROWS,
    step=st.sampled_from(list(STEPS)),
    best=st.sampled_from([Min, Max]),
    rounds=st.integers(1, 8),
)
def test_recursions_that_keep_one_of_each_key_do(
    rows: Any, step: str, best: Any, rounds: int
) -> None:
    db = Database()
    a, b, c = (db.table(tuple, name=name) for name in INPUTS)

    def ways(kept: Rel, seen: Rel) -> tuple[Rel, Rel]:
        further = kept.join(b, on=lambda k, e: k[0] == e[0]).select(STEPS[step])
        beside = kept.join(c, on=lambda k, e: k[1] == e[0]).select(lambda k, e: e)
        around = seen.select(lambda r: ((r[0] + 1) % 4, r[1])).semi_join(
            kept, on=lambda s, k: s[0] == k[0]
        )
        return a.union(further), beside.union(around).difference(c)

    made = fixpoint(
        ways,
        keep=(best(lambda r: r[1]), None),
        by=(lambda r: r[0], None),
        max_rounds=rounds,
    )
    for relation in made:
        agree(relation, rows)


WAYS: dict[str, Callable[[Rel, Rel], Rel]] = {
    "grows": lambda before, found: before.union(found),
    "shrinks": lambda before, found: found.difference(before),
    "turns": lambda before, found: found.select(lambda r: (r[1], r[0])),
    "doubles": lambda before, found: before.union_all(found).distinct(),
}


@examples(150)
@given(
    rows=INPUT_ROWS,
    way=st.sampled_from(list(WAYS)),
    step=st.sampled_from(list(STEPS)),
    best=st.sampled_from([None, Min, Max]),
    hides=st.booleans(),
    times=st.integers(0, 5),
)
def test_recursions_in_each_round_of_an_iteration_do(
    rows: Any, way: str, step: str, best: Any, hides: bool, times: int
) -> None:
    db = Database()
    a, b, c = (db.table(tuple, name=name) for name in INPUTS)

    def body(before: Rel) -> Rel:
        def follow(found: Rel) -> Rel:
            further = found.join(b, on=lambda f, e: f[0] == e[0]).select(STEPS[step])
            if hides:
                return a.union(further).difference(before)
            return before.union(further)

        kept: Any = {} if best is None else {"keep": best(lambda r: r[1]), "by": lambda r: r[0]}
        return WAYS[way](before, fixpoint(follow, max_rounds=20, **kept))

    agree(iterate(body, c, times=times), rows)
