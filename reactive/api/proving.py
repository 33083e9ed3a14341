"""`why`, `whys`: proofs of the rows of a view, made of the steps that the search has chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.callables.source import caller
from optimizer.errors import PlanError
from optimizer.expr import Lifted
from optimizer.plans.explain import headline
from optimizer.plans.properties import bindings
from optimizer.traverse import functions
from reactive.api.conditions import where_of
from reactive.api.obstacles import Obstacle, WhyNot
from reactive.api.proofs import Proof
from reactive.api.pulling import Questions, lifted
from reactive.engine.collections.zset import Row, canonical, repeat_by_weight
from reactive.engine.dataflow.delta import Delta, with_columns
from reactive.engine.provenance.check import check_steps
from reactive.engine.provenance.derivations import RowDerivations
from reactive.engine.provenance.goals import Absence, Goal, Members, Note, PlaceInOrder
from reactive.engine.provenance.missing import WaysToRows, WayToRow
from reactive.engine.provenance.search import Search, Step
from reactive.engine.provenance.wanted import wanted_row
from reactive.engine.reference.bags import ordered_rows, with_known_limit
from reactive.errors import TransactionError, VerificationError

if TYPE_CHECKING:
    from optimizer.callables.source import Place
    from reactive.api.proofs import Kind
    from reactive.api.view import AnyView

KINDS: dict[type[plan.Node], Kind] = {
    plan.Table: "fact",
    plan.Values: "value",
    plan.Given: "value",
    plan.Previous: "past",
    plan.Component: "recursion",
    plan.View: "view",
    plan.Aggregate: "group",
    plan.Reduce: "group",
    plan.Top: "order",
    plan.OrderBy: "order",
}
"""The nodes whose rows are shown in a proof; others are steps of its rules."""


class Explainer:
    """Answers why rows are in a view; it is kept with the view."""

    def __init__(self, view: AnyView) -> None:
        self._engine = view._engine
        self._name, self._place, self._relation = view.name, view.place, view.relation
        make_view = partial(_make_view, view.relation, view.place)
        self.questions = Questions(view._engine, view.relation.plan, make_view)

    def why(self, row: Row) -> Proof:
        """Return the lowest proof of a row; the caller holds the lock."""
        for name in ("as it is", "by rounds", "flat"):
            search, goal = self._search(name, row)
            step = search.lowest(goal)
            if step is not None:
                return self._proof(step)
        raise PlanError(
            f"no proof of {row!r:.100} was found\n"
            "  it may depend on callables that are not deterministic: view.verify() tells"
        )

    def whys(self, row: Row) -> Iterator[Proof]:
        """Yield all proofs of a row, each found when it is asked for."""
        search, goal = self._search("as it is", row)
        version = self._engine.version
        for step in search.every(goal):
            yield self._proof(step)
            if self._engine.version != version:
                raise VerificationError("the rows have changed since the first proof")

    def why_not(self, asked: Any, fields: Mapping[str, Any]) -> WhyNot:
        """Return what is in the way of a row, or of all rows with some values of fields."""
        root, values = self.questions.root, []
        said = [f"{name}={value!r}" for name, value in fields.items()]
        if fields:
            root = lifted(where_of(self._relation._new(root), None, fields))
        elif (row := wanted_row(canonical(asked), bindings(root))) is not None:
            values = [row]
        text = ", ".join(said) if fields else f"{asked!r:.200}"
        pull = self.questions.pull()
        if any(n > 0 for n in pull.rows(root, values).values()):
            raise PlanError(f"{text} is there\n  view.why(row) tells why")
        found = WaysToRows(self.questions).to(root, values)
        return WhyNot(text, tuple(dict.fromkeys(map(_obstacle, found))))

    def _search(self, name: str, row: Row) -> tuple[Search, Goal]:
        self.questions.pull()
        derivations = RowDerivations(self.questions, by_rounds=name == "by rounds")
        goal = derivations.goal(self.questions.root, row, ())
        return Search(derivations, is_flat=name == "flat"), goal

    def _proof(self, step: Step) -> Proof:
        """Return the proof that some steps are, with the steps of one rule together."""
        version = self._engine.version
        made: dict[int, Proof] = {}
        for each in _heads(step):
            made[id(each)] = self._rule(each, made, is_root=each is step)
        proof = made[id(step)]

        def check() -> int:
            with self._engine.inside():
                if self._engine.version != version:
                    raise VerificationError(
                        "the rows have changed since the proof was made\n  ask why again"
                    )
                return check_steps(step, self.questions.evaluated)

        proof._checking = check
        return proof

    def _rule(self, step: Step, made: dict[int, Proof], *, is_root: bool) -> Proof:
        """Return the proof of a step of which the rows below are proved."""
        node = step.goal.node
        kind: Kind = KINDS.get(type(node), "query")
        rule: list[str] = []
        premises: list[Proof] = []
        beside_them: list[Proof] = []
        notes: list[str] = []
        place = None
        for each in _inside(step):
            if id(each) in made and each is not step:
                premises.append(made[id(each)])
                continue
            if not isinstance(each.goal.node, plan.Table | plan.View | plan.Component):
                rule.append(headline(each.goal.node))
            place = place or _place_of(each.goal.node)
            for beside in each.beside:
                if isinstance(beside, Absence):
                    beside_them.append(_absent(beside))
                elif isinstance(beside, Members):
                    notes.append(_rows(beside.count))
                    rest = beside.count - len(beside.first)
                    if rest > 0 and len(each.premises) == len(beside.first):
                        beside_them.append(Proof("rows", None, "more", note=f"... {rest} more"))
                else:
                    notes.append(_words(beside))
        if is_root:
            name = self._name or ("query" if kind in ("query", "group", "order") else _name(node))
            place = place or self._place
        else:
            name = _name(node)
        return Proof(
            name,
            step.goal.row,
            kind,
            (*premises, *beside_them),
            tuple(rule),
            place,
            ", ".join(notes),
            step.height,
        )


def _obstacle(way: WayToRow) -> Obstacle:
    """Return a way to a row with the names of what has its rows."""
    holds = tuple(dict.fromkeys((_name(node), row) for node, row in way.holds))
    missing = tuple(dict.fromkeys((_name(node), row) for node, row in way.missing))
    return Obstacle(holds, missing, way.reason)


def _is_shown(step: Step) -> bool:
    return type(step.goal.node) in KINDS


def _heads(root: Step) -> list[Step]:
    """Return the steps that are shown, premises before what is made of them."""
    order: dict[int, Step] = {}
    waiting: list[tuple[Step, bool]] = [(root, False)]
    while waiting:
        step, is_left = waiting.pop()
        if is_left:
            order.setdefault(id(step), step)
        elif id(step) not in order:
            waiting.append((step, True))
            waiting += [(each, False) for each in step.premises]
    return [step for step in order.values() if step is root or _is_shown(step)]


def _inside(head: Step) -> Iterator[Step]:
    """Yield a step, and the steps of its rule down to the shown rows, as in the query."""
    waiting = [head]
    while waiting:
        step = waiting.pop()
        yield step
        if step is head or not _is_shown(step):
            waiting += reversed(step.premises)


def _name(node: plan.Node) -> str:
    match node:
        case plan.Table() | plan.Given():
            return str(getattr(node, "name", "given"))
        case plan.View(_, name):
            return name or "view"
        case plan.Component(recursion, index):
            return str(recursion.names[index])
        case plan.Recursive(name=name):
            return str(name)
        case plan.Fixpoint() | plan.Iterate():
            return str(node.names[0])
        case plan.Values():
            return "value"
        case plan.Previous():
            return "previous"
        case _:
            return headline(node)


def _absent(absence: Absence) -> Proof:
    """Return the leaf that says which rows are not there."""
    name = _name_of_rows(absence.node)
    if absence.values:
        names, values = zip(*absence.values, strict=True)
        several = len(names) > 1
        left = f"({', '.join(names)})" if several else names[0]
        note = f"with {left} = {values if several else values[0]!r}"
    elif absence.row is None:
        note = "that matches"
    else:
        note = f"equal to {absence.row!r:.200}"
        if absence.has:
            note = f"with more than {absence.has} copies of {absence.row!r:.200}"
    return Proof(name, None, "absent", note=note)


def _name_of_rows(node: plan.Node) -> str:
    """Return the names of the tables, views and relations whose rows a node combines."""
    named = plan.Table | plan.View | plan.Component | plan.Recursive | plan.Fixpoint | plan.Iterate
    if isinstance(node, named):
        return _name(node)
    found: dict[str, None] = {}
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, named):
            found.setdefault(_name(each))
        else:
            waiting += reversed(each.inputs())
    return " with ".join(found) if len(found) in (1, 2, 3) else headline(node)


def _words(beside: PlaceInOrder | Note) -> str:
    if isinstance(beside, PlaceInOrder):
        return f"{_ordinal(beside.place)} of {beside.count}"
    return beside.text


def _ordinal(place: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
    if place <= len(words):
        return words[place - 1]
    ending = "th" if 10 < place % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _place_of(node: plan.Node) -> Place | None:
    """Return the line where the callables of a node are written, if it is known."""
    for function in functions(node):
        found = function.place if isinstance(function, Lifted) else getattr(function, "place", None)
        if found is not None:
            return found
    return None


def _make_view(relation: Any, place: Place, node: plan.Node) -> AnyView:
    """Return a new view of a part of a query."""
    found: AnyView = relation._engine.materialize(relation._new(node), None, place)
    return found


def explainer_of(view: Any) -> Explainer:
    """Return what answers questions about the rows of a view; it is kept with the view."""
    if view._explainer is None:
        view._explainer = Explainer(view)
    found: Explainer = view._explainer
    return found


def row_in(view: Any, asked: Any) -> Row:
    """Return a row of a view, or the row of a group by its key; raise if it has none."""
    row = canonical(asked)
    contents = view._contents
    if contents.count(row) > 0:
        return row
    find = getattr(view, "_find", None)
    found = None if find is None else find(asked)
    if found is None:
        raise PlanError(
            f"{asked!r:.100} is not in {view._called()}\n  view.why_not(row) tells what is missing"
        )
    return found


def supposed_delta(view: Any) -> Delta[Any]:
    """Return the delta that supposed changes make in a view; raise outside of a supposition."""
    engine = view._engine
    if engine.supposition is None:
        raise TransactionError(
            "nothing is supposed\n  with db.suppose(): make changes, and then ask view.diff()"
        )
    channel = view._channel
    changes = engine.supposition.delta_of(view._node)
    return with_columns(Delta(engine.version + 1, changes, channel.key), channel.columns)


def rows_of(
    relation: Any, predicate: Callable[..., object] | None, fields: Mapping[str, Any]
) -> list[Any]:
    """Return the rows of a relation, or those that a condition keeps, evaluated once."""
    asked = relation if predicate is None and not fields else relation.where(predicate, **fields)
    engine = relation._engine
    with engine.inside():
        questions = Questions(engine, asked.plan, partial(_make_view, relation, caller()))
        pull = questions.pull()
        root = questions.root
        if isinstance(root, plan.OrderBy):
            return ordered_rows(with_known_limit(root, pull.rows), pull.rows(root.input))
        return list(repeat_by_weight(pull.rows(root).items()))


def verify_sample(view: Any, number: int) -> None:
    """Compare some rows of a view with the query, which is evaluated for these rows alone."""
    if type(number) is not int or number < 1:
        raise PlanError(f"verify takes sample= as a number from 1 on, not {number!r:.60}")
    questions = explainer_of(view).questions
    pull, pairs = questions.pull(), list(view._contents.items())
    for row, weight in Random().sample(pairs, min(number, len(pairs))):
        found = pull.weight(questions.root, row)
        if found != weight:
            raise VerificationError(
                f"{view._called()} differs from its query\n"
                f"  it has {weight} of {row!r:.200}, and the query {found}"
            )
