"""Facts that all partitions of a window share: how rows are held, ordered, evaluated and shown.

inserted    ((order,), (customer,), (day,), (amount,))
held        sort key, head, cell        day, order, amount
shown       (order, answer)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.record import record
from reactive.engine.operators.windows.entries import Entries, Row, Tie
from reactive.engine.operators.windows.frames import Order
from reactive.engine.operators.windows.function import Function, Near, canonical_answers
from reactive.engine.operators.windows.sort_keys import SortKeys

Packed = tuple[Any, ...]
"""A row as it is inserted: its bindings, its partition, its key values, and its arguments."""


@record
class HeldParts:
    """The parts of a row that a partition holds.

    `single` is the place of the only argument that functions read, if it is the only one.
    """

    is_wide: bool
    """True unless a row has one binding, which is in no tuple."""
    single: int | None
    has_key: bool
    """True if the value of the first key is held, behind the arguments."""

    def cell(self, row: Packed) -> Any:
        """Return the arguments, of which one alone is in no tuple."""
        if self.has_key:
            return (*row[3], row[2][0])
        return row[3] or None if self.single is None else row[3][self.single]


@record
class NearFunctions:
    """The functions of a window, if their answers depend on few rows beside each row.

    `before` and `behind` are the most rows that any of them reads on each side of a row; with a
    limit, functions may also read all rows before.
    """

    before: int
    behind: int
    answers: tuple[Callable[[Order, list[Any], list[Any], int, int], list[Any]], ...]
    is_limited: bool
    reads_keys: bool
    text: tuple[Callable[[bool], str] | None, ...]
    plain: tuple[frozenset[type], ...] | None
    """The classes of arguments for which the texts are right; None for all."""

    def texts(self, *, is_single: bool) -> list[str] | None:
        """Return the answers of all functions as text (`Near.text`); None if one has no text."""
        if self.plain is not None and not (is_single and self.plain):
            return None
        texts = [text(is_single) for text in self.text if text is not None]
        return texts if len(texts) == len(self.text) else None

    def all_answers(
        self, order: Order, keys: list[Any], cells: list[Any], start: int, stop: int
    ) -> list[Any]:
        """Return the answers of all functions for each row from a place up to another."""
        columns = [
            canonical_answers(answers(order, keys, cells, start, stop)) for answers in self.answers
        ]
        return list(zip(*columns, strict=True))


def find_near(functions: Sequence[Function], *, is_limited: bool) -> NearFunctions | None:
    """Return the functions as functions of the rows beside each row; None if one reads others."""
    found = [each.near for each in functions if each.near is not None]
    if len(found) < len(functions):
        return None
    if not is_limited and any(near.before is None for near in found):
        return None
    return NearFunctions(
        max(near.before or 0 for near in found),
        max(near.behind for near in found),
        tuple(near.answers for near in found),
        is_limited,
        any(near.reads_keys for near in found),
        tuple(near.text for near in found),
        _plain_of(found),
    )


def _plain_of(found: Sequence[Near]) -> tuple[frozenset[type], ...] | None:
    """Return the classes for which the texts of all functions are right; None for all."""
    asked = [near.plain for near in found if near.plain is not None]
    if not asked:
        return None
    return tuple(kinds for kinds in asked[0] if all(kinds in others for others in asked))


def _pair_of(head: Any, said: Any) -> Any:
    return head, said


def _head_and_answers(head: Any, said: Any) -> Any:
    return head, *said


def _heads_and_answer(head: Any, said: Any) -> Any:
    return *head, said


def _heads_and_answers(head: Any, said: Any) -> Any:
    return *head, *said


OUTPUT_ROWS: dict[tuple[bool, bool], Callable[[Any, Any], Any]] = {
    (False, True): _pair_of,
    (False, False): _head_and_answers,
    (True, True): _heads_and_answer,
    (True, False): _heads_and_answers,
}
"""Functions that make an output row, by whether rows have several bindings, and one answer."""


@record
class WindowFacts:
    """The facts that all partitions of a window share."""

    keys: SortKeys
    tie: Tie
    held: HeldParts
    functions: tuple[Function, ...]
    cut: Callable[[Order], int]
    """Return the number of rows within the limit."""
    drops: bool
    """True if a partition emits nothing while one of its functions raises."""
    output_row: Callable[[Any, Any], Any]
    """Return a row of the output: the bindings with the answers."""

    def order_of(self, entries: Entries) -> Order:
        return Order(entries, self.keys, is_single=self.held.single is not None)

    def parts(self, row: Packed) -> Row:
        """Return a row as the partition holds it."""
        head, _, values, arguments = row
        held = self.held
        cell = held.cell(row) if held.single is None else arguments[held.single]
        return self.keys.of(values), head if held.is_wide else head[0], cell

    def columns(self, rows: Sequence[Packed]) -> tuple[list[Any], list[Any], list[Any]]:
        """Return rows as columns of the parts that the partition holds."""
        keys, held = self.keys.of_many([row[2] for row in rows]), self.held
        heads = [row[0] for row in rows]
        if not held.is_wide:
            heads = [head for (head,) in heads]
        if held.single is None:
            return keys, heads, list(map(held.cell, rows))
        return keys, heads, [row[3][held.single] for row in rows]

    def output_rows(self, heads: Iterable[Any], shown: Iterable[Any]) -> list[Any]:
        """Return rows of the output, as `output_row`."""
        pairs = zip(heads, shown, strict=False)
        match self.held.is_wide, len(self.functions) == 1:
            case False, True:
                return list(pairs)
            case False, False:
                return [(head, *said) for head, said in pairs]
            case True, True:
                return [(*head, said) for head, said in pairs]
            case _:
                return [(*head, *said) for head, said in pairs]
