"""Random changes of the rows of a part, and the expected output."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

from reactive.engine.collections.zset import consolidate
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Remote
from tests.engine.remote.in_memory import InMemory
from tests.spark.ways import Ways

Change = tuple[int, Any, int]
"""The input, a row, and how often it comes or goes."""


@dataclass(frozen=True)
class Inner:
    """A row in a row."""

    value: Any


KEYS = [0, 1, True, 1.0, -0.0, None, math.nan, 2**70, "a", Inner(1), (None, math.nan)]
NUMBERS = [1, 2, 0.5, True, 2**70, -0.0]


class History:
    """Changes that a seed decides; no row goes that is not there."""

    def __init__(self, seed: int, inputs: int) -> None:
        self._random = random.Random(seed)
        self._bags = [Counter[Any]() for _ in range(inputs)]

    def changes(self, count: int) -> list[Change]:
        return [self._change() for _ in range(count)]

    def _change(self) -> Change:
        place = self._random.randrange(len(self._bags))
        bag = self._bags[place]
        row = (self._random.choice(KEYS), self._random.choice(NUMBERS))
        weight = self._random.choice([1, 1, 2, -1, -1])
        if bag[row] + weight < 0:
            weight = 1
        bag[row] += weight
        return place, row, weight


class Twins:
    """A remote and the reference, given the same; a seed says which flushes are jobs."""

    def __init__(self, part: Fragment, remote: Remote, seed: int = 0) -> None:
        self.fragment = part
        self.remote = remote
        self.reference = InMemory(part)
        self.number = 0 if remote.resumed is None else remote.resumed + 1
        self.keys: list[Any] = []
        self._ways = Ways(seed)

    def apply(self, changes: list[Change], *, quiet: bool = False) -> None:
        """Apply changes to both, and compare their results and contents."""
        wanted = self.reference.apply(self.number, self.entries(self.reference, changes))
        with self._ways.next():
            found = self.remote.apply(self.number, self.entries(self.remote, changes), quiet=quiet)
        self.number += 1
        if quiet:
            assert list(found) == []
        else:
            assert dict(consolidate(list(found))) == dict(wanted)
        self.check()

    def entries(self, remote: Remote, changes: list[Change]) -> list[Any]:
        made = []
        for place, row, weight in changes:
            prepared = self.fragment.prepare[place](row)
            if prepared is not None:
                self.keys.append(prepared[0])
                made.append((place, *remote.pack(place, *prepared), weight))
        return made

    def check(self) -> None:
        held = list(self.remote.contents())
        assert len(dict(held)) == len(held)
        assert dict(held) == dict(self.reference.contents())
        for key in self.keys[-3:]:
            near = dict(self.remote.at(self.remote.bucket(key)))
            assert near.items() >= dict(self.reference.at(self.reference.bucket(key))).items()
