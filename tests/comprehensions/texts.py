"""Draw texts of queries: all forms of comprehensions, nested up to a depth.

The results do not depend on the order of rows, except for ties that are cut; a text may raise.
"""

from __future__ import annotations

import re
from random import Random

FIELDS = {
    "a": {"k": "int", "v": "int", "s": "str"},
    "b": {"k": "int", "v": "int"},
    "d": {"id": "int", "k": "int"},
    "big": {"k": "int", "v": "int"},
}
"""Fields of the rows that are records, with their kinds."""
RAISING = 0.04
READS = re.compile(r"\b(?:in|len\()\s*(?:a|b|d|t|n|big|view)\b")
Env = dict[str, str]
"""Variables with their kinds: a table, `"int"`, `"pair"`, ..."""


class Texts:
    """Draw texts, one after the other."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._number = 0
        self._locals: dict[str, str] = {}

    def function(self, depth: int) -> str:
        """A function without parameters, as text."""
        self._number, self._locals, lines = 0, {}, []
        for _ in range(self._random.choice((0, 0, 0, 1, 1, 2))):
            lines += self._statement(depth - 1)
        lines.append(f"return {self._query(depth)}")
        body = "\n".join(f"    {line}" for line in lines)
        if not READS.search(body):
            return self.function(depth)
        return f"def query():\n{body}\n"

    def _one(self, *of: str) -> str:
        return self._random.choice(of)

    def _name(self, of: str = "r") -> str:
        self._number += 1
        return f"{of}{self._number}"

    # Statements.

    def _statement(self, depth: int) -> list[str]:
        """A local name, which the rest may use."""
        kind = self._one("list", "set", "int", "dict", "groups", "sums", "loop")
        name = self._name("q")
        if kind == "int":
            lines = [f"{name} = {self._int(depth, {})}"]
        elif kind == "list":
            lines = [f"{name} = {self._comprehension('[', depth, {}, self._int)}"]
        elif kind == "set":
            lines = [f"{name} = {self._comprehension('{', depth, {}, self._int)}"]
        elif kind == "dict":
            lines = [f"{name} = {self._dict(depth, {})}"]
        else:
            lines = self._loop(kind, name, depth)
        self._locals[name] = "list" if kind == "loop" else kind
        return lines

    def _loop(self, kind: str, name: str, depth: int) -> list[str]:
        begin = {"groups": "defaultdict(list)", "sums": "defaultdict(int)", "loop": "[]"}[kind]
        source, variable, of = self._source(depth, {})
        env = {variable: of} if "," not in variable else _pair_env(variable)
        lines = [f"{name} = {begin}", f"for {variable} in {source}:"]
        indent = "    "
        if self._random.random() < 0.4:
            lines.append(f"{indent}if {self._bool(depth - 1, env)}:")
            indent += "    "
        value, key = self._int(depth - 1, env), self._int(0, env)
        put = {
            "groups": f"{name}[{key}].append({value})",
            "sums": f"{name}[{key}] += {value}",
            "loop": f"{name}.append({value})",
        }[kind]
        return [*lines, f"{indent}{put}"]

    # Queries.

    def _query(self, depth: int) -> str:
        kind = self._random.randrange(14)
        if kind < 5:
            return self._comprehension("[", depth, {}, self._element)
        if kind < 7:
            return self._comprehension("{", depth, {}, self._element)
        if kind == 7:
            return self._dict(depth, {})
        if kind == 8:
            operator = self._one("|", "&", "-", "^")
            left = self._comprehension("{", depth - 1, {}, self._int)
            return f"{left} {operator} {self._comprehension('{', depth - 1, {}, self._int)}"
        if kind == 9:
            left = self._comprehension("[", depth - 1, {}, self._int)
            return f"{left} + {self._comprehension('[', depth - 1, {}, self._int)}"
        if kind == 10:
            return self._ordered(depth, {})
        if kind == 11:
            return f"({self._int(depth, {})}, {self._bool(depth, {})})"
        if kind == 12:
            of_groups = [n for n, k in self._locals.items() if k in ("groups", "sums", "dict")]
            return self._one(*of_groups) if of_groups else self._int(depth, {})
        return self._comprehension("(", depth, {}, self._element)

    def _ordered(self, depth: int, env: Env) -> str:
        rows = self._comprehension("(", depth - 1, env, self._pair)
        key = self._one("", ", key=lambda p: p[0]", ", key=lambda p: p[1]", ", reverse=True")
        window = self._one("[:1]", "[:2]", "[:3]", "[1:3]", "")
        return f"sorted({rows}{key}){window}"

    def _dict(self, depth: int, env: Env) -> str:
        """A dictionary of unique keys."""
        variable = self._name()
        keys = self._comprehension("{", max(0, depth - 1), env, self._int)
        inner = {**env, variable: "int"}
        return f"{{{variable}: {self._element(depth - 1, inner)} for {variable} in {keys}}}"

    def _comprehension(self, bracket: str, depth: int, env: Env, element: object) -> str:
        env, text = dict(env), ""
        for _ in range(self._random.choice((1, 1, 2) if depth > 0 else (1,))):
            source, variable, of = self._source(depth - 1, env)
            text += f" for {variable} in {source}"
            env |= _pair_env(variable) if "," in variable else {variable: of}
            while self._random.random() < 0.45:
                text += f" if {self._bool(depth - 1, env)}"
        close = {"[": "]", "{": "}", "(": ")"}[bracket]
        return f"{bracket}{element(depth - 1, env)}{text}{close}"  # type: ignore[operator]

    def _source(self, depth: int, env: Env) -> tuple[str, str, str]:
        """Draw a source of rows; return its text, a name for the rows, and their kind."""
        kind = self._random.randrange(12)
        variable = self._name()
        records = [name for name, of in env.items() if of == "d"]
        known = [n for n, k in self._locals.items() if k in ("list", "set")]
        groups = [n for n, k in self._locals.items() if k == "groups"]
        if kind == 0 and records:
            return f"{self._one(*records)}.tags", variable, "int"
        if kind == 1 and records:
            return f"{self._one(*records)}.pairs", self._two(), "pair"
        if kind == 2 and known:
            return self._one(*known), variable, "int"
        if kind == 3 and groups:
            return f"{self._one(*groups)}.items()", f"{self._name()}, {self._name('g')}", "group"
        if kind == 4 and depth > 0:
            return (
                self._comprehension(self._one("{", "[", "("), depth, env, self._int),
                variable,
                "int",
            )
        if kind == 5 and depth > 0:
            return self._ordered(depth, env), self._two(), "pair"
        if kind == 6:
            return self._one("t", "view"), self._two(), "pair"
        if kind == 7:
            return self._one("t", "view"), variable, "pair"
        if kind == 8:
            return "n", variable, "int"
        name = self._one("a", "a", "b", "b", "d", "d", "big")
        return name, variable, name

    def _two(self) -> str:
        return f"{self._name()}, {self._name()}"

    # Values.

    def _element(self, depth: int, env: Env) -> str:
        kind = self._random.randrange(8)
        if kind < 3:
            return self._int(depth, env)
        if kind == 3 and depth > 0:
            return f"frozenset({self._comprehension('(', depth - 1, env, self._int)})"
        if kind == 4 and depth > 0:
            rows = self._comprehension("(", depth - 1, env, self._int)
            return f"tuple(sorted({rows}))"
        if kind == 5:
            return self._bool(depth, env)
        return f"({self._int(depth, env)}, {self._int(0, env)})"

    def _pair(self, depth: int, env: Env) -> str:
        return f"({self._int(depth, env)}, {self._int(0, env)})"

    def _int(self, depth: int, env: Env) -> str:
        groups = [name for name, of in env.items() if of == "group"]
        if groups and self._random.random() < 0.5:
            name = self._one(*groups)
            return self._one(f"sum({name})", f"len({name})", f"max({name})", f"min({name})")
        kind = self._random.randrange(14)
        if depth > 0 and kind < 7:
            return self._aggregate(depth, env, kind)
        numbers = [name for name, of in self._locals.items() if of == "int"]
        if kind == 7 and numbers:
            return self._one(*numbers)
        dicts = [name for name, of in self._locals.items() if of == "sums"]
        if kind == 8 and dicts and depth > 0:
            return f"{self._one(*dicts)}.get({self._int(0, env)}, 7)"
        if kind == 9 and depth > 0:
            return f"({self._int(depth - 1, env)} + {self._int(0, env)})"
        if kind == 10 and depth > 0:
            then, other = self._int(depth - 1, env), self._int(0, env)
            return f"({then} if {self._bool(depth - 1, env)} else {other})"
        if self._random.random() < RAISING:
            return f"(6 // {self._leaf(env)})"
        return self._leaf(env)

    def _aggregate(self, depth: int, env: Env, kind: int) -> str:
        rows = self._comprehension("(", depth - 1, env, self._int)
        if kind == 0:
            return f"len({self._comprehension(self._one('[', '{'), depth - 1, env, self._int)})"
        if kind in (1, 2):
            return f"sum{rows}"
        if kind == 3:
            return f"{self._one('min', 'max')}({rows}, default={self._one('0', '-1', '9')})"
        if kind == 4:
            pairs = self._comprehension("(", depth - 1, env, self._pair)
            options = "key=lambda p: p[1], default=(0, 0)"
            return f"{self._one('min', 'max')}({pairs}, {options})[1]"
        if kind == 5:
            return f"sum({self._comprehension('{', depth - 1, env, self._int)})"
        if self._random.random() < RAISING * 4:
            return f"max{rows}"
        return f"len({self._one('a', 'b', 'd', 'n', 'big', 'view')})"

    def _leaf(self, env: Env) -> str:
        found = ["0", "1", "2"]
        for name, of in env.items():
            if of == "int":
                found += [name] * 3
            elif of == "pair":
                found += [f"{name}[0]", f"{name}[1]"] * 2
            elif of in FIELDS:
                found += [f"{name}.{f}" for f, kind in FIELDS[of].items() if kind == "int"] * 2
        return self._one(*found)

    def _bool(self, depth: int, env: Env) -> str:
        kind = self._random.randrange(16)
        if depth > 0 and kind < 2:
            rows = self._comprehension("(", depth - 1, env, self._bool)
            return f"{self._one('any', 'all', 'not any', 'not all')}{rows}"
        if depth > 0 and kind < 4:
            rows = self._comprehension(self._one("{", "["), depth - 1, env, self._int)
            return f"{self._int(0, env)} {self._one('in', 'not in')} {rows}"
        if depth > 0 and kind == 4:
            operator = self._one("and", "or")
            return f"({self._bool(depth - 1, env)} {operator} {self._bool(depth - 1, env)})"
        if depth > 0 and kind == 5:
            return f"not {self._bool(depth - 1, env)}"
        if depth > 0 and kind == 6:
            return f"bool({self._comprehension('[', depth - 1, env, self._int)})"
        sets = [n for n, k in self._locals.items() if k in ("set", "list", "dict", "sums")]
        if kind == 7 and sets:
            return f"{self._int(0, env)} {self._one('in', 'not in')} {self._one(*sets)}"
        optional = [name for name, of in env.items() if of == "b"]
        if kind == 8 and optional:
            return f"{self._one(*optional)}.x is {self._one('None', 'not None')}"
        if optional and self._random.random() < RAISING:
            return f"{self._one(*optional)}.x > 0"
        if kind == 9:
            return f"{self._int(0, env)} in n"
        operator = self._one("==", "==", "==", "<", ">", "!=", "<=")
        return f"{self._int(depth - 1, env)} {operator} {self._leaf(env)}"


def _pair_env(variables: str) -> Env:
    first, second = variables.split(", ")
    return {first: "int", second: "group" if second.startswith("g") else "int"}
