"""Callables as text: conditions, keys and values of rows, written in many ways.

The library can read only some of them. All have equal results for equal rows. If `raising`, some
raise for some rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from tests.random_queries.nodes import NAMES, Node
from tests.random_queries.rows import FIELDS, Kind
from tests.random_queries.values import CONSTANTS

Names = Mapping[str, Kind]
"""The kind of each parameter."""


def parameters(kinds: tuple[Kind, ...]) -> Names:
    return dict(zip(NAMES, kinds, strict=False))


def of_sides(left: Node, right: Node) -> tuple[Names, Names]:
    """Return the parameters of a join's predicate: the left ones, and the right one."""
    names = NAMES[: len(left.kinds) + 1]
    return parameters(left.kinds), {names[-1]: right.row}


PARAMETERS = ("p0", "p1")
MOVING = ("now()", *(f"{name}()" for name in PARAMETERS))
UNREAD = ("for _ in", "partial(", "class H", "lru_cache(", "eval(", "@", ": (lambda ")
"""Parts of callables that the library does not read, where it refuses a value that moves."""


class Texts:
    """Draw expressions, and the lines of a module with the callables."""

    def __init__(self, random: Random, mode: str, *, raising: bool) -> None:
        self._random = random
        self.raises = raising
        self._numbers = itertools.count()
        self._constants = CONSTANTS[mode]
        self._is_nan = mode == "nan"
        self._is_cached = mode not in ("mixed", "fractions")  # True is another 1 than 1.0
        self.moves = False
        """True if conditions may read the clock and parameters."""
        self.lines: list[str] = []

    def name(self, field: str) -> str:
        """A callable that is the name of a field, or of one of each side."""
        name = f"f{next(self._numbers)}"
        self.lines.append(f"{name} = {field}")
        return name

    def plain(self, text: str) -> str:
        """The name of an expression."""
        name = f"f{next(self._numbers)}"
        self.lines.append(f"{name} = {text}")
        return name

    def source(self, names: set[str]) -> str:
        """A module with these callables."""
        return "\n".join([*lines_of("\n".join(self.lines), names), ""])

    def field(self, names: Names) -> str:
        """A field of one of the parameters."""
        name = self._random.choice(list(names))
        return self._random.choice(self._fields(name, names[name]))

    def fields(self, name: str, kind: Kind) -> list[str]:
        return self._fields(name, kind)

    def _fields(self, name: str, kind: Kind) -> list[str]:
        if isinstance(kind, tuple):
            return [
                text for i, part in enumerate(kind) for text in self._fields(f"{name}[{i}]", part)
            ]
        found = [text.format(name) for text in FIELDS[kind[0]]]
        if kind.endswith("?") and kind[0] != "V":
            return [f"({text} if {name} is not None else None)" for text in found]
        return found

    def number(self, names: Names) -> str:
        """A number of a row."""
        field, other = self.field(names), self.field(names)
        forms = {
            f"n({field})": 12,
            f"small({field})": 4,
            f"hash_of({field})": 1,
            f"(n({field}) if {self.simple(names)} else {self._random.randrange(3)})": 1,
            f"(lambda q: n(q))({field})": 1,
            f"max(small({field}), small({other}))": 1,
            f"sum(small(q) for q in ({field}, {other}))": 1,
            f"[small({field}), 1][0]": 1,
        }
        return self._one(forms)

    def maybe(self, names: Names) -> str:
        """A number of a row, or None."""
        return f"(n({self.field(names)}) if {self.simple(names)} else None)"

    def value(self, names: Names) -> str:
        """Any value of a row."""
        field, other = self.field(names), self.field(names)
        forms = {
            field: 18,
            self.number(names): 3,
            f"({field}, {other})": 0 if self._is_nan else 2,
            f"({field} is None)": 1,
            f"({field} if {self.simple(names)} else {other})": 2,
            f"[{field}, {other}][{self._random.randrange(2)}]": 1,
            f"same({field})": 1,
            f"(lambda q, r=1: q)({field})": 1,
            f"next(q for q in ({field}, 1))": 1,
            f"f'{{small({field})}}'": 1,
            f"dict(a={field})['a']": 1,
            f"(*({field},), 1)[0]": 1,
            self._random.choice(self._constants): 1,
        }
        return self._one(forms)

    def pair(self, names: Names) -> str:
        return f"({self.value(names)}, {self.value(names)})"

    def simple(self, names: Names) -> str:
        """A condition that is one comparison, or as short."""
        field, constant = self.field(names), self._random.choice(self._constants)
        other, more = self.field(names), self._random.choice(self._constants)
        if self.raises and self._random.random() < 0.12:
            return self._raises(field, names)
        if self.moves and self._random.random() < 0.25:
            return self.moving(names)
        nullable = [name for name, kind in names.items() if kind[-1] == "?"]
        if nullable and self._random.random() < 0.4:
            is_not = self._random.choice(("is", "is not"))
            return f"{self._random.choice(nullable)} {is_not} None"
        low, high = self._random.randrange(3), self._random.randrange(1, 4)
        forms = dict.fromkeys(
            [
                *(f"n({field}) > {low}", f"{field} == {other}", f"{field} != {constant}"),
                *(f"{field} == {constant}", f"{field} in ({constant}, {more})"),
                *(f"{field} not in [{constant}]", f"0 <= n({field}) < {high}"),
                *(f"{field} is None", f"{field} is not None", f"{field}", f"small({field}) != 2"),
            ],
            3,
        )
        others = [
            *(f"(lambda q: n(q) > 1)({field})", f"any(n(q) > 1 for q in ({field}, {other}))"),
            *(f"all([n(q) > 0 for q in ({field},)])", f"small({field}) % 2 == 0", f"not {field}"),
            *(f"isinstance({field}, str)", f"n({field}) < n({other})", f"LOW <= small({field})"),
            *(f"{constant} == {field} == {other}", f"{{0: True}}.get(small({field}), False)"),
            *(f"len([q for q in (1, 2) if q > small({field})]) == 1", "1 < 2", "2 < 1"),
        ]
        return self._one(dict.fromkeys(others, 1) | forms)

    def moving(self, names: Names) -> str:
        """Draw a condition that the clock or a parameter moves."""
        events = [name for name, kind in names.items() if kind == "E"]
        number, parameter = f"n({self.field(names)})", self._random.choice(PARAMETERS)
        if not events or self._random.random() < 0.4:
            forms: tuple[str, ...] = (
                *(f"{number} > {parameter}()", f"{parameter}() >= small({self.field(names)})"),
                *(f"small({self.field(names)}) == {parameter}()", f"{parameter}() - {number} > 0"),
                f"{number} * 2 < {parameter}() + 3",
            )
            return self._random.choice(forms)
        x, minutes = self._random.choice(events), self._random.choice((0, 1, 3, 7))
        age = f"timedelta(minutes={minutes})"
        forms = (
            *(f"now() - {x}.at < {age}", f"{x}.at > now() - {age}", f"{x}.at + {age} >= now()"),
            *(f"now() - {age} <= {x}.at <= now()", f"({x}.due is None or {x}.due <= now())"),
            *(f"(now() - {x}.at).total_seconds() < {60 * minutes}", f"now() >= {x}.at + {age}"),
            *(f"({x}.due is not None and now() - {x}.due < {age})", f"not {x}.at < now()"),
            *(
                f"now() - {x}.at > timedelta(minutes={parameter}())",
                f"{x}.at.date() < now().date()",
            ),
        )
        return self._random.choice(forms)

    def condition(self, names: Names, depth: int = 1) -> str:
        if not depth or self._random.random() > 0.3:
            return self.simple(names)
        a, b = self.condition(names, depth - 1), self.condition(names, depth - 1)
        forms = (
            *(f"{a} and {b}", f"({a} or {b})", f"not ({a})", f"bool({a})"),
            *(f"({a} if {b} else {self.simple(names)})", f"({a}) and not ({b})"),
        )
        return self._random.choice(forms)

    def match(self, left: Names, right: Names) -> str:
        """Draw the condition that two rows match."""
        chance = self._random.random()
        if chance < 0.06:
            pairs = [(self.field(left), self.field(right)) for _ in range(2)]
            return f"({' or '.join(map(' == '.join, pairs))})"
        if chance < 0.18:
            return self._range(left, right)
        if chance < 0.22:
            mine, constant = self.field(left), self._random.choice(self._constants)
            return f"{mine} == {constant} and {mine} == {self.field(right)}"
        parts = []
        for _ in range(self._random.choice((1, 1, 1, 1, 2))):
            if self._random.random() < 0.75:
                sides = [self.key(left), self.key(right)]
                self._random.shuffle(sides)
                parts.append(" == ".join(sides))
            else:
                parts.append(self.condition({**left, **right}))
        return f"({' or '.join(parts)})" if self._random.random() < 0.08 else " and ".join(parts)

    def _range(self, left: Names, right: Names) -> str:
        """Draw a condition: a row is in the range of another, or two ranges overlap."""
        sides = [left, right]
        self._random.shuffle(sides)
        (low, high), point = (self.number(sides[0]) for _ in range(2)), self.number(sides[1])
        less = [self._random.choice(("<", "<=")) for _ in range(2)]
        end = point if self._random.random() < 0.6 else self.number(sides[1])
        tests = [f"{low} {less[0]} {point}", f"{end} {less[1]} {high}"]
        return " and ".join(tests[: self._random.choice((1, 2, 2, 2))])

    def key(self, names: Names) -> str:
        if self._random.random() < 0.75:
            return self.field(names)
        return self.number(names) if self._is_nan else self.value(names)

    def _raises(self, field: str, names: Names) -> str:
        """A condition that some rows make raise."""
        number, records = self._random.randrange(4), [x for x in names if names[x] == "D"]
        if records and self._random.random() < 0.2:
            return f"({field} != {number} or {self._random.choice(records)}.missing)"
        forms = (
            *(f"10 / (small({field}) - {number}) > 0", f"{field} < 2", f"{field} + 1 > 1"),
            *(f"({field}, 1)[small({field})] is not None", f"10 % small({field}) == 0"),
        )
        return self._random.choice(forms)

    def _one(self, forms: Mapping[str, int]) -> str:
        return self._random.choices(list(forms), list(forms.values()))[0]

    def declared_monotone(self, names: Sequence[str], body: str) -> str:
        """The name of a function that is declared monotone."""
        name = self.plain_lambda(names, body)
        self.lines.append(f"{name} = monotone({name})")
        return name

    def plain_lambda(self, names: Sequence[str], body: str) -> str:
        """The name of a lambda, which can be read."""
        name = f"f{next(self._numbers)}"
        self.lines.append(f"{name} = lambda {', '.join(names)}: {body}")
        return name

    def callable(self, names: Names, body: str, *, inverted: bool = False) -> str:
        """The name of a callable of these parameters, in one of the forms that there are."""
        name, all_names = f"f{next(self._numbers)}", ", ".join(names)
        low = self._random.randrange(3)
        forms = {
            (f"{name} = lambda {all_names}: {body}",): 45,
            (f"{name} = (lambda LOW: lambda {all_names}: {body})({low})",): 4,
            (f"{name} = lambda {all_names}, LOW={low}: {body}",): 4,
            (f"def {name}({all_names}):", f"    found = {body}", "    return found"): 5,
            (
                f"def {name}({all_names}):",
                f"    if {self.simple(names)}:",
                f"        return {body}",
                f"    return {body}",
            ): 4,
            (
                f"def {name}({all_names}):",
                "    for _ in (0,):",
                f"        found = {body}",
                "    return found",
            ): 3,
            (f"def {name}_(LOW, {all_names}): return {body}", f"{name} = partial({name}_, 1)"): 3,
            (
                f"class H{name}:",
                f"    def of(self, {all_names}): return {body}",
                f"{name} = H{name}().of",
            ): 3,
            (
                f"class H{name}:",
                f"    def __call__(self, {all_names}): return {body}",
                f"{name} = H{name}()",
            ): 3,
            (f"{name} = lru_cache(None)(lambda {all_names}: {body})",): 3 * self._is_cached,
            (f"{name} = eval({f'lambda {all_names}: {body}'!r})",): 3,
            (
                f"{name}_, {name} = (lambda {all_names}: {self.simple(names)}),"
                f" (lambda {all_names}: {body})",
            ): 4,
            (f"{name} = (", f"    lambda {all_names}:  # lambda z: 1", f"    {body}", ")"): 4,
            (
                "@inverted" if inverted else "@through",
                f"def {name}({all_names}): return {body}",
            ): 3,
            (f"{name} = lambda {all_names}: (lambda {all_names}: {body})({all_names})",): 2,
        }
        if any(mark in line for lines in forms for line in lines for mark in MOVING):
            forms = {lines: often for lines, often in forms.items() if _is_read(lines)}
        self.lines += self._random.choices(list(forms), list(forms.values()))[0]
        return name


def lines_of(source: str, names: set[str]) -> Iterator[str]:
    """The lines of a module that define some callables."""
    block: list[str] = []
    for line in [*source.splitlines(), "end"]:
        is_head = not line.startswith((" ", ")"))
        if is_head and not (block and block[-1].startswith("@")):
            if _defines(block, names):
                yield from block
            block = []
        block.append(line)


def _is_read(lines: tuple[str, ...]) -> bool:
    return not any(part in line for part in UNREAD for line in lines)


def _defines(block: list[str], names: set[str]) -> bool:
    words = " ".join(block).replace("(", " ").replace("_", " ").replace(",", " ")
    words = words.replace("class H", "class ").replace(":", " ")
    return bool(names & set(words.split()))
