"""The part of a twin that keeps the result, as text.

Sums are a tuple per group, values a sorted list or a dictionary per group, rows a dictionary, an
order two lists. `one` reports one change to a listener; `start`, `many` and `finish` are before, in
and after the loop of a batch, which reports all changes at its end.
"""

from __future__ import annotations

from typing import Protocol

from asv_benchmarks.grid.cell import Cell
from asv_benchmarks.grid.query import LEAST


class Sink(Protocol):
    def state(self) -> list[str]: ...
    def one(self, weight: int) -> list[str]: ...
    def start(self) -> list[str]: ...
    def many(self, weight: int) -> list[str]: ...
    def finish(self) -> list[str]: ...
    def result(self) -> list[str]: ...


def sink_of(cell: Cell) -> Sink:
    """Return the sink of a cell."""
    if cell.ask in ("sum", "count", "avg"):
        return Sums(cell)
    if cell.grouped:
        return Values(cell)
    return Sorted(cell) if cell.ask in ("order", "top") else Bag(cell)


class Sums:
    """`groups`: a tuple of the number of rows and the sums, by key."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._above = Above(cell)
        value, of_none = cell.field(0, "value"), cell.value == "None"
        texts = {
            "count": [],
            "sum": [f"({value} or 0)" if of_none else value],
            "avg": [f"({value} or 0)", f"({value} is not None)"] if of_none else [value],
        }[cell.ask]
        self._values = [f"k = {cell.group() if cell.groups else 0}"]
        self._values += [f"v{place} = {text}" for place, text in enumerate(texts)]
        self._sums = [f"s{place}" for place in range(len(texts))]
        of = self._sums[1] if len(texts) > 1 else "n"
        mean = f"s0 / {of}" if len(texts) == 1 and cell.groups else f"s0 / {of} if {of} else None"
        shown = {"count": ["n"], "sum": ["s0", "n"], "avg": [mean, "n"]}[cell.ask]
        self._row = row_text(cell, shown)
        self._state = f"n, {', '.join(self._sums)}"

    def state(self) -> list[str]:
        zero = f"0: (0, {'0, ' * len(self._sums)})"
        return [f"groups = {{{'' if self._cell.groups else zero}}}", *self._above.state()]

    def one(self, weight: int) -> list[str]:
        change = [f"{self._state} = state", f"old = {self._row}", *self._moved(weight)]
        changed = [*change, "groups[k] = state", self._above.tell("old", self._row)]
        if not self._cell.groups:
            return [*self._values, "state = groups[k]", *changed]
        if weight > 0:
            new = [*self._first(), "groups[k] = state", self._above.tell("None", self._row)]
            none, lines = "state is None", ["state = groups.get(k)"]
        else:
            new = [f"{self._state} = state", "del groups[k]", self._above.tell(self._row, "None")]
            none, lines = "state[0] == 1", ["state = groups[k]"]
        return [*self._values, *lines, f"if {none}:", *_in(new), "else:", *_in(changed)]

    def start(self) -> list[str]:
        return ["before = {}"]

    def many(self, weight: int) -> list[str]:
        lines = [*self._values, "state = groups.get(k)", "if k not in before:"]
        lines += ["    before[k] = state"]
        change = [f"{self._state} = state", *self._moved(weight), "groups[k] = state"]
        if not self._cell.groups:
            return lines + change
        if weight > 0:
            new, none = [*self._first(), "groups[k] = state"], "state is None"
        else:
            new, none = ["del groups[k]"], "state[0] == 1"
        return [*lines, f"if {none}:", *_in(new), "else:", *_in(change)]

    def finish(self) -> list[str]:
        def shown(name: str) -> list[str]:
            return [
                f"if {name} is not None:",
                f"    {self._state} = {name}",
                f"    {name} = {self._row}",
            ]

        loop = ["state = groups.get(k)", *shown("old"), *shown("state")]
        loop += ["if old != state:", "    changes.append((old, state))"]
        lines = ["changes = []", "for k, old in before.items():", *_in(loop)]
        return [*lines, self._above.tell_all("changes")]

    def result(self) -> list[str]:
        loop = [f"{self._state} = state", f"found.append({self._row})"]
        lines = ["found = []", "for k, state in groups.items():", *_in(loop)]
        return [*lines, *self._above.result()]

    def _first(self) -> list[str]:
        sums = [f"{s} = v{place}" for place, s in enumerate(self._sums)]
        return ["n = 1", *sums, f"state = ({self._state})"]

    def _moved(self, weight: int) -> list[str]:
        sign = "+=" if weight > 0 else "-="
        sums = [f"{s} {sign} v{place}" for place, s in enumerate(self._sums)]
        return [f"n {sign} 1", *sums, f"state = ({self._state})"]


class Values:
    """Keep in `groups` the number of rows of each key, and their values.

    The values are sorted in a list, or counted in a dictionary.
    """

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._tell = Above(cell).tell
        value = cell.field(0, "value")
        self._values = [f"k = {cell.group() if cell.groups else 0}", f"v = {value}"]
        self._extremes = cell.ask == "min_max"
        may_lack = cell.value == "None" or not cell.groups
        shown = ["len(values)", "state[0]"]
        if self._extremes:
            shown = ["values[0]", "values[-1]"]
        self._row = row_text(cell, shown)
        if self._extremes and may_lack:
            self._row += f" if values else {row_text(cell, ['None', 'None'])}"

    def state(self) -> list[str]:
        empty = "[]" if self._extremes else "{}"
        return [f"groups = {{{'' if self._cell.groups else f'0: [0, {empty}]'}}}"]

    def one(self, weight: int) -> list[str]:
        lines = [*self._values, "state = groups.get(k)"]
        change = ["values = state[1]", f"old = {self._row}", *self._moved(weight)]
        if weight < 0 and self._cell.groups:
            change += ["if not state[0]:", "    del groups[k]", f"    {self._tell('old', 'None')}"]
            change += ["    return"]
        change += [f"new = {self._row}", "if old != new:", f"    {self._tell('old', 'new')}"]
        if weight < 0 or not self._cell.groups:
            return lines + change
        new = [*self._first(), f"new = {self._row}", self._tell("None", "new")]
        return [*lines, "if state is None:", *_in(new), "else:", *_in(change)]

    def start(self) -> list[str]:
        return ["before = {}"]

    def many(self, weight: int) -> list[str]:
        lines = [*self._values, "state = groups.get(k)"]
        lines += ["if k not in before:", *_in(self._shown("before[k]"))]
        change = ["values = state[1]", *self._moved(weight)]
        if weight < 0 and self._cell.groups:
            return [*lines, *change, "if not state[0]:", "    del groups[k]"]
        if weight < 0 or not self._cell.groups:
            return lines + change
        return [*lines, "if state is None:", *_in(self._first()), "else:", *_in(change)]

    def finish(self) -> list[str]:
        loop = ["state = groups.get(k)", *self._shown("new")]
        loop += ["if old != new:", "    changes.append((old, new))"]
        lines = ["changes = []", "for k, old in before.items():", *_in(loop)]
        return [*lines, "heard_all(changes)"]

    def result(self) -> list[str]:
        loop = ["values = state[1]", f"found.append({self._row})"]
        lines = ["found = []", "for k, state in groups.items():", *_in(loop)]
        return [*lines, "return Counter(found)"]

    def _shown(self, name: str) -> list[str]:
        return [
            "if state is None:",
            f"    {name} = None",
            "else:",
            "    values = state[1]",
            f"    {name} = {self._row}",
        ]

    def _first(self) -> list[str]:
        new = "values = [v]" if self._extremes else "values = {v: 1}"
        if self._cell.value == "None":
            new += f" if v is not None else {'[]' if self._extremes else '{}'}"
        return [new, "state = groups[k] = [1, values]"]

    def _moved(self, weight: int) -> list[str]:
        lines = {
            (True, 1): ["insort(values, v)"],
            (True, -1): ["del values[bisect_left(values, v)]"],
            (False, 1): ["values[v] = values.get(v, 0) + 1"],
            (False, -1): [
                "left = values[v] - 1",
                "if left:",
                "    values[v] = left",
                "else:",
                "    del values[v]",
            ],
        }[self._extremes, weight]
        if self._cell.value == "None":
            lines = ["if v is not None:", *_in(lines)]
        return [f"state[0] {'+=' if weight > 0 else '-='} 1", *lines]


class Bag:
    """`shown`: of each row of the result how many there are."""

    def __init__(self, cell: Cell) -> None:
        self._once = cell.ask == "distinct"
        row = ", ".join(cell.bindings)
        if self._once:
            row = f"({cell.group()}, {cell.field(0, 'status')})"
        elif cell.selects:
            row = f"({cell.group()}, {cell.field(0, 'value')})"
        elif len(cell.bindings) > 1:
            row = f"({row})"
        self._row = f"row = {row}"

    def state(self) -> list[str]:
        return ["shown = {}"]

    def one(self, weight: int) -> list[str]:
        tell = "heard(None, row)" if weight > 0 else "heard(row, None)"
        lines = [self._row, *self._moved(weight)]
        if not self._once:
            return [*lines, tell]
        return [*lines, "if not count:" if weight > 0 else "if not left:", f"    {tell}"]

    def start(self) -> list[str]:
        return ["changed = {}"]

    def many(self, weight: int) -> list[str]:
        sign = "+" if weight > 0 else "-"
        if self._once:
            noted = ["if row not in changed:", "    changed[row] = row in shown"]
        else:
            noted = [f"changed[row] = changed.get(row, 0) {sign} 1"]
        return [self._row, *noted, *self._moved(weight)]

    def finish(self) -> list[str]:
        if self._once:
            loop = ["if before != (row in shown):"]
            loop += ["    changes.append((row, None) if before else (None, row))"]
            lines = ["changes = []", "for row, before in changed.items():", *_in(loop)]
            return [*lines, "heard_all(changes)"]
        loop = ["if w > 0:", "    changes += [(None, row)] * w", "elif w < 0:"]
        loop += ["    changes += [(row, None)] * -w"]
        lines = ["changes = []", "for row, w in changed.items():", *_in(loop)]
        return [*lines, "heard_all(changes)"]

    def result(self) -> list[str]:
        return ["return dict.fromkeys(shown, 1)" if self._once else "return dict(shown)"]

    def _moved(self, weight: int) -> list[str]:
        if weight > 0:
            return ["count = shown.get(row, 0)", "shown[row] = count + 1"]
        lines = ["left = shown[row] - 1", "if left:", "    shown[row] = left"]
        return [*lines, "else:", "    del shown[row]"]


class Sorted:
    """`keys` and `ordered`: the keys and the rows, in the same order, the least first.

    Of equal keys the newest row is first. The greatest are at the end, where lists are quick to
    change. If values repeat, their rows are ordered by number, which grows with time.
    """

    def __init__(self, cell: Cell) -> None:
        self._top = cell.ask == "top"
        value = cell.field(0, "value")
        if cell.value == "None":
            value = f"({value} is not None, {value} or 0, -{cell.field(0, 'id')})"
        elif cell.ties > 1:
            value = f"({value}, -{cell.field(0, 'id')})"
        row = ", ".join(cell.bindings)
        self._values = [f"key = {value}", f"row = {row if len(cell.bindings) == 1 else f'({row})'}"]

    def state(self) -> list[str]:
        return ["keys, ordered = [], []"]

    def one(self, weight: int) -> list[str]:
        if weight > 0:
            lines = ["place = bisect_left(keys, key)"]
            lines += ["keys.insert(place, key)", "ordered.insert(place, row)"]
            tell = ["heard(None, row)"]
            if self._top:
                old = "ordered[-11] if len(keys) > 10 else None"
                tell = ["if place >= len(keys) - 10:", f"    heard({old}, row)"]
        else:
            lines = ["place = bisect_left(keys, key)"]
            lines += ["if ordered[place] != row:", "    raise KeyError(row)"]
            lines += ["del keys[place], ordered[place]"]
            tell = ["heard(row, None)"]
            if self._top:
                new = "ordered[-10] if len(keys) > 9 else None"
                tell = ["if place > len(keys) - 10:", f"    heard(row, {new})"]
        return [*self._values, *lines, *tell]

    def start(self) -> list[str]:
        return ["came, gone = [], []"]

    def many(self, weight: int) -> list[str]:
        return [*self._values, f"{'came' if weight > 0 else 'gone'}.append((key, row))"]

    def finish(self) -> list[str]:
        lines = SORTED_BATCH.splitlines()
        if not self._top:
            return [*lines, "heard_all([(row, None) for _, row in gone])", *SORTED_ALL]
        return ["before = ordered[-10:]", *lines, *SORTED_TOP.splitlines()]

    def result(self) -> list[str]:
        return ["return ordered[:-11:-1]" if self._top else "return ordered[::-1]"]


SORTED_ALL = ["heard_all([(None, row) for _, row in came])"]
SORTED_TOP = """\
left, now = Counter(before), Counter(ordered[-10:])
left, now = left - now, now - left
heard_all([(row, None) for row in left] + [(None, row) for row in now])
"""
SORTED_BATCH = """\
if 8 * (len(came) + len(gone)) > len(ordered):
    going = Counter(row for _, row in gone)
    rest = []
    for pair in zip(reversed(keys), reversed(ordered)):
        if going.get(pair[1]):
            going[pair[1]] -= 1
        else:
            rest.append(pair)
    rest += came
    rest.sort(key=first, reverse=True)
    rest.reverse()
    keys[:] = [key for key, _ in rest]
    ordered[:] = [row for _, row in rest]
else:
    for key, row in gone:
        place = bisect_left(keys, key)
        del keys[place], ordered[place]
    for key, row in came:
        place = bisect_left(keys, key)
        keys.insert(place, key)
        ordered.insert(place, row)
"""


class Above:
    """The query of groups, which are old and new tuples (key, sum, number)."""

    def __init__(self, cell: Cell) -> None:
        self._above = cell.above

    def state(self) -> list[str]:
        text = {"": "", "where": WHERE, "select": SELECT, "group": GROUP, "top": TOP}[self._above]
        return text.splitlines()

    def tell(self, old: str, new: str) -> str:
        return f"passed([({old}, {new})])" if self._above else f"heard({old}, {new})"

    def tell_all(self, changes: str) -> str:
        return f"passed({changes})" if self._above else f"heard_all({changes})"

    def result(self) -> list[str]:
        match self._above:
            case "where":
                return [f"return Counter(row for row in found if row[1] > {LEAST})"]
            case "select":
                return ["return Counter((k, s // 100) for k, s, n in found)"]
            case "group":
                return ["return Counter((k, s, n) for k, (s, n) in outer.items())"]
            case "top":
                return ["return ordered[:-11:-1]"]
        return ["return Counter(found)"]


WHERE = f"""\
def passed(changes):
    told = []
    for old, new in changes:
        if old is not None and not old[1] > {LEAST}:
            old = None
        if new is not None and not new[1] > {LEAST}:
            new = None
        if old is not None or new is not None:
            told.append((old, new))
    if told:
        heard_all(told)
"""
SELECT = """\
def passed(changes):
    told = []
    for old, new in changes:
        if old is not None:
            old = (old[0], old[1] // 100)
        if new is not None:
            new = (new[0], new[1] // 100)
        if old != new:
            told.append((old, new))
    if told:
        heard_all(told)
"""
GROUP = """\
outer = {}
def passed(changes):
    before = {}
    for old, new in changes:
        if old is not None:
            _, s, k = old
            state = outer[k]
            if k not in before:
                before[k] = state
            if state[1] == 1:
                del outer[k]
            else:
                outer[k] = (state[0] - s, state[1] - 1)
        if new is not None:
            _, s, k = new
            state = outer.get(k)
            if k not in before:
                before[k] = state
            if state is None:
                outer[k] = (s, 1)
            else:
                outer[k] = (state[0] + s, state[1] + 1)
    told = []
    for k, old in before.items():
        new = outer.get(k)
        if old != new:
            told.append((old and (k, *old), new and (k, *new)))
    heard_all(told)
"""
TOP = """\
keys, ordered = [], []
def passed(changes):
    before = ordered[-10:]
    if 8 * len(changes) > len(ordered):
        rest = set(ordered)
        rest.difference_update(old for old, _ in changes)
        rest.update(new for _, new in changes)
        rest.discard(None)
        ordered[:] = sorted(rest, key=lambda row: (row[1], -row[0]))
        keys[:] = [(s, -k) for k, s, _ in ordered]
    else:
        for old, new in changes:
            if old is not None:
                place = bisect_left(keys, (old[1], -old[0]))
                del keys[place], ordered[place]
            if new is not None:
                key = (new[1], -new[0])
                place = bisect_left(keys, key)
                keys.insert(place, key)
                ordered.insert(place, new)
    now = ordered[-10:]
    if now != before:
        told = [(row, None) for row in before if row not in now]
        heard_all(told + [(None, row) for row in now if row not in before])
"""


def row_text(cell: Cell, shown: list[str]) -> str:
    """Return the text of a row of the result: the key, if there is one, and the values."""
    parts = ["k", *shown] if cell.groups else shown
    return f"({', '.join(parts)})" if len(parts) > 1 else f"({parts[0]})"


def _in(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
