"""Stop a recursion whose values or rows multiply in each round, before memory or time end.

    f(n * n) :- f(n), !limit(n).                    the values double their digits
    f(2 * n), f(2 * n + 1) :- f(n), !limit(n).      the rows double

Cost:   a few rows of some rounds of a long recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reactive.engine.collections.zset import Row, UniformDelta
from reactive.errors import FixpointError

if TYPE_CHECKING:
    from reactive.engine.operators.fixpoint.delta_rules import Circuit


Endless = Callable[..., FixpointError]
"""Returns the error of rows that still enter, of a limit, and of a remedy."""


class Growth:
    """The limits of a recursion with `max_rounds` whose rounds take ever longer.

    Values that grow by a factor per round, as `n * n` does, never reach the limit of rounds; nor
    do rows of which each makes two. Rows are limited by the rows of the inputs: a recursion
    whose bound is an input ends in time while that input is still empty.

    The first `FEW_ROUNDS` rounds are not looked at: most changes take no more.

    Cost: a few rows of each of the next `ALL_ROUNDS` rounds, then of every `ROUNDS_BETWEEN`th.
    """

    __slots__ = ("_circuit", "_most_rows", "_rounds", "_rows")

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._rounds = self._rows = 0
        self._most_rows = ROWS_PER_GIVEN

    def check(
        self,
        entering: Sequence[UniformDelta],
        error: Callable[[Sequence[UniformDelta], str], FixpointError],
    ) -> None:
        """Raise the error of rows that enter, if they are too many or too large."""
        if self._circuit.max_rounds is None:
            return
        self._rounds += 1
        self._rows += sum(map(len, entering))
        if self._rows > self._most_rows:
            self._most_rows = ROWS_PER_GIVEN * (1 + self._given())
            if self._rows > self._most_rows:
                raise error(entering, f"with {self._rows:,} rows")
        if self._rounds <= ALL_ROUNDS or not self._rounds % ROUNDS_BETWEEN:
            for batch in entering:
                sample = batch.rows[:: len(batch.rows) // SAMPLE + 1]
                if any(is_larger(row, MOST_BYTES) for row in sample):
                    raise error(entering, f"with rows of more than {MOST_BYTES:,} bytes")

    def _given(self) -> int:
        """Return the number of rows of the inputs."""
        circuit = self._circuit
        indexed = sum(index.footprint()[0] for index in circuit.indexes.values())
        return indexed + sum(len(rows()) for rows in circuit.all_rows.values())


class RoundLimit:
    """The number of rounds, and the limits of a recursion whose values rise."""

    __slots__ = ("_circuit", "_endless", "_growth", "_number")

    def __init__(self, circuit: Circuit, endless: Endless, number: int = 0) -> None:
        self._circuit, self._endless, self._number = circuit, endless, number
        self._growth = Growth(circuit)

    def copy(self) -> RoundLimit:
        """Return a limit that has seen the same number of rounds."""
        return RoundLimit(self._circuit, self._endless, self._number)

    def next_round(self) -> bool:
        """Count a round; return True if its rows must be checked."""
        number = self._number = self._number + 1
        most = self._circuit.max_rounds
        return most is not None and (number > most or FEW_ROUNDS < number <= ALL_ROUNDS)

    def check(self, entering: Sequence[UniformDelta]) -> None:
        """Raise the error of rows that enter after the last round, or are too many or large."""
        self._growth.check(entering, self._endless)
        most = self._circuit.max_rounds
        if most is not None and self._number > most:
            raise self._endless(entering, f"after {most} rounds", "raise max_rounds=")


FEW_ROUNDS, ALL_ROUNDS, ROUNDS_BETWEEN, SAMPLE = 8, 64, 16, 16
MOST_BYTES = 1_000_000
ROWS_PER_GIVEN = 2_000_000
"""The rows that a commit may derive for each row of the inputs, and as many without any."""


def is_larger(value: object, most: int) -> bool:
    """Return True if the numbers and texts in a value have more than `most` bytes, about.

    A tuple in several places of a value counts in each, as it does in a hash or a comparison.
    """
    size, pending = 0, [value]
    while pending and size <= most:
        each = pending.pop()
        if type(each) is int:
            size += each.bit_length() >> 3
        elif isinstance(each, str | bytes):
            size += len(each)
        elif isinstance(each, tuple):
            size += len(each)
            pending += each
        elif isinstance(each, int):
            size += each.bit_length() >> 3
        elif hasattr(each, "__dataclass_fields__"):
            pending += [getattr(each, name, None) for name in each.__dataclass_fields__]
    return size > most


def shown_row(row: Row) -> str:
    """Return the beginning of the `repr` of a row; never raises an `Exception`."""
    try:
        return f"{row!r:.60}"
    except Exception as error:  # an integer of too many digits, or a class of the user
        if isinstance(row, int):
            return f"<{type(row).__name__} of {row.bit_length():,} bits>"
        if isinstance(row, tuple):
            names = getattr(row, "_fields", ())
            shown = [*map(shown_row, row)]
            named = [f"{name}={text}" for name, text in zip(names, shown, strict=False)]
            return f"{type(row).__name__ if names else ''}({', '.join(named or shown)})"
        return f"<{type(row).__name__} whose repr raises {type(error).__name__}>"
