"""The three pictures of docs/internals.md: a change, a query, a flush.

`python docs/figures/pictures.py` redraws them. Each step names its code, and
tests/docs/test_pictures.py checks that it exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent

WIDTH, STEP, GAP = 940, 54, 24
LEFT, BOX, CODE = 150, 430, 612
"""Left edge and width of the boxes, and left edge of the names of the code."""


@dataclass(frozen=True, slots=True)
class Step:
    """Title and explanation of a step, and its place in the code, `file: name`."""

    title: str
    text: str
    where: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Steps that have something in common, from one to another, both included."""

    first: int
    last: int
    label: str


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    title: str
    steps: tuple[Step, ...]
    spans: tuple[Span, ...] = ()
    back: Span | None = None
    """From which step it goes back to which, if something raises."""


CHANGE = Picture(
    "change",
    "A change: from a statement to the subscribers",
    (
        Step(
            "table.add(row)",
            "a statement; in a transaction its delta is kept until the end",
            (
                "reactive/api/table.py: Table.add",
                "reactive/engine/transactions/transaction.py: Pending",
            ),
        ),
        Step(
            "take the lock",
            "one writer at a time; readers do not wait for open transactions",
            (
                "reactive/engine/transactions/engine.py: Engine",
                "reactive/engine/runtime/lock.py: DatabaseLock",
            ),
        ),
        Step(
            "the store takes the row",
            "equal rows become one object; the delta is [(row, +1)]",
            (
                "reactive/engine/transactions/statements.py: Statements.add",
                "reactive/engine/storage/store.py: RowStore.add",
            ),
        ),
        Step(
            "the graph steps",
            "each operator that the delta reaches, once, inputs first",
            (
                "reactive/engine/dataflow/graph.py: Graph.commit",
                "reactive/engine/dataflow/schedule.py: Schedule.step",
            ),
        ),
        Step(
            "operators: delta in, delta out",
            "generated loops; indexes and groups are state",
            (
                "reactive/engine/operators/index_by.py: IndexBy",
                "reactive/engine/operators/join.py: Join",
            ),
        ),
        Step(
            "leaves: the rows of views",
            "held there, or read in the operator below",
            (
                "reactive/engine/dataflow/leaves.py: ViewRows",
                "reactive/engine/dataflow/leaves.py: BorrowedRows",
            ),
        ),
        Step(
            "the commit stands",
            "version + 1; operators finalize their step; deltas are queued",
            (
                "reactive/engine/dataflow/graph.py: Graph.commit",
                "reactive/engine/dataflow/delivery_queue.py: DeliveryQueue",
            ),
        ),
        Step(
            "subscribers are notified",
            "in the order of commits; here, on an executor, or in a loop",
            (
                "reactive/engine/dataflow/delivery_queue.py: DeliveryQueue.deliver",
                "reactive/api/subscriptions/observe.py: Relay",
            ),
        ),
    ),
    spans=(Span(1, 6, "inside the lock"),),
    back=Span(5, 2, "if it raises: undo"),
)

QUERY = Picture(
    "query",
    "A query: from lambdas to nodes of the graph",
    (
        Step(
            "orders.where(lambda o: o.total > 10)",
            "the callable is captured with the current values of its variables",
            ("reactive/api/relation.py: Relation.where", "optimizer/callables/opaque.py: opaque"),
        ),
        Step(
            "the plan as written",
            "frozen nodes; fields are checked, nothing is computed",
            ("optimizer/plan.py: Where", "optimizer/plans/check_reads.py: check_reads"),
        ),
        Step(
            "materialize()",
            "the plan is cut into segments, each optimized once per process",
            (
                "reactive/api/materialize.py: materialize",
                "optimizer/rewriting/optimize.py: settle",
            ),
        ),
        Step(
            "lift",
            "callables become expressions; uncertain ones stay opaque",
            (
                "optimizer/rules/read_callables.py: read_callables",
                "optimizer/lifting/lift.py: lift",
            ),
        ),
        Step(
            "rewrite",
            "phases of rules, each until none applies: the same rows for less",
            (
                "optimizer/rewriting/phases.py: PHASES",
                "optimizer/rewriting/optimize.py: optimize",
            ),
        ),
        Step(
            "choose",
            "a physical plan: which nodes become one loop, which indexes they read",
            (
                "reactive/engine/compiler/queries.py: Queries.node",
                "reactive/engine/compiler/chooser.py: Chooser.choose",
            ),
        ),
        Step(
            "generate",
            "a Python function per loop, whose source tracebacks can show",
            (
                "reactive/engine/compiler/build.py: Builder.build",
                "reactive/engine/codegen/functions.py: build",
            ),
        ),
        Step(
            "nodes of the graph",
            "equal parts of all queries are one node; new ones are filled",
            (
                "reactive/engine/dataflow/graph.py: Graph.node",
                "reactive/engine/dataflow/graph.py: Graph.attach",
            ),
        ),
        Step(
            "a view",
            "complete from the start; later changes update it",
            ("reactive/api/view.py: View",),
        ),
    ),
    spans=(Span(0, 1, "made"), Span(3, 4, "optimizer"), Span(5, 7, "compiler")),
)

FLUSH = Picture(
    "flush",
    "A flush: from waiting changes to views that show them",
    (
        Step(
            "commits leave entries",
            "key, bucket, packed row; nodes below an offloaded part are deferred",
            (
                "reactive/engine/remote/remote_operator.py: RemoteOperator.step",
                "reactive/engine/dataflow/node.py: is_deferred",
            ),
        ),
        Step(
            "a flush begins",
            "a reader, db.flush(), or the interval needs the last commit",
            ("reactive/borders/offload/offload.py: Offloading.flush",),
        ),
        Step(
            "barrier",
            "the waiting changes, up to the last commit, are set apart",
            (
                "reactive/engine/remote/flush.py: Flush",
                "reactive/engine/remote/remote_operator.py: RemoteOperator.set_barrier",
            ),
        ),
        Step(
            "send",
            "entries are sent to Spark; a batch number counts only once",
            (
                "reactive/engine/remote/flush.py: send_together",
                "spark_backend/bucketed/remote.py: BucketedRemote.apply",
            ),
        ),
        Step(
            "Spark: one job",
            "touched buckets, before and after; then the manifest is written",
            (
                "spark_backend/state/tables.py: StateTables.flush",
                "spark_backend/bucketed/bucket_changes.py: bucket_changes",
            ),
        ),
        Step(
            "step",
            "deferred nodes apply the delta; further fragments send in turn",
            (
                "reactive/engine/remote/remote_operator.py: RemoteOperator.flush",
                "reactive/engine/remote/flush.py: Flush._step",
            ),
        ),
        Step(
            "show",
            "all deferred leaves change together, or none does",
            (
                "reactive/engine/remote/flush.py: Flush._finish",
                "reactive/engine/dataflow/graph.py: Graph.announce",
            ),
        ),
        Step(
            "subscribers are notified",
            "one delta per flush; its version is the commit of the barrier",
            ("reactive/engine/dataflow/delivery_queue.py: DeliveryQueue.deliver",),
        ),
    ),
    spans=(
        Span(2, 2, "inside the lock"),
        Span(3, 4, "commits go on"),
        Span(5, 6, "inside the lock"),
    ),
)

PICTURES = (CHANGE, QUERY, FLUSH)

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #444 }
.card { fill: #fff; stroke: #ddd }
.head { font-size: 16px; font-weight: 600; fill: #111 }
.box { fill: #eef4fb; stroke: #5b8bbd }
.title { font-size: 14px; font-weight: 600; fill: #111 }
.code { font: 11.5px ui-monospace, monospace; fill: #666 }
.arrow, .span, .back { fill: none; stroke: #5b8bbd; stroke-width: 1.5 }
.span { stroke: #999 } .back { stroke: #b5473c; stroke-dasharray: 4 3 }
.note { fill: #b5473c }
"""


def drawn(picture: Picture) -> str:
    height = top(len(picture.steps)) + 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(picture.title)}</title><style>{STYLE}</style>",
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="3" '
        'orient="auto-start-reverse"><path d="M0,0 L6,3 L0,6" class="arrow"/></marker></defs>',
        f'<rect class="card" width="{WIDTH}" height="{height}" rx="8"/>',
        f'<text class="head" x="24" y="34">{escape(picture.title)}</text>',
        *steps(picture.steps),
        *(part for span in picture.spans for part in bracket(span)),
        *(way_back(picture.back) if picture.back else ()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def top(index: int) -> int:
    """The upper end of a step."""
    return 56 + index * (STEP + GAP)


def steps(of: Sequence[Step]) -> Iterator[str]:
    for index, step in enumerate(of):
        y = top(index)
        yield f'<rect class="box" x="{LEFT}" y="{y}" width="{BOX}" height="{STEP}" rx="6"/>'
        yield f'<text class="title" x="{LEFT + 14}" y="{y + 22}">{escape(step.title)}</text>'
        yield f'<text x="{LEFT + 14}" y="{y + 41}">{escape(step.text)}</text>'
        for line, where in enumerate(step.where):
            file, name = where.split(": ")
            shown = f"{file.removeprefix('reactive/')}: {name.rpartition('.')[2]}"
            yield f'<text class="code" x="{CODE}" y="{y + 22 + 19 * line}">{escape(shown)}</text>'
        if index:
            x = LEFT + BOX // 2
            yield f'<path class="arrow" d="M{x},{y - GAP + 2} V{y - 3}" marker-end="url(#head)"/>'


def bracket(span: Span) -> Iterator[str]:
    first, last, x = top(span.first) + 4, top(span.last) + STEP - 4, LEFT - 14
    yield f'<path class="span" d="M{x},{first} h-8 V{last} h8"/>'
    yield f'<text x="{x - 16}" y="{(first + last) // 2 + 4}" text-anchor="end">{span.label}</text>'


def way_back(span: Span) -> Iterator[str]:
    """From a step back to an earlier one, along the right side of the boxes."""
    begin, end, x = top(span.first) + STEP // 2, top(span.last) + STEP // 2, LEFT + BOX
    yield f'<path class="back" d="M{x},{begin} h16 V{end} h-13" marker-end="url(#head)"/>'
    yield f'<text class="note" x="{CODE}" y="{top(span.first) - 7}">{escape(span.label)}</text>'


if __name__ == "__main__":
    for each in PICTURES:
        (FOLDER / f"{each.name}.svg").write_text(drawn(each))
