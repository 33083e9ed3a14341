"""Analysis of a program: scopes of variables, strata, and relations that are written out.

Scopes: the variables that belong to an aggregate, and those of the clause around it.

    a(x, n, w) :- b(x), n = max y : { c(x, y, w), d(z) }

        x    bound outside: the aggregate is over the rows with this x
        y    in the target: local, even if the clause has a y
        z    in no other place: local
        w    outside, but not bound there: a witness, bound by the rows in which y is n
             (so is a part of a target, as in `n = min y + w : { ... }`)

Local variables get unique names, so that equal names are one variable.

Strata: the order in which relations are computed; relations that depend on each other are one
stratum.

A relation that is negated or aggregated must be complete before, in a lower stratum.

Source: stratified negation: Apt, Blair, Walker, 1988; components: Tarjan, 1972.

Inlining: the bodies of an `inline` relation in place of its atoms.

    twice(x, y) :- y = 2 * x.        .decl twice(x: number, y: number) inline
    a(y) :- b(x), twice(x, y).       ->       a(y) :- b(x), x = x', y = y', y' = 2 * x'.

Such a relation may be infinite by itself. A negated or aggregated one is computed like any other
relation, and its variables must be bound.

The analysis finds rules, kinds and strata before any plan is made, and refuses every error that the
text alone shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from optimizer.errors import StratificationError
from optimizer.plans.components import strongly_connected
from optimizer.record import record
from reactive.languages.datalog.best_rows import KeptRows, decided_by_a_column, subsumptions
from reactive.languages.datalog.clause_rules import counters_in, rules_of
from reactive.languages.datalog.definitions import ProgramDefinitions
from reactive.languages.datalog.joined_columns import JoinedColumn
from reactive.languages.datalog.rules import (
    Atom,
    Branch,
    Clause,
    Comparison,
    Goal,
    Literal,
    Names,
    Negation,
    RangeTerm,
    RecordTerm,
    Rule,
    Term,
    TotalTerm,
    Unnamed,
    Variable,
    names_in,
    names_within,
    rename_variables,
    renamed_goal,
    terms_of,
    variables,
)
from reactive.languages.datalog.term_kinds import Kinds
from reactive.languages.datalog.tokens import Span, wrong


def scope_rule(rule: Rule, names: Names) -> Rule:
    """Return the rule with unique names for the variables that are local to aggregates.

    Raises
    ------
    PlanError: a variable has no value.
    """
    used = variables(rule.head)
    goals = _Scopes(names).goals(rule.goals, frozenset(), {*used})
    _check_bound(goals, used, (), is_fact=not rule.goals)
    return Rule(rule.head, tuple(goals), rule.at)


def bound_variables(goals: Iterable[Goal], given: Iterable[str] = ()) -> set[str]:
    """Return the variables that have a value where all `goals` hold; `given` have one before."""
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
                case RangeTerm(result, functor) if found.issuperset(variables(functor)):
                    found.add(result.name)
                case TotalTerm(result):
                    found.add(result.name)
    return found


def binds(pattern: Term) -> set[str]:
    """Return the variables that get a value when a value is matched with a pattern."""
    match pattern:
        case Variable(name):
            return {name}
        case RecordTerm(items) | Branch(_, items):
            return set().union(*map(binds, items))
        case _:
            return set()


class _Scopes:
    """Renames the variables that are local to aggregates, so that each has a name of its own."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def goals(self, goals: Sequence[Goal], outside: frozenset[str], used: set[str]) -> list[Goal]:
        """Return goals whose aggregates have unique names.

        `outside` are the variables bound around the goals; `used` are the names around them.
        """
        found: list[Goal] = []
        for place, goal in enumerate(goals):
            if not isinstance(goal, TotalTerm):
                found.append(goal)
                continue
            others = [*goals[:place], *goals[place + 1 :]]
            around = frozenset(bound_variables(others, outside))
            here = used.union(*(variables(*terms_of(other)) for other in others))
            found += self._total(goal, around, here)
        return found

    def _total(self, total: TotalTerm, around: frozenset[str], used: set[str]) -> list[Goal]:
        """Return the goals of an aggregate, its local variables renamed, and of its witnesses.

        Raises if a variable is used outside that is neither bound there nor can be a
        witness.
        """
        total = self._own_target(total, used - around)
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
        found = self._inside(self._rename_inner(total, local), around)
        if not witnesses:
            return [found]
        inner = {name: self._names.new(name) for name in witnesses}
        own = [n for n in names_within(found) if n not in around and n not in witnesses]
        return [self._rename_inner(found, inner), *self._witness_goals(found, own)]

    def _own_target(self, total: TotalTerm, read: Collection[str]) -> TotalTerm:
        """Return the aggregate with new names for target variables that the bodies bind.

        Parts of a target keep their names if they are `read` outside and can be witnesses.
        """
        if total.target is None:
            return total
        within = [bound_variables(body) for body in total.bodies]
        own = {
            name: self._names.new(name)
            for name in variables(total.target)
            if isinstance(total.target, Variable)
            or (
                all(name in some for some in within)
                and not (name in read and self._may_witness(total, name))
            )
        }
        return self._rename_inner(total, own)

    def _rename_inner(self, total: TotalTerm, names: dict[str, str]) -> TotalTerm:
        """Return the aggregate with other names inside it."""
        bodies = tuple(tuple(renamed_goal(g, names) for g in body) for body in total.bodies)
        target = None if total.target is None else rename_variables(total.target, names)
        return replace(total, target=target, bodies=bodies)

    def _may_witness(self, total: TotalTerm, name: str) -> bool:
        """Return True if a variable is bound in the only body of a `min` or `max`."""
        return (
            total.name in ("min", "max")
            and len(total.bodies) == 1
            and (name in bound_variables(total.bodies[0]))
        )

    def _inside(self, total: TotalTerm, around: frozenset[str]) -> TotalTerm:
        """Return the aggregate with own names in the aggregates inside it."""
        used = {} if total.target is None else variables(total.target)
        bodies = tuple(tuple(self.goals(body, around, {*used, *around})) for body in total.bodies)
        for body in bodies:
            _check_bound(body, used, around)
        return replace(total, bodies=bodies)

    def _witness_goals(self, total: TotalTerm, own: list[str]) -> list[Goal]:
        """Return the goals of the body once more: the rows whose target equals the result."""
        assert total.target is not None
        (body,) = total.bodies
        names = {name: self._names.new(name) for name in own}
        goals = [renamed_goal(goal, names) for goal in body]
        target = rename_variables(total.target, names)
        return [*goals, Comparison("=", total.result, target, total.at)]


def _check_bound(
    goals: Sequence[Goal], used: Mapping[str, Span], around: Iterable[str], *, is_fact: bool = False
) -> None:
    """Refuse variables without a value."""
    known = bound_variables(goals, around)
    own = names_in(*(goal for goal in goals if not isinstance(goal, TotalTerm)))
    for name, at in ({**used, **own}).items():
        if name not in known:
            shown = name.partition(" ")[0]
            remedy = "an atom that is not negated, or an equation, gives it a value"
            remedy = "a fact has no variables" if is_fact else remedy
            raise wrong(at, f"variable {shown!r} is not bound", remedy)


NO_MEANING = "  it has no meaning: negate or aggregate what does not depend on it"


@record
class Dependency:
    """A relation that a rule reads: as it is, or for its `"negation"` or an `"aggregate"`."""

    name: str
    barrier: str | None
    at: Span


def dependencies(goals: Sequence[Goal], barrier: str | None = None) -> Iterator[Dependency]:
    """Yield the relations that some goals read."""
    for goal in goals:
        match goal:
            case Atom(name, _, at):
                yield Dependency(name, barrier, at)
            case Negation(atom, at):
                yield Dependency(atom.name, "negation", at)
            case TotalTerm(bodies=bodies):
                for body in bodies:
                    yield from dependencies(body, "aggregate")


def strata(
    rules: Mapping[str, Sequence[Rule]], dominated: Mapping[str, Sequence[Rule]]
) -> list[list[str]]:
    """Return the relations that have rules, each stratum after all that it reads.

    What says which rows are dominated is read after the stratum of the relation.

    Raises
    ------
    StratificationError: a relation depends on its own negation.
    """
    read = _dependencies_of(rules)
    later = {
        name: [d.name for rule in dominated.get(name, ()) for d in dependencies(rule.goals)]
        for name in read
    }
    found = strongly_connected(
        {name: [*(d.name for d in some), *later[name]] for name, some in read.items()}
    )
    for group in found:
        members = frozenset(group)
        for name in group:
            for dependency in read[name]:
                if dependency.barrier == "negation" and dependency.name in members:
                    raise _stratification_error(name, dependency, group, read)
    return found


def _dependencies_of(rules: Mapping[str, Sequence[Rule]]) -> dict[str, list[Dependency]]:
    """Return what the rules of each relation read."""
    return {
        name: [d for rule in some for d in dependencies(rule.goals)] for name, some in rules.items()
    }


def check_aggregates(
    group: Sequence[str], rules: Mapping[str, Sequence[Rule]], error: StratificationError
) -> None:
    """Raise the error of a recursion that is not monotone, at the aggregate that it names.

    Nothing is raised if no relation of the group depends on its own aggregate.
    """
    read = _dependencies_of({name: rules[name] for name in group})
    why = [line for line in str(error).splitlines() if line.startswith("  not monotone: ")]
    for name in group:
        for dependency in read[name]:
            if dependency.barrier == "aggregate" and dependency.name in group:
                found = _stratification_error(name, dependency, group, read, "".join(why))
                raise found from None


def _stratification_error(
    name: str,
    dependency: Dependency,
    group: Sequence[str],
    read: Mapping[str, Sequence[Dependency]],
    why: str = "",
) -> Exception:
    """Return the error for a relation that depends on its own negation or aggregate."""
    way = _way(dependency.name, name, group, read)
    through = "!" if dependency.barrier == "negation" else "aggregate of "
    shown = " -> ".join([name, f"{through}{way[0]}", *way[1:]])
    found = wrong(
        dependency.at,
        f"relation {name!r} depends on its own {dependency.barrier}",
        f"{shown}\n{why or NO_MEANING}",
    )
    return StratificationError(str(found))


def _way(
    start: str, end: str, group: Sequence[str], read: Mapping[str, Sequence[Dependency]]
) -> list[str]:
    """Return a path of relations from `start` to `end`, each of which reads the next."""
    ways = {start: [start]}
    waiting = [start]
    while waiting:
        at = waiting.pop(0)
        if at == end:
            return ways[at]
        for following in (dependency.name for dependency in read[at]):
            if following in group and following not in ways:
                ways[following] = [*ways[at], following]
                waiting.append(following)
    return [start]


Bodies = tuple[tuple[Literal, ...], ...]
MOST = 4096
"""Bodies of one clause."""


def inline_relations(
    clauses: Sequence[Clause], inline: frozenset[str], names: Names
) -> list[Clause]:
    """Return the clauses with atoms of `inline` relations replaced by their bodies."""
    if not inline:
        return list(clauses)
    own = {name: [(h, c) for c in clauses for h in c.heads if h.name == name] for name in inline}
    writer = _TextWriter(own, names)
    return [replace(clause, bodies=writer.bodies(clause.bodies)) for clause in clauses]


class _TextWriter:
    """Replaces atoms of inline relations by the bodies of their clauses."""

    def __init__(self, own: Mapping[str, list[tuple[Atom, Clause]]], names: Names) -> None:
        self._own = own
        self._names = names

    def bodies(self, bodies: Bodies, inside: tuple[str, ...] = ()) -> Bodies:
        """Return the bodies, with the clauses of inline relations in place of their atoms."""
        found: list[tuple[Literal, ...]] = []
        for body in bodies:
            found += self._body(body, inside)
        return tuple(found)

    def _body(
        self, body: tuple[Literal, ...], inside: tuple[str, ...]
    ) -> list[tuple[Literal, ...]]:
        """Return the alternatives of one body; raises if there are more than `MOST`."""
        found: list[tuple[Literal, ...]] = [()]
        for literal in body:
            ways = self._ways(literal, inside)
            found = [(*before, *way) for before in found for way in ways]
            if len(found) > MOST:
                raise wrong(literal.at, f"{len(found)} alternatives, of relations that are inline")
        return found

    def _ways(self, literal: Literal, inside: tuple[str, ...]) -> Bodies:
        """Return the alternatives of a literal; only atoms of inline relations have several.

        Raises if the relation is in `inside`: then it depends on itself.
        """
        if not isinstance(literal, Atom) or literal.name not in self._own:
            return ((literal,),)
        if literal.name in inside:
            what = f"relation {literal.name!r} is inline, and depends on itself"
            raise wrong(literal.at, what, "leave out inline")
        found: list[tuple[Literal, ...]] = []
        for head, clause in self._own[literal.name]:
            for body in clause.bodies:
                own = variables(head, *body)
                new = {name: self._names.new(name) for name in own}
                equations = tuple(
                    Comparison("=", argument, rename_variables(of, new), argument.at)
                    for argument, of in zip(literal.arguments, head.arguments, strict=True)
                    if not isinstance(argument, Unnamed)
                )
                goals = (*equations, *(rename_variables(each, new) for each in body))
                found += self._body(goals, (*inside, literal.name))
        return tuple(found)


@record
class Analysis:
    """Rules and facts of the computed relations, kinds of terms by their `id`, and an order.

    In the order each relation comes after the relations that it reads.
    """

    definitions: ProgramDefinitions
    rules: dict[str, tuple[Rule, ...]]
    facts: dict[str, tuple[Rule, ...]]
    kinds: dict[int, Kinds]
    strata: list[list[str]]
    dominated: dict[str, tuple[Rule, ...]]
    """The rules of rows that another row dominates, of each relation."""
    kept: dict[str, KeptRows | JoinedColumn]
    """The best rows of each key that a recursion keeps."""


def analyse_program(definitions: ProgramDefinitions) -> Analysis:
    """Return the analysis of a program.

    Raises
    ------
    PlanError: a variable has no value, or a term is of two types.
    StratificationError: a relation depends on its own negation or aggregate.
    """
    every = _rules(definitions, is_subsumptive=False)
    dominated = _rules(definitions, is_subsumptive=True)
    columns = definitions.columns()
    kinds = {
        id(rule): Kinds(rule, columns, definitions.types)
        for some in (*every.values(), *dominated.values())
        for rule in some
    }
    rules = {name: tuple(rule for rule in some if rule.goals) for name, some in every.items()}
    facts = {name: tuple(rule for rule in some if not rule.goals) for name, some in every.items()}
    order = strata(rules, dominated)
    if any("autoinc" in text for text in {clause.at.text for clause in definitions.clauses}):
        for group in order:
            _refuse_counters(frozenset(group), rules)
    kept = {n: each.kept for n, each in definitions.relations.items() if each.kept is not None}
    for name, clauses in subsumptions(definitions.clauses).items():
        if kept.get(name) is not None:
            raise wrong(clauses[0].at, f"relation {name!r} keeps the best rows of each key already")
        best = decided_by_a_column(clauses)
        if best is not None:
            kept[name] = best
    rest = {name: tuple(some) for name, some in dominated.items() if some and name not in kept}
    return Analysis(definitions, rules, facts, kinds, order, rest, kept)


def _refuse_counters(group: frozenset[str], rules: Mapping[str, Sequence[Rule]]) -> None:
    """Refuse counters in a rule that reads its own stratum: each row would make a new one."""
    for rule in (rule for name in group for rule in rules[name]):
        if any(read.name in group for read in dependencies(rule.goals)):
            for counter in counters_in(rule):
                raise wrong(counter.at, "autoinc() cannot stand in a recursive rule")


def _rules(definitions: ProgramDefinitions, *, is_subsumptive: bool) -> dict[str, list[Rule]]:
    """Return the rules of each relation that is computed; or of the rows that are dominated."""
    names = Names()
    inline = definitions.inline()
    left_out = inline - definitions.read_whole()
    found: dict[str, list[Rule]] = {n: [] for n in definitions.relations if n not in left_out}
    clauses = [c for c in definitions.clauses if c.is_subsumptive == is_subsumptive]
    for clause in inline_relations(clauses, inline, names):
        for rule in rules_of(clause, names):
            if rule.head.name in found:
                found[rule.head.name].append(scope_rule(rule, names))
    return found
