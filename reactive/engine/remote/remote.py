"""What keeps the rows of a fragment elsewhere, in Spark or wherever, and takes their changes in.

entries --apply--> delta of the output
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from optimizer import plan
from reactive.engine.collections.zset import Pair, Pairs, Row
from reactive.engine.remote.adoption import Adopt
from reactive.engine.remote.external import ExternalInput, ExternalSource

Entry = tuple[int, int, Row, int]
"""The input, the bucket, the packed row and its weight."""
Batch = tuple[Sequence[Entry], Sequence[ExternalInput]]
"""What one `apply` is of."""
Sources = Mapping[int, tuple[ExternalSource, tuple[plan.Node, ...]]]
"""The inputs that are fed from elsewhere, by their place: from which table, through which chain."""
NO_SOURCES: Sources = MappingProxyType({})
Output = Pairs | int
"""How the output changes, or the number of the `apply` that can still tell."""


class Remote(Protocol):
    """Where the rows of a fragment are kept.

    Its methods are called by one thread at a time, and never while another one of it runs.
    """

    begun_anew: str
    """Why it does not go on with what an earlier process kept of its views; empty if it does, or if
    nothing was kept."""
    adopt: Adopt | None
    """Whose rows count where tables hold others than an earlier process left; None: an error."""

    def bucket(self, key: Any) -> int:
        """Where rows of a key belong: the same for equal keys."""
        ...

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Any]:
        """The bucket of a key, and a row of an input as it is sent.

        Raises
        ------
        OffloadError: it cannot be kept there as what it is.
        """
        ...

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Keep entries of a number that is to be applied later, with what is given then.

        They are of one input. What has been staged of a number that is never applied counts for
        nothing.
        """
        ...

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        """Take entries in, and say how the output changes, unless that is to be `quiet`.

        What was staged of the number is taken in too.

        Numbers count up from 0, or from one after `resumed`. When this raises, the same number
        comes again, with the same entries and the same that is fed: they must be taken in once.

        Raises
        ------
        TakenIn: a callable raised; the next number is to give what came of this one too.
        """
        ...

    def contents(self) -> Iterable[Pair]:
        """The output as of the last `apply`, each row once."""
        ...

    def at(self, bucket: int) -> Iterable[Pair]:
        """What of the output is made of the rows of a bucket."""
        ...

    @property
    def resumed(self) -> int | None:
        """The last number that an earlier process had applied, if this goes on from there."""
        ...

    def footprint(self) -> tuple[int, int]:
        """Rows and bytes kept."""
        ...

    def describe(self) -> str:
        """Where and how it is kept, and what runs where: a line for `explain`."""
        ...

    def entries(self) -> Iterable[Entry]:
        """What is kept, each row once."""
        ...

    def stop(self) -> None:
        """Nobody reads it any more. What a later process is to go on with is kept."""
        ...

    def close(self) -> None:
        """Give everything up."""
        ...


@runtime_checkable
class Summing(Protocol):
    """A remote that may keep sums by group, which are compared with rows by their sums."""

    def netted(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return entries of rows and of sums as one entry per group whose sums are not 0."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """What one of several remotes is given, that take it in together.

    `barrier` is the commit up to which it is; None if nobody else is given the same.
    """

    number: int
    barrier: int | None
    entries: Sequence[Entry]
    fed: Sequence[ExternalInput] = ()


@runtime_checkable
class Sharing(Protocol):
    """A `Remote` that shares what it keeps with others, and takes in together with them."""

    shared: object
    """The same for all that do."""

    @property
    def left(self) -> int:
        """How many have left that shared with it: what failed may do now without them."""
        ...

    def is_brought(self, place: int) -> bool:
        """Whether others bring the rows of an input, so that they are not to be handed over."""
        ...

    def take_in(self, parts: Sequence[tuple[Any, Part]]) -> None:
        """Have what some of them are given taken in, once; each can then be asked by `apply` what
        came of it."""
        ...
