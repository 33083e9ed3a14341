"""Random expressions and conditions as text: some raise on some rows, some cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.random_rows import Kind

PARAMETERS = ("x", "y", "z", "w", "v")


class Conditions:
    """Makes up expressions over bindings; `choose(n)` is a number below n.

    `raising` says how often, out of eight, a test may raise.
    """

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self._fields = ("a", "a", "b")
        self._any = True
        self.raising = self.one_of(0, 2, 3, 4)

    def chance(self, of_eight: int) -> bool:
        return self.choose(8) < of_eight

    def one_of(self, *choices: Any) -> Any:
        return choices[self.choose(len(choices))]

    def field(self, name: str, kind: Kind) -> str:
        """Some value in a binding."""
        if isinstance(kind, tuple):
            place = self.choose(len(kind))
            return self.field(f"{name}[{place}]", kind[place])
        if kind == "V":
            return name
        if kind == "P":
            return f"{name}[{self.one_of(0, 0, 1)}]"
        return f"{name}.{self.one_of(*self._fields)}" if kind == "T" or self._any else f"{name}.a"

    def value(self, kinds: dict[str, Kind]) -> str:
        """An expression of one of these bindings."""
        name = self.one_of(*kinds)
        field = self.field(name, kinds[name])
        if self.chance(self.raising // 2):
            return str(self.one_of(f"({field} + 1)", f"(1 / {field})", f"odd({field})"))
        if self.chance(6):
            return field
        return str(self.one_of(f"n({field})", f"({field}, 1)", f"({field} is None)"))

    def test(self, kinds: dict[str, Kind]) -> str:
        """A condition on one of these bindings."""
        name = self.one_of(*kinds)
        field = self.field(name, kinds[name])
        number = self.one_of(0, 1)
        if self.chance(self.raising):
            return str(
                self.one_of(
                    *(f"{field} > {number}", f"1 / {field} > 0", f"1 / {field} > 0"),
                    *(f"odd({field})", f"{number} <= {field} < 2", f"{field} + 1"),
                    f"({field} != 0 or {name}.missing)",
                )
            )
        return str(
            self.one_of(
                *(f"{field} == {number}", f"{field} != {number}", f"{field} != {number}"),
                *(f"{field} is not None", f"{field} is not None", f"n({field}) > 0"),
                *(f"not {field} == 2", f"{field} in (0, 1, None)", f"{name} is not None"),
                *(f"{field} == {self.field(name, kinds[name])}", f"{field}", "1 < 2"),
            )
        )

    def pair_test(self, left: dict[str, Kind], right: dict[str, Kind]) -> str:
        """A condition on both sides."""
        a, b = self.value(left), self.value(right)
        if self.chance(1):
            return self.alternatives(left, right)
        if self.chance(5):
            return f"{a} == {b}" if self.chance(5) else f"{b} == {a}"
        if self.chance(self.raising):
            return str(self.one_of(f"{a} < {b}", f"{a} + {b} > 1", f"[{a}] < [{b}]"))
        return str(
            self.one_of(
                f"{a} != {b}", f"({a} == 1 or {b} == 1)", f"[{a}] == [{b}]", f"n({a}) == {b}"
            )
        )

    def alternatives(self, left: dict[str, Kind], right: dict[str, Kind]) -> str:
        """One of several equations; each may come with more."""
        found = []
        for _ in range(self.one_of(2, 2, 3)):
            equation = f"{self._field(left)} == {self._field(right)}"
            more = self.test(self.one_of(left, right)) if self.chance(2) else None
            found.append(f"{equation} and {more}" if more else equation)
        return f"({' or '.join(found)})"

    def _field(self, kinds: dict[str, Kind]) -> str:
        name = self.one_of(*kinds)
        return self.field(name, kinds[name])

    def condition(self, kinds: dict[str, Kind], pairs: bool = False) -> str:
        """Some tests, all or some of which must hold; with `pairs` the last binding is a side."""
        tests = [self._part(kinds, pairs) for _ in range(self.one_of(1, 1, 2, 3))]
        if not pairs and self.chance(1):
            return f"({' or '.join(tests)})"
        return " and ".join(tests)

    def _part(self, kinds: dict[str, Kind], pairs: bool) -> str:
        if pairs and self.chance(5):
            *names, last = kinds
            return self.pair_test({x: kinds[x] for x in names}, {last: kinds[last]})
        return self.test(kinds)

    def callable(self, kinds: tuple[Kind, ...], body: Callable[[dict[str, Kind]], str]) -> str:
        """A lambda of bindings of these kinds; now and then it cannot be read."""
        names = dict(zip(PARAMETERS, kinds, strict=False))
        text = f"lambda {', '.join(names)}: {body(names)}"
        return f"Hidden({text})" if self.choose(16) == 15 else text

    def plain(self, names: dict[str, Kind]) -> str:
        """A value that can be in a row: of objects, the field that has a hash."""
        self._any = False
        try:
            return self.value(names)
        finally:
            self._any = True
