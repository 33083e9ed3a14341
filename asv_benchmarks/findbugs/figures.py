"""The tables of the example's section, of figures over several runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from asv_benchmarks.findbugs.alone import CLASSES, Times
from asv_benchmarks.findbugs.bases import SIZES
from asv_benchmarks.findbugs.bases import Times as BaseTimes
from asv_benchmarks.findbugs.held import ALL, Held
from asv_benchmarks.findbugs.reading import FILES
from asv_benchmarks.findbugs.reading import Times as ReadingTimes
from asv_benchmarks.findbugs.replays import Replay
from asv_benchmarks.measure import AS_WRITTEN, ENGINE
from asv_benchmarks.table import markdown, verdict
from examples.findbugs.analyses import ANALYSES, name_of
from examples.findbugs.replay.summary import fit

LEAST_GAIN = {"vespucci": 30.0, "hibernate": 100.0}
LEAST_WHOLE = 10.0
MOST_GROWTH = 1.3
LEAST_READING = 1_000.0
LEAST_PUBLISHED = 100.0
MOST_SHARE = 0.2
KIB = 2**10


@dataclass(frozen=True, slots=True)
class Replayed:
    """A history over one sort of tables, and its runs."""

    name: str
    mode: str
    runs: list[Replay]

    def times(self, side: str) -> list[float]:
        """Seconds of each revision; medians over the runs."""
        return [median(ones) for ones in zip(*(run[side] for run in self.runs), strict=True)]

    @property
    def facts(self) -> list[int]:
        """Return the number of changed facts in each revision."""
        return [int(facts) for facts in self.runs[0]["facts"]]


def histories(replayed: Sequence[Replayed]) -> list[str]:
    """Every history: the first revision, a change, and all of it."""
    header = [
        "history, tables",
        "changes",
        "of them with facts",
        "first revision, ms",
        "from scratch, ms",
        "a change, µs",
        "from scratch, ms",
        "gain",
        "with facts",
        "at least",
        "of the whole history",
        "at least",
    ]
    return ["### Histories", "", *markdown(header, map(_history, replayed))]


def lines(replayed: Sequence[Replayed]) -> list[str]:
    """Return the growth of the time of a change with its facts."""
    header = ["history, tables", "largest change, facts", "µs", "and µs per fact", "R²"]
    return ["### Time over the facts that differ", "", *markdown(header, map(_line, replayed))]


def bases(runs: Sequence[BaseTimes]) -> list[str]:
    """Return the times of changes of one class among few and among many others."""
    few, many = map(str, SIZES)
    header = [
        "what changes of one class",
        f"of {SIZES[0]:,} classes, µs",
        f"of {SIZES[1]:,}, µs",
        "growth",
        f"at most {MOST_GROWTH:g}",
    ]
    rows = []
    for kind in runs[0]:
        times = [median(median(run[kind][size]) for run in runs) for size in (few, many)]
        growth = median(median(run[kind][many]) / median(run[kind][few]) for run in runs)
        shown = [f"{seconds * 1e6:,.1f}" for seconds in times]
        rows.append([kind, *shown, f"{growth:.2f}", verdict(growth <= MOST_GROWTH)])
    return ["### One class among few and among many", "", *markdown(header, rows)]


def reading(runs: Sequence[ReadingTimes]) -> list[str]:
    """Report the rewriting of one class file of thousands."""
    title = f"### One class file of {FILES:,}"
    if not runs[0]:
        return [title, "", "Not measured: there was no JDK to read class files of."]
    header = [
        "",
        "read all, s",
        "evaluate all, ms",
        "read, compare and update one, µs",
        "gain",
        f"at least {LEAST_READING:,g}",
    ]
    all_of_it = [run["reading"][0] + run["evaluating"][0] for run in runs]
    gain = median(all_of_it[n] / median(run["edits"]) for n, run in enumerate(runs))
    row = [
        "class files of java.base",
        f"{median(run['reading'][0] for run in runs):,.2f}",
        f"{median(run['evaluating'][0] for run in runs) * 1e3:,.0f}",
        f"{median(median(run['edits']) for run in runs) * 1e6:,.0f}",
        f"{gain:,.0f}",
        verdict(gain >= LEAST_READING),
    ]
    return [title, "", *markdown(header, [row])]


def alone(example: Sequence[Times], published: Sequence[Times]) -> list[str]:
    """Report each analysis alone over Vespucci, optimized and as written."""
    header = [
        "the whole history, one analysis",
        "optimized, ms",
        "as written, ms",
        "gain",
        "at least",
        "",
    ]
    rows = [
        *_alone("", example, {}),
        *_alone(f", as published, {CLASSES} classes", published, {"A": LEAST_PUBLISHED}),
    ]
    return ["### Each analysis alone", "", *markdown(header, rows)]


def memory(held: Mapping[str, Held]) -> list[str]:
    """Return the memory of views and indexes."""
    header = ["KiB held after the last revision", *held]
    rows = [
        [_named(letter), *(f"{found[letter]['bytes'] / KIB:,.0f}" for found in held.values())]
        for letter in ANALYSES
    ]
    every = [found[ALL] for found in held.values()]
    share = [of["rows"] / of["of"] for of in every]
    rows += [
        ["all together", *(f"{of['bytes'] / KIB:,.0f}" for of in every)],
        ["at its height, the largest change", *(f"{of['peak'] / KIB:,.0f}" for of in every)],
        ["facts of instructions", *(f"{of['of']:,.0f}" for of in every)],
        ["of them held as they are", *(f"{of['instructions']:,.0f}" for of in every)],
        ["rows held, of any kind", *(f"{of['rows']:,.0f}" for of in every)],
        ["for one fact of an instruction", *(f"{part:.1%}" for part in share)],
        [f"at most {MOST_SHARE:.0%}", *(verdict(part <= MOST_SHARE) for part in share)],
    ]
    return ["### Memory", "", *markdown(header, rows)]


def _history(of: Replayed) -> list[str]:
    engine, scratch, facts = of.times("engine"), of.times("scratch"), of.facts
    with_facts = [n for n in range(1, len(facts)) if facts[n]]
    gain = median(scratch[1:]) / median(engine[1:])
    whole = sum(scratch) / sum(engine)
    least = LEAST_GAIN.get(of.name)
    return [
        f"{of.name}, {of.mode}",
        f"{len(facts) - 1:,}",
        f"{len(with_facts):,}",
        f"{engine[0] * 1e3:,.1f}",
        f"{scratch[0] * 1e3:,.1f}",
        f"{median(engine[1:]) * 1e6:,.1f}",
        f"{median(scratch[1:]) * 1e3:,.2f}",
        _times(gain),
        _times(median(scratch[n] / engine[n] for n in with_facts)),
        "" if least is None else f"{least:g}: {verdict(gain >= least)}",
        _times(whole),
        "" if least is None else f"{LEAST_WHOLE:g}: {verdict(whole >= LEAST_WHOLE)}",
    ]


def _line(of: Replayed) -> list[str]:
    points = zip(of.facts[1:], of.times("engine")[1:], strict=True)
    found = fit([point for point in points if point[0]])
    if found is None:
        return [f"{of.name}, {of.mode}", "", "", "", ""]
    return [
        f"{of.name}, {of.mode}",
        f"{max(of.facts[1:]):,}",
        f"{found.constant * 1e6:,.1f}",
        f"{found.per_fact * 1e6:,.2f}",
        f"{found.r_squared:.3f}",
    ]


def _alone(what: str, runs: Sequence[Times], least: Mapping[str, float]) -> Iterable[list[str]]:
    for letter in runs[0]:
        sides = [median(run[letter][side] for run in runs) for side in (ENGINE, AS_WRITTEN)]
        gain = median(run[letter][AS_WRITTEN] / run[letter][ENGINE] for run in runs)
        target = least.get(letter)
        yield [
            f"{_named(letter)}{what}",
            *(f"{seconds * 1e3:,.1f}" for seconds in sides),
            _times(gain),
            "" if target is None else f"{target:,g}",
            "" if target is None else verdict(gain >= target),
        ]


def _named(letter: str) -> str:
    return f"{letter} {name_of(ANALYSES[letter])}"


def _times(ratio: float) -> str:
    return f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.0f}"
