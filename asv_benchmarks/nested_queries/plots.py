"""The pictures of docs/thesis.md: gains of the queries, and seconds of one query's batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import log2

from asv_benchmarks.nested_queries.measure import Figures

WIDTH, LEFT, RIGHT, TOP = 760, 110, 40, 78
BAR, LINE = 13, 44
THESIS = (11.0, 22.0)
"""The gain of recursive maintenance in the thesis, for all its queries."""
LEAST, MOST = 0.25, 32.0
HEIGHT = 260
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #444 }
.card { fill: #fff; stroke: #ddd }
.head { font-size: 15px; font-weight: 600; fill: #111 }
.live { fill: #5b8bbd; stroke: #5b8bbd } .hand { fill: #b9c7d6; stroke: #b9c7d6 }
.again { fill: #b5473c; stroke: #b5473c } .thesis { fill: #f3ecd8; stroke: none }
.line { fill: none; stroke-width: 1.6 } .grid { stroke: #e4e4e4 }
"""
KEY = {"live": "live view", "hand": "by hand", "again": "evaluating again"}


def gains(found: Mapping[str, Figures]) -> str:
    """Return two bars for each query, on a scale of powers of two, and the range of the thesis."""
    height = TOP + LINE * len(found) + 34
    low, high = map(_of_gain, THESIS)
    parts = [
        f'<rect class="thesis" x="{low:.0f}" y="{TOP - 8}" width="{high - low:.0f}" '
        f'height="{height - TOP - 24}"/>',
        f'<text x="{(low + high) / 2:.0f}" y="{TOP - 14}" text-anchor="middle">'
        f"thesis: {THESIS[0]:g} to {THESIS[1]:g}</text>",
        *_powers(height),
    ]
    for place, (name, figures) in enumerate(found.items()):
        y = TOP + LINE * place
        parts.append(f'<text x="{LEFT - 12}" y="{y + BAR + 4}" text-anchor="end">{name}</text>')
        for row, (kind, gain) in enumerate(
            (("live", figures.gain), ("hand", figures.gain_by_hand))
        ):
            end = _of_gain(max(gain, LEAST))
            top = y + row * (BAR + 2)
            parts.append(
                f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{end - LEFT:.1f}" '
                f'height="{BAR}"/><text x="{end + 5:.1f}" y="{top + BAR - 2}">{gain:.1f}</text>'
            )
    title = "Times less than evaluating again, over all batches (scale of powers of two)"
    return _drawn(title, height, [*_legend(("live", "hand")), *parts])


def batches(name: str, figures: Figures) -> str:
    """Milliseconds of each batch, of the three sides."""
    sides = {"again": figures.again, "live": figures.live, "hand": figures.by_hand}
    most = max(max(seconds) for seconds in sides.values())
    floor = TOP + HEIGHT
    parts = [
        f'<path class="grid" d="M{LEFT},{TOP} V{floor} H{WIDTH - RIGHT}" fill="none"/>',
        f'<text x="{LEFT - 8}" y="{TOP + 4}" text-anchor="end">{most * 1e3:.0f} ms</text>',
        f'<text x="{LEFT - 8}" y="{floor}" text-anchor="end">0</text>',
        f'<text x="{WIDTH - RIGHT}" y="{floor + 18}" text-anchor="end">'
        f"batch {len(figures.live)}</text>",
    ]
    for kind, seconds in sides.items():
        points = " ".join(f"{x:.1f},{floor - HEIGHT * s / most:.1f}" for x, s in _places(seconds))
        parts.append(f'<polyline class="line {kind}" style="fill: none" points="{points}"/>')
    title = f"{name}: what each batch takes, as the tables grow"
    return _drawn(title, floor + 34, [*_legend(tuple(sides)), *parts])


def _of_gain(gain: float) -> float:
    return LEFT + (WIDTH - RIGHT - LEFT) * log2(gain / LEAST) / log2(MOST / LEAST)


def _places(seconds: Sequence[float]) -> Iterator[tuple[float, float]]:
    wide = (WIDTH - RIGHT - LEFT) / max(len(seconds) - 1, 1)
    for number, each in enumerate(seconds):
        yield LEFT + wide * number, each


def _powers(height: int) -> Iterator[str]:
    gain = LEAST
    while gain <= MOST:
        x = _of_gain(gain)
        yield f'<path class="grid" d="M{x:.0f},{TOP - 8} V{height - 32}"/>'
        yield f'<text x="{x:.0f}" y="{height - 14}" text-anchor="middle">{gain:g}</text>'
        gain *= 2


def _legend(kinds: Sequence[str]) -> Iterator[str]:
    for place, kind in enumerate(kinds):
        x = 24 + 140 * place
        yield f'<rect class="{kind}" x="{x}" y="42" width="12" height="12"/>'
        yield f'<text x="{x + 18}" y="53">{KEY[kind]}</text>'


def _drawn(title: str, height: int, parts: Sequence[str]) -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="card" width="{WIDTH}" height="{height}" rx="8"/>',
        f'<text class="head" x="24" y="28">{escape(title)}</text>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
