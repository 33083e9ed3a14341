"""Equality saturation, against union-find from scratch after every commit of random edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from random import Random
from typing import Any

import pytest

from examples.egraph.saturation import LAWS, Saturation, add, mul, num, size, text_of, var
from reactive import Database
from tests.budget import seeds

Term = Any


class Classes:
    """The classes of terms that laws make, by union-find."""

    def __init__(self, terms: Iterable[Term], laws: set[str]) -> None:
        self.parent: dict[Term, Term] = {}
        for term in terms:
            self._node(term)
        before: object = None
        while before != (before := self._counts()):
            for e, f, is_new in [m for node in [*self.parent] for m in self._equal(node, laws)]:
                if is_new:
                    self._node(f)
                self._union(e, f)

    def _counts(self) -> tuple[int, int]:
        return len(self.parent), len(set(map(self.find, self.parent)))

    def _node(self, term: Term) -> None:
        self.parent.setdefault(term, term)
        if size(term) > 1:
            self._node(term[1])
            self._node(term[2])

    def find(self, term: Term) -> Term:
        while self.parent[term] != term:
            term = self.parent[term]
        return term

    def _union(self, e: Term, f: Term) -> None:
        self.parent[self.find(e)] = self.find(f)

    def members(self, term: Term) -> list[Term]:
        leader = self.find(term)
        return [each for each in self.parent if self.find(each) == leader]

    def _equal(self, e: Term, laws: set[str]) -> Iterator[tuple[Term, Term, bool]]:
        """Yield the terms that equal one, and whether they are new."""
        if size(e) == 1:
            return
        op, a, b = e
        of, same = add if op == "Add" else mul, [self.members(a), self.members(b)]
        for c, d in product(*same):
            if of(c, d) in self.parent:
                yield e, of(c, d), False
        numbers = [[each[1] for each in some if each[0] == "Num"] for some in same]
        if "fold" in laws:
            for n, m in product(*numbers):
                yield e, num(n + m if op == "Add" else n * m), True
        if "commutative" in laws:
            yield e, of(b, a), True
        if ("zero" in laws and op == "Add" and 0 in numbers[1]) or (
            "one" in laws and op == "Mul" and 1 in numbers[1]
        ):
            yield e, a, False
        if op == "Add" and "associative" in laws:
            for p in same[1]:
                if p[0] == "Add" and size(add(add(a, p[1]), p[2])) <= size(e):
                    yield e, add(add(a, p[1]), p[2]), True
        if op == "Add" and "factor" in laws:
            for p, q in product(*same):
                if p[0] == q[0] == "Mul" and p[1] == q[1]:
                    made = mul(p[1], add(p[2], q[2]))
                    if size(made) <= size(e):
                        yield e, made, True

    def smallest(self) -> dict[Term, tuple[int, str]]:
        """The size and the text of the smallest term of each class."""
        best: dict[Term, tuple[int, str]] = {}
        before: object = None
        while before != (before := dict(best)):
            for term in self.parent:
                found = (1, text_of(term))
                if size(term) > 1:
                    parts = [best.get(self.find(part)) for part in term[1:]]
                    if None in parts:
                        continue
                    (n, one), (m, other) = parts  # type: ignore[misc]
                    found = (1 + n + m, f"({one} {'+' if term[0] == 'Add' else '*'} {other})")
                leader = self.find(term)
                best[leader] = min(best.get(leader, found), found)
        return best


def draw(random: Random, depth: int = 2) -> Term:
    if depth and random.random() < 0.8:
        return random.choice([add, mul])(draw(random, depth - 1), draw(random, depth - 1))
    return random.choice([num(0), num(1), num(2), var("x"), var("y")])


@pytest.mark.parametrize("seed", seeds(6))
def test_the_smallest_terms_follow_terms_and_laws(seed: int) -> None:
    random = Random(seed)
    found = Saturation(Database())
    smallest, classes = found.smallest.materialize(), found.program["same"].materialize()
    terms: set[Term] = set()
    laws: set[str] = set()
    for _ in range(10):
        if random.random() < 0.5:
            term = random.choice([*terms, draw(random), draw(random)])
            (found.remove if term in terms else found.insert)(term)
            terms ^= {term}
        else:
            laws ^= {random.choice(LAWS)}
            found.use(*laws)
        wanted = Classes(terms, laws)
        assert {(x, y) for x, y in classes} == {
            (x, y) for x in wanted.parent for y in wanted.members(x)
        }
        best = wanted.smallest()
        assert {(t, size(s), text_of(s)) for t, s in smallest} == {
            (t, *best[wanted.find(t)]) for t in terms
        }
    smallest.verify()


def test_a_sum_of_four_has_a_row_for_each_of_its_terms() -> None:
    found = Saturation(Database())
    found.use("commutative", "associative")
    leaders = found.leaders.materialize()
    found.insert(add(num(1), add(num(2), add(num(3), num(4)))))
    assert len(leaders) == 184  # 4 + 6 * 2 + 4 * 12 + 120, of 15 classes
    assert len({each.leader for each in leaders}) == 15
    found.use()
    assert len(leaders) == 7
