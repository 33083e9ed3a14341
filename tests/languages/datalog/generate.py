"""Random programs: a few relations; each may read itself and earlier ones.

r0 ... r2     inputs of one to three columns of numbers
s0 ... s3     relations with rules: joins, negations, comparisons, arithmetic below a bound,
              alternatives, aggregates of earlier relations
"""

from __future__ import annotations

from random import Random
from typing import Any

INPUTS = {"a": 1, "b": 2, "c": 2, "d": 3}
VARIABLES = "xyzw"


def random_program(random: Random) -> str:
    """Return the text of a program that is stratified, and in which all variables are bound."""
    return _Generator(random).program()


class _Generator:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._lower = dict(INPUTS)
        self._names = 0

    def program(self) -> str:
        lines = [f"{self._declared(name, count)} .input {name}" for name, count in INPUTS.items()]
        for _ in range(self._random.choice([1, 2, 2])):
            lines += self._stratum()
        return "\n".join(lines)

    def _declared(self, name: str, count: int) -> str:
        return f".decl {name}({', '.join(f'{c}: number' for c in 'klmn'[:count])})"

    def _stratum(self) -> list[str]:
        random = self._random
        group = {
            f"s{self._names + i}": random.choice([1, 2, 2]) for i in range(random.choice([1, 1, 2]))
        }
        self._names += len(group)
        lines = [f"{self._declared(name, count)} .output {name}" for name, count in group.items()]
        for name, count in group.items():
            lines.append(self._rule(name, count, {}))
            lines += [self._rule(name, count, group) for _ in range(random.choice([1, 2]))]
        self._lower |= group
        return lines

    def _rule(self, name: str, count: int, group: dict[str, int]) -> str:
        random = self._random
        atoms = [self._atom({**self._lower, **group}) for _ in range(random.choice([1, 2, 2, 3]))]
        if group:
            atoms.append(self._atom(group))
        bound = sorted({v for _, values in atoms for v in values if v in VARIABLES}) or ["0"]
        body = [self._shown(*atom) for atom in atoms]
        extra = [
            self._negation,
            self._comparison,
            self._aggregate,
            self._defined,
            self._alternative,
        ]
        for make in random.sample(extra, random.choice([0, 1, 1, 2])):
            literal, more = make(bound)
            body.append(literal)
            bound = [*bound, *more]
        random.shuffle(body)
        head = [random.choice(bound) for _ in range(count)]
        bounds = [f"{v} < 9, {v} > -9" for v in dict.fromkeys(head) if not v.isdigit()]
        return f"{name}({', '.join(head)}) :- {', '.join([*body, *bounds])}."

    def _atom(self, known: dict[str, int]) -> tuple[str, list[str]]:
        name = self._random.choice(sorted(known))
        return name, [self._argument() for _ in range(known[name])]

    def _argument(self) -> Any:
        return self._random.choice([*VARIABLES, *VARIABLES, *"xy", "_", "_", "1", "2"])

    def _shown(self, name: str, arguments: list[str]) -> str:
        return f"{name}({', '.join(arguments)})"

    def _bound_atom(self, bound: list[str]) -> str:
        name = self._random.choice(sorted(self._lower))
        arguments = [self._random.choice([*bound, "_", "2"]) for _ in range(self._lower[name])]
        return self._shown(name, arguments)

    def _negation(self, bound: list[str]) -> tuple[str, list[str]]:
        return f"!{self._bound_atom(bound)}", []

    def _comparison(self, bound: list[str]) -> tuple[str, list[str]]:
        random = self._random
        sign = random.choice(["<", "<=", "!=", "=", ">"])
        left = random.choice([random.choice(bound), f"{random.choice(bound)} + 1"])
        return f"{left} {sign} {random.choice([*bound, '3'])}", []

    def _defined(self, bound: list[str]) -> tuple[str, list[str]]:
        random = self._random
        of = random.choice(bound)
        made = random.choice(
            [f"{of} + 1", f"{of} * 2 - {random.choice(bound)}", f"{of} / {random.choice(bound)}"]
        )
        return random.choice([f"v = {made}", f"v = max({of}, 2)", f"v = range({of}, 5)"]), ["v"]

    def _alternative(self, bound: list[str]) -> tuple[str, list[str]]:
        literals = [self._bound_atom(bound), self._comparison(bound)[0], self._negation(bound)[0]]
        return f"({'; '.join(self._random.sample(literals, 2))})", []

    def _aggregate(self, bound: list[str]) -> tuple[str, list[str]]:
        random = self._random
        own = [*bound, "p", "q", "_"]
        atoms = []
        for _ in range(random.choice([1, 1, 2])):
            name = random.choice(sorted(self._lower))
            atoms.append((name, [random.choice(own) for _ in range(self._lower[name])]))
        atoms[0][1][random.randrange(len(atoms[0][1]))] = "p"
        body = [self._shown(*atom) for atom in atoms]
        if random.random() < 0.4:
            body.append(f"p {random.choice(['<', '!=', '>='])} {random.choice(bound)}")
        if random.random() < 0.2:
            body.append(f"!{self._bound_atom([*bound, 'p'])}")
        kind = random.choice(["count", "sum p", "min p", "max p", "sum p + 1"])
        return f"u = {kind} : {{ {', '.join(body)} }}", ["u"]
