"""Random programs: relations defined by each other, the relations below them, and their readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.engine.operators.fixpoint.histories import Commit, histories
from tests.engine.operators.fixpoint.naive import AGGREGATES
from tests.random_queries import terms
from tests.random_queries.terms import Fixpoint, Half, Input, Iterate, Sets, Term, Var

T = TypeVar("T")

INPUTS = ("a", "b", "c")
SETS = ("union", "intersection", "difference")
BAGS = ("union_all", "intersection_all", "difference_all")
RAISING = "raises_at_three"
QUIET = {
    id(table): [name for name in table if name != RAISING]
    for table in (terms.PREDICATES, terms.SELECTS, terms.FANS, terms.MATCHES)
}


class Generator:
    """Generate a program; `choose(n)` is a number below n."""

    def __init__(self, choose: Callable[[int], int], *, raising: bool = False) -> None:
        self.choose = choose
        self.raising = raising
        self.inputs = INPUTS[: 1 + choose(len(INPUTS))]
        self.names = 0

    def one_of(self, *options: T) -> T:
        return options[self.choose(len(options))]

    def name_in(self, table: dict[str, Any]) -> str:
        """Draw the name of a predicate, function or match; sometimes of one that raises."""
        if self.raising and RAISING in table and self.choose(3) == 0:
            return RAISING
        return self.one_of(*QUIET.get(id(table), list(table)))

    # What does not read the relations that are being defined.

    def input(self) -> Term:
        return Input(self.one_of(*self.inputs))

    def below(self, depth: int) -> Term:
        """Any term that is closed."""
        if depth <= 0:
            return self.input()
        step = self.one_of(
            self.leaf, self.leaf, self.filtered, self.bags, self.folded, self.fixpoint
        )
        return step(depth)

    def leaf(self, depth: int) -> Term:
        return self.input()

    def filtered(self, depth: int) -> Term:
        return terms.Where(self.below(depth - 1), self.name_in(terms.PREDICATES))

    def bags(self, depth: int) -> Term:
        return Sets(self.one_of(*SETS, *BAGS), self.below(depth - 1), self.below(depth - 2))

    def folded(self, depth: int) -> Term:
        return self.grouped(self.below(depth - 1))

    def grouped(self, source: Term) -> Term:
        return terms.Grouped(source, self.one_of(*AGGREGATES), self.choose(4) > 0)

    # Operators over recursive relations: monotone ones only.

    def body(self, depth: int, variables: tuple[str, ...]) -> Term:
        """A term over the variables."""
        if depth <= 0:
            return Var(self.one_of(*variables)) if self.choose(4) else self.input()
        step = self.one_of(
            *(self.pointwise, self.pointwise, self.sides, self.sides, self.sides),
            *(self.joined, self.joined, self.joined, self.chained, self.half, self.less),
            self.nested,
        )
        return step(depth, variables)

    def other(self, depth: int, variables: tuple[str, ...]) -> Term:
        """The other side of a term over the variables."""
        return self.body(depth - 1, variables) if self.choose(2) else self.below(depth - 1)

    def pointwise(self, depth: int, variables: tuple[str, ...]) -> Term:
        source = self.body(depth - 1, variables)
        match self.choose(5):
            case 0:
                return terms.Where(source, self.name_in(terms.PREDICATES))
            case 1:
                return terms.Distinct(source)
            case 2:
                pairs = self.name_in(terms.PAIRS) if self.choose(2) else None
                return terms.Fan(source, self.name_in(terms.FANS), pairs)
            case _:
                return terms.Select(source, self.name_in(terms.SELECTS))

    def sides(self, depth: int, variables: tuple[str, ...]) -> Term:
        left, right = self.body(depth - 1, variables), self.other(depth, variables)
        kind = self.one_of("union", "union", "union_all", "intersection")
        return Sets(kind, *((left, right) if self.choose(2) else (right, left)))

    def joined(self, depth: int, variables: tuple[str, ...]) -> Term:
        left, right = self.body(depth - 1, variables), self.other(depth, variables)
        if self.choose(2):
            left, right = right, left
        return terms.Join(left, right, self.match(), self.name_in(terms.PAIRS))

    def chained(self, depth: int, variables: tuple[str, ...]) -> Term:
        sides = [self.body(depth - 1, variables), self.other(depth, variables), self.below(1)]
        first, second = sides.pop(self.choose(3)), sides.pop(self.choose(2))
        return terms.Chain(first, second, sides[0], self.match())

    def half(self, depth: int, variables: tuple[str, ...]) -> Term:
        left, right = self.body(depth - 1, variables), self.other(depth, variables)
        if self.choose(3) == 0:
            left, right = right, left
        return Half("semi_join", left, right, self.match())

    def less(self, depth: int, variables: tuple[str, ...]) -> Term:
        """Subtract a relation of a lower stratum."""
        left, right = self.body(depth - 1, variables), self.below(depth - 1)
        if self.choose(2):
            return Sets("difference", left, right)
        return Half("anti_join", left, right, self.match())

    def match(self) -> str:
        return "follows" if self.choose(2) else self.name_in(terms.MATCHES)

    # Recursion.

    def nested(self, depth: int, variables: tuple[str, ...]) -> Term:
        """A recursion inside one, which may read the outer relations."""
        name = self.fresh()
        base = self.body(depth - 2, variables)
        body = self.body(depth - 1, (name, name, *variables))
        return Fixpoint((name,), (Sets("union", base, body),), 0)

    def fixpoint(self, depth: int) -> Term:
        """One to three relations, and which of them it is."""
        count = 1 if self.raising else self.one_of(1, 1, 2, 2, 3)
        names = tuple(self.fresh() for _ in range(count))
        bodies = tuple(self.defined(depth - 1, names, first=name == names[0]) for name in names)
        return Fixpoint(names, bodies, self.choose(count))

    def defined(self, depth: int, names: tuple[str, ...], *, first: bool) -> Term:
        """A body, mostly one that has something to begin with."""
        body = self.body(max(1, depth), names)
        return Sets("union", self.input(), body) if first or self.choose(6) else body

    def fresh(self) -> str:
        self.names += 1
        return f"r{self.names}"

    # Programs.

    def program(self, depth: int) -> tuple[Term, ...]:
        """All relations of a recursion, and something above it."""
        made = self.fixpoint(depth)
        assert isinstance(made, Fixpoint)
        picks = range(len(made.variables))
        return (*(Fixpoint(made.variables, made.bodies, n) for n in picks), self.above(made, depth))

    def above(self, made: Term, depth: int) -> Term:
        """A stratum over a recursion."""
        match self.choose(7):
            case 0:
                return self.grouped(made)
            case 1:
                return Sets(self.one_of(*SETS, *BAGS), self.below(1), made)
            case 2:
                kind = self.one_of("anti_join", "left_join", "semi_join")
                return Half(kind, self.below(1), made, self.match())
            case 3:
                return terms.Join(made, self.below(1), self.match(), self.name_in(terms.PAIRS))
            case 4:
                return self.grouped(self.over(made, depth))
            case _:
                return self.over(made, depth)

    def over(self, made: Term, depth: int) -> Term:
        """A recursion over a recursion: it reads it, or its negation or its aggregate."""
        name = self.fresh()
        body = self.body(max(1, depth - 1), (name,))
        match self.choose(4):
            case 0:
                body = Half("anti_join", body, made, self.match())
            case 1:
                body = Sets("difference", body, made)
            case 2:
                body = Sets("union", body, self.grouped(made))
            case _:
                body = terms.Join(body, made, self.match(), self.name_in(terms.PAIRS))
        return Fixpoint((name,), (Sets("union", self.below(0), body),), 0)

    def iteration(self, depth: int) -> Term:
        """Some rounds of a body that need not be monotone."""
        name = self.fresh()
        start = self.fixpoint(depth) if self.choose(3) == 0 else self.below(1)
        if self.choose(3) == 0:
            return Iterate(name, self.linear(depth, name), start, self.choose(3))
        body = self.body(depth, (name,))
        match self.choose(6):
            case 0:
                body = Sets("difference_all", self.below(1), body)
            case 1:
                body = Half("anti_join", self.below(1), body, self.match())
            case 2:
                body = self.grouped(body)
            case 3:
                body = Half("left_join", body, Var(name), self.match())
            case 4:
                body = Sets("difference", body, Var(name))
        return Iterate(name, terms.Distinct(body), start, self.choose(4))

    def linear(self, depth: int, name: str) -> Term:
        """A body whose rows do not become too many, though they are not made distinct."""
        source = Var(name) if depth <= 1 else self.linear(depth - 1, name)
        match self.choose(6):
            case 0:
                return terms.Fan(source, self.name_in(terms.FANS), None)
            case 1:
                return terms.Join(source, self.input(), self.match(), self.name_in(terms.PAIRS))
            case 2:
                return Sets("union_all", source, self.input())
            case 3:
                return Sets("difference_all", self.input(), source)
            case 4:
                return Half("anti_join", self.input(), source, self.match())
            case _:
                return terms.Select(source, self.name_in(terms.SELECTS))


@dataclass(frozen=True)
class Case:
    """Queries over the inputs, and a history of these."""

    queries: tuple[Term, ...]
    history: tuple[Commit, ...]
    late: int
    """Number of commits before the views are made."""
    other_way: str
    """Second way to run the queries; see `play.Stage`."""
    twice: bool
    """True if all views are made again at the end, and the first ones are closed."""


@st.composite
def cases(draw: Any, depth: int = 3, *, raising: bool = False, kind: str = "program") -> Case:
    """A program, or an iteration, and a history."""
    generator = Generator(lambda n: int(draw(st.integers(0, n - 1))), raising=raising)
    level = draw(st.integers(1, depth))
    queries = generator.program(level) if kind == "program" else (generator.iteration(level),)
    history = draw(histories(generator.inputs))
    late = 0 if raising else draw(st.sampled_from([0, 0, 0, 1, 3]))
    other_way = draw(st.sampled_from(["as_written", "as_written", "opaque"]))
    return Case(queries, history, late, other_way, draw(st.integers(0, 3)) == 0)
