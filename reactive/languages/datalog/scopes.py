"""Which variables of an aggregate are its own, which those of the clause around it.

    a(x, n, w) :- b(x), n = max y : { c(x, y, w), d(z) }

        x    bound outside: the aggregate is that of the rows with this x
        y    in the target: its own, whatever there is outside
        z    nowhere else: its own
        w    outside, but not bound there: a witness, bound by the rows in which y is n

Own variables get names that are nowhere else, so that an equal name is the same variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from reactive.languages.datalog.places import Span, wrong
from reactive.languages.datalog.rules import (
    Each,
    Goal,
    Names,
    Rule,
    Total,
    names_in,
    names_within,
    renamed_goal,
    terms_of,
)
from reactive.languages.datalog.syntax import (
    Atom,
    Branch,
    Comparison,
    Record,
    Term,
    Variable,
    renamed,
    variables,
)


def scoped(rule: Rule, names: Names) -> Rule:
    """The rule with own names for what is local to aggregates.

    Raises
    ------
    PlanError: a variable has no value.
    """
    used = variables(rule.head)
    goals = _Scopes(names).goals(rule.goals, frozenset(), {*used})
    _check_bound(goals, used, (), is_fact=not rule.goals)
    return replace(rule, goals=tuple(goals))


def bound(goals: Iterable[Goal], given: Iterable[str] = ()) -> set[str]:
    """The variables that have a value where all of some goals hold."""
    found, before = set(given), -1
    goals = list(goals)
    while len(found) > before:
        before = len(found)
        for goal in goals:
            match goal:
                case Atom(_, arguments):
                    found.update(*(binds(argument) for argument in arguments))
                case Comparison("=", left, right):
                    found |= binds(left) if found.issuperset(variables(right)) else set()
                    found |= binds(right) if found.issuperset(variables(left)) else set()
                case Each(result, functor) if found.issuperset(variables(functor)):
                    found.add(result.name)
                case Total(result):
                    found.add(result.name)
    return found


def binds(pattern: Term) -> set[str]:
    """The variables to which a value gives values that fits a pattern."""
    match pattern:
        case Variable(name):
            return {name}
        case Record(items) | Branch(_, items):
            return set().union(*map(binds, items))
        case _:
            return set()


class _Scopes:
    def __init__(self, names: Names) -> None:
        self._names = names

    def goals(self, goals: Sequence[Goal], outside: frozenset[str], used: set[str]) -> list[Goal]:
        """Goals whose aggregates have names of their own. `outside` is bound around them; `used`
        are names that stand around them."""
        found: list[Goal] = []
        for place, goal in enumerate(goals):
            if not isinstance(goal, Total):
                found.append(goal)
                continue
            others = [*goals[:place], *goals[place + 1 :]]
            around = frozenset(bound(others, outside))
            here = used.union(*(variables(*terms_of(other)) for other in others))
            found += self._total(goal, around, here)
        return found

    def _total(self, total: Total, around: frozenset[str], used: set[str]) -> list[Goal]:
        total = self._own_target(total)
        local, witnesses = dict[str, str](), list[str]()
        for name, at in names_within(total).items():
            if name in around:
                continue
            if name not in used or name == total.result.name:
                local[name] = self._names.new(name)
            elif self._may_witness(total, name):
                witnesses.append(name)
            else:
                raise wrong(
                    at,
                    f"variable {name!r} is used outside the aggregate, and not bound there",
                    "only min and max of one body have witnesses",
                )
        found = self._inside(self._renamed(total, local), around)
        if not witnesses:
            return [found]
        inner = {name: self._names.new(name) for name in witnesses}
        own = [n for n in names_within(found) if n not in around and n not in witnesses]
        return [self._renamed(found, inner), *self._witnessed(found, own)]

    def _own_target(self, total: Total) -> Total:
        """The variables of the target that the bodies bind are the aggregate's own."""
        if total.target is None:
            return total
        within = [bound(body) for body in total.bodies]
        own = {
            name: self._names.new(name)
            for name in variables(total.target)
            if isinstance(total.target, Variable) or all(name in some for some in within)
        }
        return self._renamed(total, own)

    def _renamed(self, total: Total, names: dict[str, str]) -> Total:
        """The aggregate with other names inside it."""
        bodies = tuple(tuple(renamed_goal(g, names) for g in body) for body in total.bodies)
        target = None if total.target is None else renamed(total.target, names)
        return replace(total, target=target, bodies=bodies)

    def _may_witness(self, total: Total, name: str) -> bool:
        return (
            total.name in ("min", "max")
            and len(total.bodies) == 1
            and (name in bound(total.bodies[0]))
        )

    def _inside(self, total: Total, around: frozenset[str]) -> Total:
        """The aggregate with own names in the aggregates inside it."""
        used = {} if total.target is None else variables(total.target)
        bodies = tuple(tuple(self.goals(body, around, {*used, *around})) for body in total.bodies)
        for body in bodies:
            _check_bound(body, used, around)
        return replace(total, bodies=bodies)

    def _witnessed(self, total: Total, own: list[str]) -> list[Goal]:
        """The body again, of the rows whose target is the result."""
        assert total.target is not None
        (body,) = total.bodies
        names = {name: self._names.new(name) for name in own}
        goals = [renamed_goal(goal, names) for goal in body]
        target = renamed(total.target, names)
        return [*goals, Comparison("=", total.result, target, total.at)]


def _check_bound(
    goals: Sequence[Goal], used: Mapping[str, Span], around: Iterable[str], *, is_fact: bool = False
) -> None:
    """Refuse variables without a value."""
    known = bound(goals, around)
    own = names_in(*(goal for goal in goals if not isinstance(goal, Total)))
    for name, at in ({**used, **own}).items():
        if name not in known:
            shown = name.partition(" ")[0]
            remedy = "an atom that is not negated, or an equation, gives it a value"
            remedy = "a fact has no variables" if is_fact else remedy
            raise wrong(at, f"variable {shown!r} is not bound", remedy)
