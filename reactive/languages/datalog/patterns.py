"""What the arguments of an atom ask of a row: which it has to be equal to, and which it gives.

edge(x, [y, 3])         x bound: an equation with x      row.a == x
                                                         row.b is not None
                        y new: a value for y             y = row.b[0]
                                                         row.b[1] == 3
"""

from __future__ import annotations

from collections.abc import Sequence

from optimizer import plan
from optimizer.expr import NONE, Attribute, Expr, Operation, Parameter, conjunction, constant, reads
from reactive.languages.datalog.expressions import Expressions, Values, item, lifted
from reactive.languages.datalog.kinds import Field
from reactive.languages.datalog.syntax import Atom, Branch, Nil, Record, Term, Unnamed, Variable

ROW = Parameter(0)


class Pattern:
    """Terms, compared with values that come."""

    def __init__(self, values: Values, expressions: Expressions) -> None:
        self._values = values
        self._expressions = expressions
        self.tests: list[Expr] = []
        """What has to be true of the row."""
        self.keys: list[tuple[Expr, Expr]] = []
        """What is known from elsewhere, and what of the row has to equal it."""
        self.gives: dict[str, Expr] = {}
        """What the row gives to variables that have no value."""

    def fit_row(self, atom: Atom, fields: Sequence[Field]) -> None:
        """Compare the arguments of an atom with a row that is the only binding."""
        for argument, field in zip(atom.arguments, fields, strict=True):
            self.fit(argument, Attribute(ROW, field.attribute))

    def fit(self, term: Term, value: Expr) -> None:
        """Compare a term with a value of the row."""
        match term:
            case Unnamed():
                pass
            case Variable(name) if name in self.gives:
                self.tests.append(Operation("==", (self.gives[name], value)))
            case Variable(name) if name not in self._values:
                self.gives[name] = value
            case Variable(name):
                self._equal(self._values[name], value)
            case Nil():
                self.tests.append(Operation("is", (value, NONE)))
            case Record(items):
                self.tests.append(Operation("is not", (value, NONE)))
                for place, each in enumerate(items):
                    self.fit(each, item(value, place))
            case Branch(name, items):
                self.tests.append(Operation("==", (item(value, 0), constant(name))))
                for place, each in enumerate(items, 1):
                    self.fit(each, item(value, place))
            case _:
                self._equal(self._expressions.of(term, self._values), value)

    def _equal(self, known: Expr, value: Expr) -> None:
        if reads(known):
            self.keys.append((known, value))
        else:
            self.tests.append(Operation("==", (value, known)))

    def rows(self, node: plan.Node, name: str) -> plan.Node:
        """The rows of which the tests are true."""
        if not self.tests:
            return node
        return plan.Where(node, lifted(conjunction(tuple(self.tests)), (name,)))
