"""Equality saturation: terms, laws, and the smallest term that equals each of them, live.

python -m examples.egraph.saturation

Laws make new terms and say which are equal; equal terms are a class of an `eqrel`, which is kept as
one leader of each class. Terms and laws are rows: a view of the smallest terms follows both.

    node(e)        the terms, their parts, and all terms that laws make of them
    same(e, f)     e and f are equal: by a law, or because their parts are (congruence)
    smallest       of each class, the term with the fewest operators: a recursion that keeps the
                   least of each class, from the smallest terms of the parts

A law makes no larger term than the one that it matches, so there are finitely many.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from reactive import Database, Min, Relation, fixpoint
from reactive.datalog import Program

TEXT = """
.type Expr = Num {n: number} | Var {name: symbol} | Add {a: Expr, b: Expr} | Mul {a: Expr, b: Expr}
.functor size(e: Expr): number

.decl term(e: Expr)     .input term
.decl law(name: symbol) .input law

.decl node(e: Expr)
node(e) :- term(e).
node(a), node(b) :- node($Add(a, b)).
node(a), node(b) :- node($Mul(a, b)).

.decl same(x: Expr, y: Expr) eqrel
same(e, e) :- node(e).
same($Add(a, b), $Add(c, d)) :- node($Add(a, b)), same(a, c), same(b, d), node($Add(c, d)).
same($Mul(a, b), $Mul(c, d)) :- node($Mul(a, b)), same(a, c), same(b, d), node($Mul(c, d)).

node($Add(b, a)), same($Add(a, b), $Add(b, a)) :- law("commutative"), node($Add(a, b)).
node($Mul(b, a)), same($Mul(a, b), $Mul(b, a)) :- law("commutative"), node($Mul(a, b)).
node(f), same(e, f) :- law("associative"), node(e), e = $Add(a, p), same(p, $Add(b, c)),
    f = $Add($Add(a, b), c), @size(f) <= @size(e).
node(f), same(e, f) :- law("factor"), node(e), e = $Add(p, q), same(p, $Mul(a, b)),
    same(q, $Mul(a, c)), f = $Mul(a, $Add(b, c)), @size(f) <= @size(e).
same(e, a) :- law("zero"), node(e), e = $Add(a, z), same(z, $Num(0)).
same(e, a) :- law("one"), node(e), e = $Mul(a, z), same(z, $Num(1)).
node($Num(n + m)), same(e, $Num(n + m)) :- law("fold"), node(e), e = $Add(a, b),
    same(a, $Num(n)), same(b, $Num(m)).
node($Num(n * m)), same(e, $Num(n * m)) :- law("fold"), node(e), e = $Mul(a, b),
    same(a, $Num(n)), same(b, $Num(m)).
"""
OPERATORS = {"Add": "+", "Mul": "*"}
LAWS = ("commutative", "associative", "factor", "zero", "one", "fold")


class Leaf(NamedTuple):
    """A number or a variable, as the program has it: `("Num", 1)`, `("Var", "x")`."""

    branch: str
    value: int | str


class Composed(NamedTuple):
    """A sum or a product, as the program has it: `("Add", a, b)`, `("Mul", a, b)`."""

    branch: str
    a: Term
    b: Term


Term: TypeAlias = "Leaf | Composed"


def num(n: int) -> Leaf:
    """Return a number as a term."""
    return Leaf("Num", n)


def var(name: str) -> Leaf:
    """Return a variable as a term."""
    return Leaf("Var", name)


def add(a: Term, b: Term) -> Composed:
    """Return the sum of two terms."""
    return Composed("Add", a, b)


def mul(a: Term, b: Term) -> Composed:
    """Return the product of two terms."""
    return Composed("Mul", a, b)


def size(term: Any) -> int:
    """Return the number of leaves and operators of a term."""
    return 1 + sum(map(size, term[1:])) if term[0] in OPERATORS else 1


def text_of(term: Any) -> str:
    """Return a term as it is written."""
    if term[0] in OPERATORS:
        return f"({text_of(term[1])} {OPERATORS[term[0]]} {text_of(term[2])})"
    return str(term[1])


class Smallest(NamedTuple):
    """The smallest term of a class, with its size and its text, which decides between equals."""

    leader: Term
    size: int
    text: str
    term: Term


class Operator(NamedTuple):
    """An operator, with the class of its result and of its parts."""

    leader: Term
    name: str
    a: Term
    b: Term


class Saturation:
    """The terms and laws of a database, and the smallest terms.

    >>> found = Saturation(Database())
    >>> smallest = found.smallest.materialize()
    >>> found.insert(add(mul(var("x"), num(2)), mul(var("x"), num(3))))
    >>> [text_of(term) for given, term in smallest]
    ['((x * 2) + (x * 3))']
    >>> found.use("factor", "fold")
    >>> [text_of(term) for given, term in smallest]
    ['(x * 5)']
    """

    def __init__(self, db: Database) -> None:
        self.program: Program = db.datalog(TEXT, functors={"size": size}, max_rounds=None)
        self.terms = self.program.tables["term"]
        self.laws = self.program.tables["law"]
        self.leaders: Relation[Any] = self.program["same.leader"]
        self.smallest: Relation[Any] = self._smallest()
        """The given terms, each with the smallest term that equals it."""

    def _smallest(self) -> Relation[Any]:
        leaders = self.leaders
        leaves: Relation[Any] = leaders.where(lambda m: m.member[0] not in OPERATORS).select(
            lambda m: Smallest(m.leader, 1, text_of(m.member), m.member)
        )
        operators: Relation[Any] = (
            leaders.where(lambda m: m.member[0] in OPERATORS)
            .join(leaders, on=lambda m, a: m.member[1] == a.member)
            .join(leaders, on=lambda m, a, b: m.member[2] == b.member)
            .select(lambda m, a, b: Operator(m.leader, m.member[0], a.leader, b.leader))
            .distinct()
        )
        least: Relation[Any] = fixpoint(
            lambda least: leaves.union(
                operators.join(least, on=lambda o, a: o.a == a.leader)
                .join(least, on=lambda o, a, b: o.b == b.leader)
                .select(lambda o, a, b: _combined(o.leader, o.name, a, b))
            ),
            keep=Min(lambda s: (s.size, s.text)),
            by=lambda s: s.leader,
        )
        return (
            self.terms.join(leaders, on=lambda t, m: t.e == m.member)
            .join(least, on=lambda t, m, s: m.leader == s.leader)
            .select(lambda t, m, s: (t.e, s.term))
        )

    def insert(self, *terms: Term) -> None:
        """Insert terms, in one commit."""
        self.terms.add_all([self.program.row("term")(term) for term in terms])

    def remove(self, *terms: Term) -> None:
        """Delete terms, in one commit."""
        self.terms.remove_all([self.program.row("term")(term) for term in terms])

    def use(self, *names: str) -> None:
        """Let the laws be those of these names, in one commit."""
        self.laws.replace_all([self.program.row("law")(name) for name in names])


def _combined(leader: Term, branch: str, a: Smallest, b: Smallest) -> Smallest:
    """Return the operator of the smallest terms of its parts."""
    term = Composed(branch, a.term, b.term)
    return Smallest(leader, 1 + a.size + b.size, text_of(term), term)


def main() -> None:
    """Print the smallest terms of a sum as laws are added, and taken back."""
    found = Saturation(Database())
    smallest = found.smallest.materialize()
    x, y = var("x"), var("y")
    found.insert(add(add(mul(x, num(2)), y), mul(x, num(3))))
    for laws in (["factor", "fold"], LAWS, ["fold"]):
        found.use(*laws)
        print(f"{', '.join(laws)}:")
        for given, term in smallest:
            print(f"  {text_of(given)} = {text_of(term)}")


if __name__ == "__main__":
    main()
