"""Equivalence relations: `.decl same(x: T, y: T) eqrel`.

It is kept as one leader of each class, its least member:

    same.pairs(x, y)    the rows that rules derive
    same.leader(x, r)   r is the leader of x: the least value that pairs lead to
    same(x, y)          leader(x, r), leader(y, r)

A rule that reads `same(x, y)` reads the two leaders, so a class of n members costs n rows; its
n * n pairs are only made where the relation itself is shown, negated or aggregated. This holds in a
recursion, too: values that share a leader in some round are of one class, and at the end values of
one class share a leader.

The least of records and of data types is the smallest: the one with the fewest values in it.

A relation that is an input, or of floats in records, has its pairs, which are followed step by
step; so has one that depends on itself through a relation that keeps some of its rows:

    same.step(x, y)     the rows that rules derive, both ways
    same(x, z)          same(x, y), step(y, z)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from optimizer.record import record
from reactive.languages.datalog import rules
from reactive.languages.datalog.best_rows import KeptRows
from reactive.languages.datalog.inference import COMPARED, KindedColumn, ProgramTypes
from reactive.languages.datalog.joined_columns import JoinedColumn
from reactive.languages.datalog.tokens import Span


@record
class DeclaredRelation:
    """A relation of a program."""

    name: str
    fields: tuple[KindedColumn, ...]
    qualifiers: frozenset[str]
    at: Span
    kept: KeptRows | JoinedColumn | None = None
    """The rows that are kept, of those with one key."""
    choices: tuple[tuple[int, ...], ...] = ()
    """The places of each of several choice domains."""


def with_equivalences(
    clauses: Sequence[rules.Clause],
    relations: Mapping[str, DeclaredRelation],
    given: Collection[str],
    types: ProgramTypes,
) -> tuple[list[rules.Clause], dict[str, DeclaredRelation]]:
    """Return the clauses and relations of a program, with those that make equivalences.

    `given` are the relations that have rows which no rule derives.
    """
    found, made = [*clauses], {**relations}
    for declared in relations.values():
        if "eqrel" not in declared.qualifiers:
            continue
        is_given = declared.name in given
        is_ordered = types.is_ordered(declared.fields[0].kind)
        has_leaders = (
            not is_given and is_ordered and _may_have_leaders(declared, clauses, relations)
        )
        if not is_given:
            made |= {each.name: each for each in _parts(declared, has_leaders=has_leaders)}
            found = [_of_parts(each, declared.name, has_leaders=has_leaders) for each in found]
        found += _leaders(declared) if has_leaders else _all_pairs(declared, is_given=is_given)
    return found, made


def _may_have_leaders(
    declared: DeclaredRelation,
    clauses: Sequence[rules.Clause],
    relations: Mapping[str, DeclaredRelation],
) -> bool:
    """Return True unless rows are dominated, or it depends on itself through kept rows."""
    reads: dict[str, set[str]] = {}
    keeping = {each.name for each in relations.values() if each.kept or each.choices}
    for clause in clauses:
        if clause.is_subsumptive:
            if clause.heads[0].name == declared.name:
                return False
            keeping.add(clause.heads[0].name)
        atoms = {
            part.name
            for body in clause.bodies
            for literal in body
            for part in rules.walk(literal)
            if isinstance(part, rules.Atom)
        }
        for head in clause.heads:
            reads.setdefault(head.name, set()).update(atoms)
    seen = _reached(declared.name, reads)
    return declared.name not in seen or not any(
        declared.name in _reached(name, reads) for name in seen & keeping
    )


def _reached(name: str, reads: Mapping[str, set[str]]) -> set[str]:
    """Return the relations that the rules of a relation read, and so on."""
    waiting, seen = [name], set[str]()
    while waiting:
        new = reads.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


def _parts(declared: DeclaredRelation, *, has_leaders: bool) -> Iterator[DeclaredRelation]:
    """Yield the relation of the derived pairs, and that of the leaders or of the steps."""
    kind = declared.fields[0].kind
    leader = tuple(KindedColumn(name, kind, name) for name in ("member", "leader"))
    none = frozenset[str]()
    yield DeclaredRelation(f"{declared.name}.pairs", declared.fields, none, declared.at)
    if has_leaders:
        is_plain = kind.family in COMPARED
        kept = KeptRows((0,), (1,), order=None if is_plain else _size_of_leader)
        yield DeclaredRelation(f"{declared.name}.leader", leader, none, declared.at, kept)
    else:
        yield DeclaredRelation(f"{declared.name}.step", declared.fields, none, declared.at)


def _size_of_leader(row: tuple[Any, Any]) -> Any:
    """Return what orders the leaders of a member: by size, then by items."""
    return _sized(row[1])


def _sized(value: Any) -> tuple[int, tuple[Any, ...]]:
    """Return the number of values in a term, and these values, outer ones first."""
    found: list[Any] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, tuple):
            found.append(True)  # nil, which stands in the same place, is less
            waiting += reversed(each)
        else:
            found.append(False if each is None else each)
    return len(found), tuple(found)


def _of_parts(clause: rules.Clause, name: str, *, has_leaders: bool) -> rules.Clause:
    """Return a clause that derives pairs of the equivalence, and reads its leaders, if any."""
    if clause.is_subsumptive:
        return clause
    heads = tuple(
        replace(head, name=f"{name}.pairs") if head.name == name else head for head in clause.heads
    )
    if not has_leaders:
        return replace(clause, heads=heads)
    bodies = tuple(tuple(_read_leaders(body, name)) for body in clause.bodies)
    return replace(clause, heads=heads, bodies=bodies)


def _read_leaders(body: Sequence[rules.Literal], name: str) -> Iterator[rules.Literal]:
    """Yield the literals of a body, with two leaders in place of each pair."""
    for place, literal in enumerate(body):
        if not (isinstance(literal, rules.Atom) and literal.name == name):
            yield literal
            continue
        any_ = rules.Unnamed(literal.at)
        named: list[rules.Term] = [
            each for each in literal.arguments if not isinstance(each, rules.Unnamed)
        ]
        leader = rules.Variable(f"leader {name} {place}", literal.at) if len(named) == 2 else any_
        for argument in named or [any_]:
            yield replace(literal, name=f"{name}.leader", arguments=(argument, leader))


def _leaders(declared: DeclaredRelation) -> Iterator[rules.Clause]:
    """Yield the clauses of the leaders, and of the relation itself."""
    at, name = declared.at, declared.name
    x, y, r = (rules.Variable(each, at) for each in "xyr")
    any_ = rules.Unnamed(at)

    def atom(what: str, *arguments: rules.Variable | rules.Unnamed) -> rules.Atom:
        return rules.Atom(name + what, arguments, at, at)

    pair = atom(".pairs", x, y)
    own = ((atom(".pairs", x, any_),), (atom(".pairs", any_, x),))
    yield rules.Clause((atom(".leader", x, x),), own, at)
    yield rules.Clause((atom(".leader", x, r),), ((pair, atom(".leader", y, r)),), at)
    yield rules.Clause((atom(".leader", y, r),), ((pair, atom(".leader", x, r)),), at)
    yield rules.Clause((atom("", x, y),), ((atom(".leader", x, r), atom(".leader", y, r)),), at)


def _all_pairs(declared: DeclaredRelation, *, is_given: bool) -> Iterator[rules.Clause]:
    """Yield the clauses of all pairs: by steps, or if rows are given, of the relation itself."""
    at, name = declared.at, declared.name
    x, y, z = (rules.Variable(each, at) for each in "xyz")
    any_ = rules.Unnamed(at)

    def atom(what: str, *arguments: rules.Variable | rules.Unnamed) -> rules.Atom:
        return rules.Atom(name + what, arguments, at, at)

    step = "" if is_given else ".step"
    yield rules.Clause((atom("", x, x),), ((atom(step, x, any_),), (atom(step, any_, x),)), at)
    yield rules.Clause((atom(step, y, x),), ((atom(step if is_given else ".pairs", x, y),),), at)
    yield rules.Clause((atom("", x, z),), ((atom("", x, y), atom(step, y, z)),), at)
    if not is_given:
        yield rules.Clause((atom(step, x, y),), ((atom(".pairs", x, y),),), at)
