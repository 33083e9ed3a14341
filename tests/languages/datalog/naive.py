"""Datalog evaluated from scratch, naively: all rules over all assignments, until nothing is new.

It follows the text literally: a body is a list of goals, an assignment is a dictionary,
and an aggregate is evaluated for one assignment at a time. Nothing of the translation is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from reactive.languages.datalog.definitions import without_components
from reactive.languages.datalog.parser import parse
from reactive.languages.datalog.rules import (
    AggregateTerm,
    Atom,
    Branch,
    Cast,
    Clause,
    Comparison,
    Declaration,
    Directive,
    Functor,
    Literal,
    Negation,
    Nil,
    Number,
    RecordTerm,
    Term,
    TextTerm,
    Truth,
    TypeDefinition,
    Unnamed,
    Variable,
    parts_of,
    walk,
)

Row = tuple[Any, ...]
Rows = dict[str, set[Row]]
Assignment = dict[str, Any]
NOTHING = object()
"""The value of a term that has none."""


class Naive:
    """A program, evaluated as a whole for each set of inputs."""

    def __init__(self, text: str, bits: int | None = None) -> None:
        statements = without_components(parse(text))
        self.declared = {s.name: s for s in statements if isinstance(s, Declaration)}
        self._types = {s.name: s for s in statements if isinstance(s, TypeDefinition)}
        directives = [s for s in statements if isinstance(s, Directive)]
        self.inputs = [s.name for s in directives if s.word == "input"]
        self.outputs = [s.name for s in directives if s.word == "output"]
        self._clauses = [s for s in statements if isinstance(s, Clause)]
        self._bits = bits
        self._inline = {n for n, d in self.declared.items() if "inline" in d.qualifiers}

    def base(self, type_: str) -> str:
        """Return the base type of a type."""
        while type_ in self._types:
            definition = self._types[type_]
            if definition.record is not None or definition.branches:
                return type_
            type_ = definition.of[0]
        return type_

    def evaluate(self, facts: Rows) -> Rows:
        """All relations."""
        rows = {name: set(facts.get(name, ())) for name in self.declared}
        for stratum in self._strata():
            while True:
                before = sum(map(len, rows.values()))
                for clause in self._clauses:
                    for head in clause.heads:
                        if head.name in stratum:
                            for body in clause.bodies:
                                self._derive(head, body, rows)
                for name in stratum:
                    if "eqrel" in self.declared[name].qualifiers:
                        _equivalence(rows[name])
                if sum(map(len, rows.values())) == before:
                    break
        return rows

    def _strata(self) -> list[set[str]]:
        """Relations with equal numbers, which count the negations and aggregates below."""
        level = dict.fromkeys(self.declared, 0)
        for _ in range(len(level) + 1):
            for clause in self._clauses:
                for literal in (each for body in clause.bodies for each in body):
                    for name, is_barrier in _read(literal):
                        for head in clause.heads:
                            least = level[name] + is_barrier
                            level[head.name] = max(level[head.name], least)
        return [{n for n, own in level.items() if own == i} for i in sorted({*level.values()})]

    def _derive(self, head: Atom, body: Sequence[Literal], rows: Rows) -> None:
        if head.name in self._inline:
            return
        columns = self.declared[head.name].columns
        found = set()
        for assignment in self._assignments(body, {}, rows):
            for with_values in self._computed(head.arguments, assignment, rows):
                values = [self._value(each, with_values) for each in head.arguments]
                if NOTHING not in values:
                    kinds = [self.base(column.type) for column in columns]
                    found.add(tuple(map(self._stored, values, kinds)))
        rows[head.name] |= found

    def _stored(self, value: Any, kind: str) -> Any:
        if kind == "float":
            return float(value)
        if kind == "unsigned":
            return value & ((1 << (self._bits or 32)) - 1)
        if kind == "number" and self._bits:
            half = 1 << (self._bits - 1)
            return (value + half) % (2 * half) - half
        return value

    # Assignments.

    def _assignments(
        self, goals: Sequence[Literal], known: Assignment, rows: Rows
    ) -> Iterator[Assignment]:
        """All ways to have goals hold, with some variables known."""
        if not goals:
            yield known
            return
        goal = min(goals, key=lambda each: self._order(each, known))
        rest = [each for each in goals if each is not goal]
        for found in self._hold(goal, known, rows):
            yield from self._assignments(rest, found, rows)

    def _order(self, goal: Literal, known: Assignment) -> int:
        """Rank a goal: possible tests, atoms, equations with aggregates, then negations."""
        aggregates = any(isinstance(part, AggregateTerm) for part in walk(goal))
        match goal:
            case Truth():
                return 0
            case Comparison("=", left, right) if not aggregates:
                sides = self._is_known(left, known), self._is_known(right, known)
                is_ready = all(sides) or (sides[0] and _is_pattern(right))
                return 0 if is_ready or (sides[1] and _is_pattern(left)) else 9
            case Comparison(_, left, right) if not aggregates:
                return 0 if self._is_known(left, known) and self._is_known(right, known) else 9
            case Atom(name) if name in self._inline:
                return 3
            case Atom():
                return 1
            case Comparison():
                return 4
            case _:
                return 5

    def _is_known(self, term: Any, known: Assignment) -> bool:
        match term:
            case AggregateTerm():
                return _key(term) in known
            case Variable(name):
                return name in known
            case _:
                return all(self._is_known(each, known) for each in parts_of(term))

    def _hold(self, goal: Literal, known: Assignment, rows: Rows) -> Iterator[Assignment]:
        match goal:
            case Truth(value):
                yield from [known] * value
            case Atom(name, arguments) if name in self._inline:
                yield from self._written_out(name, arguments, known, rows)
            case Atom(name, arguments):
                computed = list(self._computed(arguments, known, rows))
                for row in list(rows[name]):
                    for with_values in computed:
                        yield from self._fit_all(arguments, row, with_values)
            case Negation(atom):
                for with_values in self._computed(atom.arguments, known, rows):
                    if next(self._hold(atom, with_values, rows), None) is None:
                        yield known
            case Comparison("=", left, right):
                for with_values in self._computed((left, right), known, rows):
                    yield from self._equal(left, right, with_values)
            case Comparison(sign, left, right):
                for with_values in self._computed((left, right), known, rows):
                    sides = self._value(left, with_values), self._value(right, with_values)
                    if NOTHING not in sides and _test(sign, *sides):
                        yield with_values

    def _equal(self, left: Term, right: Term, known: Assignment) -> Iterator[Assignment]:
        for one, other in ((left, right), (right, left)):
            if self._is_known(one, known) and not _has_unnamed(one):
                for value in self._values(one, known):
                    yield from self._fit(other, value, known)
                return

    def _written_out(
        self, name: str, arguments: Sequence[Term], known: Assignment, rows: Rows
    ) -> Iterator[Assignment]:
        """Yield the assignments of an inline relation: its bodies, with the known arguments."""
        for clause in self._clauses:
            for head in (head for head in clause.heads if head.name == name):
                for body in clause.bodies:
                    inner: Assignment = {}
                    for argument, of in zip(arguments, head.arguments, strict=True):
                        is_open = isinstance(argument, Unnamed) or not self._is_known(
                            argument, known
                        )
                        if isinstance(of, Variable) and not is_open:
                            inner.setdefault(of.name, self._value(argument, known))
                    for found in self._assignments(body, inner, rows):
                        row = tuple(self._value(each, found) for each in head.arguments)
                        yield from self._fit_all(arguments, row, known)

    def _fit_all(
        self, patterns: Sequence[Term], row: Row, known: Assignment
    ) -> Iterator[Assignment]:
        if not patterns:
            yield known
            return
        for found in self._fit(patterns[0], row[0], known):
            yield from self._fit_all(patterns[1:], row[1:], found)

    def _fit(self, pattern: Term, value: Any, known: Assignment) -> Iterator[Assignment]:
        """Yield the assignments that make a term equal to a value."""
        match pattern:
            case Unnamed():
                yield known
            case Variable(name) if name not in known:
                yield {**known, name: value}
            case RecordTerm(items) if not self._is_known(pattern, known) or _has_unnamed(pattern):
                if value is not None:
                    yield from self._fit_all(items, value, known)
            case Branch(name, items) if not self._is_known(pattern, known) or _has_unnamed(pattern):
                if value[0] == name:
                    yield from self._fit_all(items, value[1:], known)
            case _:
                if value in self._values(pattern, known):
                    yield known

    # Terms.

    def _computed(
        self, terms: Sequence[Term], known: Assignment, rows: Rows
    ) -> Iterator[Assignment]:
        """The assignment with the values of the aggregates and ranges in some terms."""
        parts = [part for term in terms for part in walk_outer(term)]
        found = [known]
        for part in parts:
            new = []
            for each in found:
                if _key(part) in each:
                    new.append(each)
                elif isinstance(part, AggregateTerm):
                    result = _result_name(terms, part)
                    inner = {k: v for k, v in each.items() if k != result or result in known}
                    for value, more in self._aggregate(part, inner, rows):
                        new.append({**each, **more, _key(part): value})
                elif self._is_known(part, each):
                    new += [{**each, _key(part): value} for value in self._range(part, each)]
                else:
                    new.append(each)
            found = new
        for each in found:
            yield each

    def _aggregate(
        self, part: AggregateTerm, known: Assignment, rows: Rows
    ) -> Iterator[tuple[Any, Assignment]]:
        own: set[str] = set()
        if part.target is not None:
            own = {p.name for p in walk(part.target) if isinstance(p, Variable)}
            if not isinstance(part.target, Variable):
                own = {n for n in own if all(_names_row(n, body) for body in part.bodies)}
        given = {k: v for k, v in known.items() if k not in own and isinstance(k, str)}
        every: dict[Any, Assignment] = {}
        for body in part.bodies:
            named = [_numbered(each, place) for place, each in enumerate(body)]
            for found in self._assignments(named, given, rows):
                seen = {k: v for k, v in found.items() if isinstance(k, str)}
                if len(part.bodies) > 1:
                    seen = {k: v for k, v in seen.items() if not k.startswith("_")}
                every[frozenset(seen.items())] = found
        values = [1 if part.target is None else self._value(part.target, e) for e in every.values()]
        kept = [(v, e) for v, e in zip(values, every.values(), strict=True) if v is not NOTHING]
        values = [v for v, _ in kept]
        match part.name:
            case "count":
                yield len(values), {}
            case "sum":
                yield (
                    (math.fsum(values) if any(type(v) is float for v in values) else sum(values)),
                    {},
                )
            case "mean" if values:
                yield math.fsum(values) / len(values), {}
            case "min" | "max" if values:
                best = min(values) if part.name == "min" else max(values)
                seen_already = []
                for value, found in kept:
                    more = {
                        k: v
                        for k, v in found.items()
                        if isinstance(k, str) and not k.startswith("_") and k not in own
                    }
                    if value == best and more not in seen_already:
                        seen_already.append(more)
                        yield best, more

    def _values(self, term: Term, known: Assignment) -> list[Any]:
        """The values of a term: none, one or, of a range, several."""
        if isinstance(term, Functor) and term.name == "range" and _key(term) not in known:
            return list(self._range(term, known))
        value = self._value(term, known)
        return [] if value is NOTHING else [value]

    def _range(self, term: Any, known: Assignment) -> Iterator[Any]:
        given = [self._value(each, known) for each in term.arguments]
        if NOTHING in given:
            return
        start, end = given[:2]
        step = given[2] if len(given) > 2 else (1 if start <= end else -1)
        if step == 0:
            yield from [start] * (start != end)
            return
        now = start
        while now < end if step > 0 else now > end:
            yield now
            now += step

    def _value(self, term: Term, known: Assignment) -> Any:
        if _key(term) in known:
            return known[_key(term)]
        match term:
            case Variable(name):
                return known[name]
            case Number(value) | TextTerm(value):
                return value
            case Nil():
                return None
            case RecordTerm(items):
                values = [self._value(item, known) for item in items]
                return NOTHING if NOTHING in values else tuple(values)
            case Branch(name, items):
                values = [self._value(item, known) for item in items]
                return NOTHING if NOTHING in values else (name, *values)
            case Cast(of):
                return self._value(of, known)
            case Functor(name, arguments):
                values = [self._value(each, known) for each in arguments]
                return NOTHING if NOTHING in values else self._functor(name, values)
        raise AssertionError(term)

    def _functor(self, name: str, values: list[Any]) -> Any:
        found = _functor(name, values, self._bits or 32, self._bits is not None)
        if self._bits and type(found) is int and name not in ("strlen", "to_number"):
            return self._stored(found, "number")
        return found


def _functor(name: str, values: list[Any], bits: int, wraps: bool) -> Any:
    try:
        match name, values:
            case "-", [a]:
                return -a
            case "/", [a, b] if type(a) is int and type(b) is int:
                return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))
            case "%", [a, b]:
                return int(math.copysign(1, a)) * (abs(a) % abs(b))
            case "^", [a, b]:
                return a**b if type(a) is float or b >= 0 else NOTHING
            case "bshl" | "bshr" | "bshru", [a, b]:
                b = b % bits if wraps else b
                if not 0 <= b < bits:
                    return NOTHING
                a = a % (1 << bits) if name == "bshru" else a
                return a << b if name == "bshl" else a >> b
            case "substr", [text, start, count]:
                return text[start : start + count] if min(start, count) >= 0 else ""
            case "cat", parts:
                return "".join(parts)
            case "to_number" | "to_unsigned", [text]:
                return int(text)
            case "to_float", [text]:
                return float(text)
            case "max", several:
                return max(several)
            case "min", several:
                return min(several)
            case _:
                return eval(
                    _PYTHON[name],
                    {"int": int, "len": len, "str": str, "float": float},
                    dict(zip("ab", values, strict=False)),
                )
    except (ZeroDivisionError, ValueError, OverflowError):
        return NOTHING


_PYTHON = {
    "+": "a + b",
    "-": "a - b",
    "*": "a * b",
    "/": "a / b",
    "band": "a & b",
    "bor": "a | b",
    "bxor": "a ^ b",
    "bnot": "~a",
    "land": "int(a != 0 and b != 0)",
    "lor": "int(a != 0 or b != 0)",
    "lxor": "int((a != 0) != (b != 0))",
    "lnot": "int(a == 0)",
    "strlen": "len(a)",
    "to_string": "str(a)",
    "itof": "float(a)",
    "ftoi": "int(a)",
    "utof": "float(a)",
    "itou": "a",
    "utoi": "a",
    "ftou": "int(a)",
}


def walk_outer(term: Term) -> Iterator[Term]:
    """Yield the aggregates and ranges in a term, inner ones of functors first, none in bodies."""
    match term:
        case AggregateTerm():
            yield term
        case Functor(name, arguments):
            for each in arguments:
                yield from walk_outer(each)
            if name == "range":
                yield term
        case RecordTerm(items) | Branch(_, items):
            for each in items:
                yield from walk_outer(each)
        case Cast(of):
            yield from walk_outer(of)


def _key(term: Any) -> Any:
    """Return the cache key of a part: equal parts in different places have different keys."""
    return (term.at.start, term.at.end) if isinstance(term, AggregateTerm | Functor) else object


def _result_name(terms: Sequence[Term], part: AggregateTerm) -> str:
    """The variable that an aggregate is the value of, if it is."""
    others = [each for each in terms if each is not part]
    return others[0].name if len(terms) == 2 and isinstance(others[0], Variable) else ""


def _names_row(name: str, body: Sequence[Literal]) -> bool:
    """Return True if a body binds a variable."""
    return any(
        isinstance(part, Variable) and part.name == name
        for literal in body
        if isinstance(literal, Atom) or (isinstance(literal, Comparison) and literal.sign == "=")
        for part in walk(literal)
    )


def _numbered(literal: Literal, place: int) -> Literal:
    """Name the unnamed arguments of an atom in an aggregate, as each row counts."""
    if not isinstance(literal, Atom):
        return literal
    arguments = tuple(
        Variable(f"_{place}_{number}", each.at) if isinstance(each, Unnamed) else each
        for number, each in enumerate(literal.arguments)
    )
    return Atom(literal.name, arguments, literal.at, literal.name_at)


def _is_pattern(term: Term) -> bool:
    return isinstance(term, Variable | RecordTerm | Branch)


def _has_unnamed(term: Any) -> bool:
    is_here = isinstance(term, Unnamed)
    return is_here or (
        not isinstance(term, AggregateTerm) and any(_has_unnamed(each) for each in parts_of(term))
    )


def _read(literal: Literal, is_barrier: bool = False) -> Iterator[tuple[str, bool]]:
    """The relations that a literal reads, and whether they have to be complete before."""
    match literal:
        case Atom(name):
            yield name, is_barrier
        case Negation(atom):
            yield atom.name, True
    for part in walk(literal):
        if isinstance(part, AggregateTerm):
            for inner in (each for body in part.bodies for each in body):
                yield from _read(inner, True)


def _test(sign: str, a: Any, b: Any) -> bool:
    match sign:
        case "!=":
            return bool(a != b)
        case "<":
            return bool(a < b)
        case "<=":
            return bool(a <= b)
        case ">":
            return bool(a > b)
        case ">=":
            return bool(a >= b)
        case "match" | "!match":
            try:
                return bool(re.fullmatch(a, b)) is (sign == "match")
            except re.error:
                return False
        case "contains" | "!contains":
            return (a in b) is (sign == "contains")
    raise AssertionError(sign)


def _equivalence(rows: set[Row]) -> None:
    while True:
        more = {(x, x) for pair in rows for x in pair} | {(y, x) for x, y in rows}
        more |= {(x, z) for x, y in rows for y2, z in rows if y == y2}
        if more <= rows:
            return
        rows |= more
