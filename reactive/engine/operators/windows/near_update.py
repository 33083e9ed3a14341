"""Generate the function that replaces a row of a partition within a chunk.

    keys      1  3  4  7  9          the row with key 4 becomes one with key 5: the lists change,
    answers   a [b  c  d  e]         then the answers of the rows that read the old or the new one

The code is that of one window: how a row is held, sorted and shown, and the answers of functions
that have a text (`Near.text`). Others are called with slices of the lists.

State:  none.
Cost:   O(log rows) to find the places, and a step for each row whose answer is computed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.collections.value_order import Directions
from reactive.engine.collections.zset import Pair
from reactive.engine.operators.windows.entries import HIDDEN
from reactive.engine.operators.windows.facts import HeldParts, NearFunctions, Packed, WindowFacts
from reactive.engine.operators.windows.frames import Order
from reactive.engine.operators.windows.sort_keys import PLAIN

Update = Callable[[Order, int, Any, Packed, Packed, list[Any]], tuple[int, list[Pair]] | None]
"""Replaces a row by another, in a partition with a number of output rows.

Returns that number, and the changes of the output, each row in a pair with a key; None if the
change is not near, also after having logged another.
"""


def make_update(made: WindowFacts, functions: NearFunctions, said: Any, close: int) -> Update:
    """Return the function that replaces a row; `said` returns the answers of all functions.

    If there are fewer than `close` rows between the rows, these are answered together.
    """
    held, is_limited = made.held, functions.is_limited
    values = BoundValues()
    values.by_name |= {"bisect_left": bisect_left, "HIDDEN": HIDDEN, "PLAIN": PLAIN}
    values.by_name |= {"CLOSE": close, "cut": made.cut, "key_of": made.keys.of, "said": said}
    values.by_name["plain"] = functions.plain
    mark, star = "*" if held.is_wide else "", "" if len(functions.answers) == 1 else "*"
    parts = {
        "sort_key": _sort_key(made.keys.directions),
        "item": "" if held.is_wide else "[0]",
        "cell": _cell(held),
        "answers": _answers(functions, held),
        "gone_row": f"({mark}old_head, {star}old)",
        "old_row": f"({mark}heads[place], {star}old)",
        "new_row": f"({mark}heads[place], {star}new)",
        "before": str(functions.before),
        "behind": str(functions.behind),
        "reach": str(functions.before + functions.behind),
        "low": "0"
        if is_limited
        else f"(start - {functions.before} if start > {functions.before} else 0)",
        "keys": "keys[low:stop + {behind}]" if functions.reads_keys else "part",
    }
    text = "".join([_FIND, _LIMITED if is_limited else _UNLIMITED, _SHOW])
    text = text.replace("{answers}", parts.pop("answers"))
    text = text.replace("{keys}", parts.pop("keys"))
    text = text.replace("{hidden}", _HIDDEN if is_limited else "")
    return build("update", text.format(**parts), values)


def _sort_key(directions: Directions) -> str:
    """Return the text of the sort key of a row; a call, if values are not their own keys."""
    names = [f"values[{n}]" for n in range(len(directions))]
    ups_and_downs = [(name, each[0]) for name, each in zip(names, directions, strict=True)]
    plain = " and ".join(
        f"({name}.__class__ {'is int' if descending else 'in PLAIN'}"
        f" or ({name}.__class__ is float and {name} == {name}))"
        for name, descending in ups_and_downs
    )
    signed = [f"-{name}" if descending else name for name, descending in ups_and_downs]
    key = "values" if signed == names else f"({', '.join(signed)})"
    if not names:
        return "values"
    return f"{signed[0] if len(names) == 1 else key} if {plain} else key_of(values)"


def _cell(held: HeldParts) -> str:
    """Return the text of the arguments of the row that comes."""
    if held.single is not None:
        return f"came[3][{held.single}]"
    return "(*came[3], came[2][0])" if held.has_key else "came[3] or None"


def _answers(functions: NearFunctions, held: HeldParts) -> str:
    """Return the lines that compute the answers of a span."""
    texts = functions.texts(is_single=held.single is not None)
    if texts is None:
        return _PART + _CALLED
    answer = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    computed = _COMPUTED.format(answer=answer)
    if functions.plain is None:
        return computed
    are_plain = "        if set(map(type, part)) in plain:\n"
    return "".join([_PART, are_plain, _in(computed), "        else:\n", _in(_CALLED)])


def _in(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())


_FIND = """\
def update(order, sight, key, gone, came, log):
    entries = order.entries
    chunks = entries.chunks
    number, values = 0, gone[2]
    old_key = {sort_key}
    values = came[2]
    new_key = {sort_key}
    if len(chunks) != 1:
        number = entries.chunk_of(old_key, new_key)
        if number < 0: return None
    chunk = chunks[number]
    keys, heads, cells, shown = chunk.keys, chunk.heads, chunk.cells, chunk.shown
    size, head = len(keys), gone[0]{item}
    place = bisect_left(keys, old_key)
    if place == size or keys[place] != old_key: return None
    old_head = heads[place]
    if old_head is not head and old_head != head:
        found = entries.locate((old_key, head, None))
        if found is None: return None
        place = found[1]
        old_head = heads[place]
    head, cell, to = came[0]{item}, {cell}, -1
    if new_key == old_key:
        if head is old_head or head == old_head: return None
        if (
            (not place or keys[place - 1] != new_key)
            and (place + 1 == size or keys[place + 1] != new_key)
            and (len(chunks) == 1 or 0 < place < size - 1)
        ):
            to = place
    else:
        to = bisect_left(keys, new_key)
        to = to - (place < to) if to == size or keys[to] != new_key else -1
    if to < 0:  # among peers
        found = entries.locate_new((new_key, head, cell))
        if found is None or found[0] != number: return None
        to = found[1] - (place < found[1])
    first, last = (place, to) if place < to else (to, place)
    old = shown[place]
"""

_UNLIMITED = """\
    if len(chunks) != 1 and (
        (number and first < {reach}) or (number + 1 < len(chunks) and last + {reach} >= size)
    ):
        return None
    chunk.move(number, place, to, (new_key, head, cell, HIDDEN), log)
    if last == size - 1: entries.note_last(number)
    if last - first < CLOSE:
        spans = ((first - {behind}, last + {before} + 1),)
    else:
        gap = place + (to < place)
        spans = ((gap - {behind}, gap + {before}), (to - {behind}, to + {before} + 1))
"""

_LIMITED = """\
    if len(chunks) != 1 and len(chunks[0].keys) - {behind} <= sight: return None
    chunk.move(number, place, to, (new_key, head, cell, HIDDEN), log)
    if last == size - 1: entries.note_last(number)
    if number or first - {behind} > sight: return sight, []
    beyond, sight = sight + 1 if sight < size else size, cut(order)
    if len(chunks) != 1 and sight + {behind} >= size: return None
    spans = ((first - {behind}, sight),)
"""

_SHOW = """\
    out = []
    if old is not HIDDEN: out.append(((key, {gone_row}), -1))
    for start, stop in spans:
        if stop > size: stop = size
        if start > stop: start = stop
        if start < 0: start = 0
{answers}{hidden}\
        olds, place = shown[start:start + len(answers)], start
        for old, new in zip(olds, answers):
            if new != new: answers[place - start] = new = canonical(new)
            if old is not new:
                if old is HIDDEN: out.append(((key, {new_row}), 1))
                elif new is HIDDEN: out.append(((key, {old_row}), -1))
                elif old == new: answers[place - start] = old
                else:
                    out.append(((key, {old_row}), -1))
                    out.append(((key, {new_row}), 1))
            place += 1
        end, stop = len(log), start + len(olds)
        log[end:end] = (("answered", chunk, start, olds),)  # no call from here on
        shown[start:stop] = answers
    return sight, out
"""

_PART = """\
        low = {low}
        part = cells[low:stop + {behind}]
"""

_CALLED = """\
        answers = said(order, {keys}, part, start - low, stop - low)
"""

_COMPUTED = """\
        answers = []
        for at in range(start, stop): answers.append({answer})
"""

_HIDDEN = """\
        answers += [HIDDEN] * (beyond - stop)
"""
