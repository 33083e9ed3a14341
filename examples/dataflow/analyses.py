"""Four analyses of a control flow graph, each a recursion over a lattice.

python -m examples.dataflow.analyses

An edge leads from a node to the next ones; each analysis says what holds before a node.

    signs       the signs that a variable may have                      may: union
    points_to   the objects that a pointer may point to; a store to     may: union
                the only target replaces its contents (strong update)
    available   the expressions that were computed on all ways          must: intersection
    prefixes    how the text of a variable begins on all ways           common prefix
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reactive import Database, Relation, Table, fixpoint, lattices

Rel = Relation[Any]
NONE: frozenset[str] = frozenset()


class Flow(NamedTuple):
    u: int
    v: int


class Fact(NamedTuple):
    """A value that is known of a variable before a node."""

    n: int
    var: str
    value: Any


class Assign(NamedTuple):
    """`dst = value` at a node: a sign, an object or a text."""

    n: int
    dst: str
    value: str


class Copy(NamedTuple):
    """`dst = src`."""

    n: int
    dst: str
    src: str


class Sum(NamedTuple):
    """`dst = a + b`."""

    n: int
    dst: str
    a: str
    b: str


class Store(NamedTuple):
    """`*pointer = src`."""

    n: int
    pointer: str
    src: str


class Prepend(NamedTuple):
    """`dst = text + src`."""

    n: int
    dst: str
    text: str
    src: str


class Computation(NamedTuple):
    """The expressions that a node computes, and those that it makes out of date."""

    n: int
    made: frozenset[str]
    lost: frozenset[str]


class Available(NamedTuple):
    n: int
    value: frozenset[str]


SUMS = {
    ("+", "+"): "+",
    ("+", "0"): "+",
    ("0", "+"): "+",
    ("0", "0"): "0",
    ("0", "-"): "-",
    ("-", "0"): "-",
    ("-", "-"): "-",
    ("+", "-"): "-0+",
    ("-", "+"): "-0+",
}


def add_signs(a: frozenset[str], b: frozenset[str]) -> frozenset[str]:
    """Return the signs of the sums of numbers with these signs.

    >>> sorted(add_signs(frozenset("+"), frozenset("0-")))
    ['+', '-', '0']
    """
    return frozenset("".join(SUMS[x, y] for x in a for y in b))


def _follow(after: Rel, flow: Rel) -> Rel:
    """Return what holds before a node, given what holds after its predecessors."""
    return after.join(flow, on=lambda f, e: f.n == e.u).select(
        lambda f, e: Fact(e.v, f.var, f.value)
    )


def _copied(facts: Rel, copies: Rel) -> Rel:
    return facts.join(copies, on=lambda f, c: f.n == c.n and f.var == c.src).select(
        lambda f, c: Fact(f.n, c.dst, f.value)
    )


def _targets(*assigning: Rel) -> Rel:
    """Return the node and variable of each assignment."""
    found = [rows.select(lambda a: (a.n, a.dst)) for rows in assigning]
    made = found[0]
    for each in found[1:]:
        made = made.union(each)
    return made


def signs(flow: Rel, assigned: Rel, copies: Rel, sums: Rel) -> Rel:
    """Return the signs that each variable may have before each node."""
    targets = _targets(assigned, copies, sums)

    def step(facts: Rel) -> Rel:
        kept = facts.anti_join(targets, on=lambda f, t: (f.n, f.var) == t)
        added = (
            facts.join(sums, on=lambda f, s: f.n == s.n and f.var == s.a)
            .join(facts, on=lambda f, s, g: g.n == s.n and g.var == s.b)
            .select(lambda f, s, g: Fact(f.n, s.dst, add_signs(f.value, g.value)))
        )
        new = assigned.select(lambda a: Fact(a.n, a.dst, frozenset({a.value})))
        after = kept.union_all(new).union_all(_copied(facts, copies)).union_all(added)
        return _follow(after, flow)

    return fixpoint(step, keep=lattices.union(lambda f: f.value), by=lambda f: (f.n, f.var))


def points_to(flow: Rel, allocated: Rel, copies: Rel, stores: Rel) -> Rel:
    """Return what each pointer, and each object, may point to before each node."""
    targets = _targets(allocated, copies)

    def step(facts: Rel) -> Rel:
        still = facts.anti_join(targets, on=lambda f, t: (f.n, f.var) == t)
        kept = still.anti_join(stores, on=lambda f, s: f.n == s.n)
        stored = (
            still.join(stores, on=lambda f, s: f.n == s.n)
            .join(facts, on=lambda f, s, p: p.n == s.n and p.var == s.pointer)
            .select(lambda f, s, p: Fact(f.n, f.var, NONE if p.value == {f.var} else f.value))
        )
        written = (
            facts.join(stores, on=lambda p, s: p.n == s.n and p.var == s.pointer)
            .join(facts, on=lambda p, s, f: f.n == s.n and f.var == s.src)
            .unnest(lambda p, s, f: p.value)
            .select(lambda p, s, f, target: Fact(p.n, target, f.value))
        )
        new = allocated.select(lambda a: Fact(a.n, a.dst, frozenset({a.value})))
        after = kept.union_all(stored).union_all(written).union_all(new)
        return _follow(after.union_all(_copied(facts, copies)), flow)

    return fixpoint(step, keep=lattices.union(lambda f: f.value), by=lambda f: (f.n, f.var))


def available(flow: Rel, computations: Rel, entries: Rel) -> Rel:
    """Return the expressions that are computed on all ways to each node."""

    def step(known: Rel) -> Rel:
        after = known.join(computations, on=lambda k, c: k.n == c.n).select(
            lambda k, c: Available(k.n, (k.value - c.lost) | c.made)
        )
        return (
            after.join(flow, on=lambda k, e: k.n == e.u)
            .select(lambda k, e: Available(e.v, k.value))
            .union_all(entries.select(lambda n: Available(n, NONE)))
        )

    return fixpoint(step, keep=lattices.intersection(lambda k: k.value), by=lambda k: k.n)


def prefixes(flow: Rel, assigned: Rel, copies: Rel, prepended: Rel) -> Rel:
    """Return how the text of each variable begins, whatever way leads to a node."""
    targets = _targets(assigned, copies, prepended)

    def step(facts: Rel) -> Rel:
        kept = facts.anti_join(targets, on=lambda f, t: (f.n, f.var) == t)
        longer = facts.join(prepended, on=lambda f, p: f.n == p.n and f.var == p.src).select(
            lambda f, p: Fact(f.n, p.dst, p.text + f.value)
        )
        new = assigned.select(lambda a: Fact(a.n, a.dst, a.value))
        after = kept.union_all(new).union_all(_copied(facts, copies)).union_all(longer)
        return _follow(after, flow)

    return fixpoint(step, keep=lattices.common_prefix(lambda f: f.value), by=lambda f: (f.n, f.var))


def main() -> None:
    """Print the signs of a counter, before and after a statement of its loop is deleted.

    >>> main()
    before node 2: i is 0 or +
    without its sum: i is 0
    """
    db = Database()
    flow: Table[Flow] = db.table(Flow, name="flow")
    assigned: Table[Assign] = db.table(Assign, name="assigned")
    copies: Table[Copy] = db.table(Copy, name="copies")
    sums: Table[Sum] = db.table(Sum, name="sums")
    view = signs(flow, assigned, copies, sums).materialize()
    with db.transaction():
        flow.add_all([Flow(0, 1), Flow(1, 2), Flow(2, 3), Flow(3, 2)])
        assigned.add_all([Assign(0, "i", "0"), Assign(1, "one", "+")])
        sums.add(Sum(3, "i", "i", "one"))
    print(f"before node 2: i is {_signs_at(view, 2)}")
    sums.remove(Sum(3, "i", "i", "one"))
    print(f"without its sum: i is {_signs_at(view, 2)}")


def _signs_at(view: Any, node: int) -> str:
    (found,) = (fact.value for fact in view if (fact.n, fact.var) == (node, "i"))
    return " or ".join(sorted(found, key="-0+".index))


if __name__ == "__main__":
    main()
