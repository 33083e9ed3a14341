"""The body of a generated loop: it applies a chain of linear operators to one row.

    where o.quantity > 1                        quantity = row.quantity
    select (o.product, o.quantity * o.price)    if not quantity > 1: continue
                                                value = quantity * row.price
                                                append(((row.product, value), weight))

If a select makes a tuple or a plain record, that row is not built: readers of its fields read the
expressions of the fields instead. An expression that is read more than once is stored in a
variable, as soon as it is certain to be evaluated. Expressions that may raise are evaluated in the
order of the plain operators.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from optimizer import plan
from optimizer.expr import (
    FALSE,
    TRUE,
    Again,
    Attempt,
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    First,
    Guard,
    Item,
    Lifted,
    Local,
    Operation,
    Parameter,
    all_parameters,
    conjuncts,
    parts,
    reads,
    substitute,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.knowledge import (
    Shapes,
    constructor,
    is_canonical,
    is_value,
    makes_record,
    total,
)
from optimizer.expressions.simplification import may_be_moment
from optimizer.expressions.text import needs, project_node, surely
from optimizer.record import record
from reactive.engine.codegen.functions import BoundValues, CodeWriter, can_be_variable
from reactive.engine.codegen.use_counts import UseCounts, ValueUse
from reactive.engine.collections.index import itself
from reactive.engine.collections.zset import canonical, canonical_record

Chain = Sequence[plan.Node]
"""Nodes of the kinds where, select, unnest and select_many, from input to output."""

LONGEST = 60
"""Maximum number of nodes of an expression that is written at each read of its value."""
MAY_MAKE_NAN = frozenset({"+", "-", "*", "/", "//", "%", "**"})


@record
class Instruction:
    """One step of the loop's body; `name` is the variable that it sets."""

    kind: Literal["test", "attempt", "touch", "set", "each"]
    expr: Expr
    name: str = ""


USES = {"set": ValueUse.KEPT, "each": ValueUse.GIVEN}
"""The uses of instruction values that are more than a look."""


class RowPipeline:
    """The instructions of a chain, and its output row as expressions of the input row."""

    def __init__(self, chain: Chain, bindings: int, shapes: Shapes) -> None:
        self.shapes = shapes
        self.bindings = bindings
        self.instructions: list[Instruction] = []
        self.row: tuple[Expr, ...] = all_parameters(bindings)
        self.is_input = True
        """True if the output rows are the input rows."""
        self.extend(chain)

    @property
    def makes_several(self) -> bool:
        """True if an input row may make several output rows."""
        return any(instruction.kind == "each" for instruction in self.instructions)

    def extend(self, chain: Chain) -> None:
        """Append the instructions of further operators."""
        for node in chain:
            self._add(node)

    def test(self, expr: Expr) -> None:
        """Drop rows that do not satisfy an expression over the current row."""
        for part in conjuncts(self.rewrite(expr)):
            self._test(part)

    def rewrite(self, expr: Expr) -> Expr:
        """Rewrite an expression over the current row as one over the variables of the loop."""
        return transform(substitute(expr, self.row), project_node)

    def take(self, expr: Expr) -> Expr:
        """Return `rewrite(expr)`, after instructions that evaluate its parts that may raise."""
        expr = self.rewrite(expr)
        while isinstance(expr, First):
            self.instructions += [Instruction("touch", need) for need in expr.needs]
            expr = expr.then
        self.need(expr)
        return expr

    def narrow(self, arguments: int) -> None:
        """Make the current row one value if its readers take one, as on the right of a join."""
        if arguments < len(self.row):
            self.row = (self.value(),)

    def value(self) -> Expr:
        """Return the current row as one value."""
        return self.row[0] if len(self.row) == 1 else tuple_of(*self.row)

    def need(self, expr: Expr) -> None:
        """Add instructions that evaluate the parts of an expression that may raise."""
        self.instructions += [Instruction("touch", part) for part in needs(expr, self.shapes)]

    def _add(self, node: plan.Node) -> None:
        """Add the instructions of one linear node; raises `TypeError` for another node."""
        match node:
            case plan.Where(_, Lifted(body)):
                self.test(body)
                return
            case plan.Select(_, Lifted(body)):
                self.row = (self._select_row(body),)
            case plan.Extend(_, keep, columns):
                kept = [self.row[place] for place in keep]
                made = [self._select_row(c.body) for c in columns if isinstance(c, Lifted)]
                self.row = (*kept, *made)
            case plan.SelectMany(_, Lifted(body)):
                self.row = (self._each(self.rewrite(body)),)
            case plan.Unnest(_, Lifted(body)):
                self.row = (*self.row, self._each(self.rewrite(body)))
            case _:
                raise TypeError(f"{type(node).__name__} is no step of a loop")
        self.is_input = False

    def _test(self, expr: Expr) -> None:
        """Add the instructions of a condition, after those of the expressions that it needs."""
        match expr:
            case First(needed, then):
                self.instructions += [Instruction("touch", need) for need in needed]
                self._test(then)
            case Guard(test, needed):  # if anything raises, the plain operators are used
                self.instructions += [Instruction("touch", need) for need in needed]
                self._test(test)
            case Again(test):
                self._test(test)
            case Attempt(of, otherwise) if otherwise == FALSE:
                self.instructions.append(Instruction("attempt", of))
            case _:
                self.instructions.append(Instruction("test", expr))

    def _select_row(self, body: Expr) -> Expr:
        """Return the row that a select makes, as an expression over variables of the loop."""
        expr = self.rewrite(body)
        if is_value(expr, self.shapes) and sum(1 for _ in walk(expr)) <= LONGEST:
            return self.take(body)
        return self._set(expr)

    def _set(self, expr: Expr) -> Local:
        """Add an instruction that sets a new variable to the expression; return the variable."""
        name = f"made_{len(self.instructions) + 1}"
        self.instructions.append(Instruction("set", expr, name))
        return Local(name)

    def _each(self, expr: Expr) -> Local:
        """Add an instruction that loops over a collection; return the variable of its elements."""
        name = f"element_{len(self.instructions) + 1}"
        self.instructions.append(Instruction("each", expr, name))
        return Local(name)


class Emitter:
    """Writes the instructions of a pipeline as lines of code, then the expressions of its sink.

    The bodies of nested loops share `lines`.
    """

    def __init__(
        self,
        values: BoundValues,
        names: Sequence[str],
        shapes: Shapes,
        indent: int,
        lines: list[str] | None = None,
    ) -> None:
        self.lines = [] if lines is None else lines
        self.indent = indent
        self._values = values
        self._shapes = shapes
        self._known = EvaluatedVariables()
        self._names = tuple(names)
        self._taken = {*names}
        self._expected = UseCounts(shapes)
        self._writer = CodeWriter(names, values, known=self._known, careful=False)
        for name in names:
            values.reserve(name)

    def loop(self, head: str) -> Emitter:
        """Begin a loop and return the emitter of its body, which shares the known variables."""
        self.line(head)
        return self.block()

    def block(self, head: str = "") -> Emitter:
        """Return the emitter of a nested block, which shares the known variables."""
        if head:
            self.line(head)
        inner = Emitter(self._values, self._names, self._shapes, self.indent + 1, self.lines)
        inner._known.update(self._known.for_loops())
        inner._taken |= self._taken
        inner._expected = self._expected
        return inner

    def begin(self, instructions: Sequence[Instruction], more: Sequence[Expr]) -> None:
        """Announce instructions and later expressions, and unpack a row of several bindings."""
        self.expect(instructions, more)
        self.unpack(self._names)

    def unpack(self, names: Sequence[str]) -> None:
        """Assign the bindings of `row` to variables, if it has several."""
        if len(names) > 1:
            self.line(f"{', '.join(names)} = row")

    def expect(self, instructions: Iterable[Instruction], more: Iterable[Expr]) -> None:
        """Announce the expressions to be written, so that repeated ones get a variable."""
        written = [(each.expr, USES.get(each.kind, ValueUse.LOOKED_AT)) for each in instructions]
        self._expected.add([*written, *((expr, ValueUse.KEPT) for expr in more)])

    def write(self, instructions: Iterable[Instruction]) -> None:
        """Write the instructions, one after the other."""
        for instruction in instructions:
            match instruction.kind:
                case "test":
                    self.line(f"if not {self.use(instruction.expr, 3)}: continue")
                case "attempt":
                    self._attempt_test(instruction.expr)
                case "touch":
                    self._touch(instruction.expr)
                case "set":
                    self.line(f"{instruction.name} = {self.canonical(instruction.expr)}")
                case "each":
                    self.line(f"for {instruction.name} in {self.use(instruction.expr)}:")
                    self.indent += 1
                    self.line(f"{instruction.name} = canonical({instruction.name})")

    def line(self, text: str, deeper: int = 0) -> None:
        """Write a line of code."""
        if text.startswith("for "):
            self._known.begin_loop()
        self.lines.append("    " * (self.indent + deeper) + text)

    def use(self, expr: Expr, least: int = 0) -> str:
        """Return the text of an expression that is evaluated here."""
        self._name_what_comes_twice(expr)
        self._name_attempts(expr)
        return self._writer.write(expr, least)

    def variable_of(self, expr: Expr) -> str:
        """Return the name of a variable that holds an expression."""
        text = self.use(expr)
        return text if text.isidentifier() else self.variable("value", text)

    def variable(self, wish: str, text: str) -> str:
        """Return the name of a new variable, set here."""
        name = self._free(wish)
        self.line(f"{name} = {text}")
        return name

    def canonical(self, expr: Expr) -> str:
        """Return the text of an expression, with every NaN in it replaced by the canonical one."""
        if is_canonical(expr, self._shapes):
            return self.use(expr)
        match expr:
            case Display("tuple", items):
                return f"({', '.join(map(self.canonical, items))}{',' * (len(items) == 1)})"
            case Call(function, arguments, keywords) if makes_record(expr):
                named = (f"{name}={self.canonical(value)}" for name, value in keywords)
                given = [*map(self.canonical, arguments), *named]
                return f"{self._writer.write(function)}({', '.join(given)})"
            case Operation(operator) if operator in MAY_MAKE_NAN:
                name = self._name(expr)
                return f"({name} if {canonical_test(name, expr)} else canonical({name}))"
            case _:
                return f"canonical({self.use(expr)})"

    def hoist(self, readable: frozenset[int], within: Iterable[Expr] | None = None) -> None:
        """Assign fields of some parameters to variables, before a loop over others begins.

        The fields are those read `within` some expressions; without these, all fields that are
        read.
        """
        found = [
            expr
            for expr in self._expected.often()
            if isinstance(expr, Attribute | Item)
            and reads(expr) <= readable
            and not _reads_local(expr)
            and total(expr, self._shapes)
        ]
        if found and within is not None:
            inside = {part for expr in within for part in walk(expr)}
            found = [expr for expr in found if expr in inside]
        for expr in found:
            self._name(expr)

    def _name_what_comes_twice(self, expr: Expr) -> None:
        """Write variables for the parts of `expr` that are used twice and surely evaluated."""
        if expr in self._known:
            return
        for part in surely(expr)[:0:-1]:
            if self._expected.comes_twice(part) and part not in self._known:
                self._name(part)
        if self._expected.comes_twice(expr):
            self._name(expr)

    def _name(self, expr: Expr) -> str:
        """Return the variable that holds an expression; set it here if it is new."""
        known = self._known.get(expr)
        if known is not None:
            return known
        if isinstance(expr, Parameter):
            return self._names[expr.index]
        wish = expr.name if isinstance(expr, Attribute) else "value"
        for part in surely(expr)[:0:-1]:
            if self._expected.comes_twice(part):
                self._name(part)
        self._name_attempts(expr)
        name = self.variable(wish, self._writer.write(expr))
        if self._expected.may_name(expr):
            self._known[expr] = name
            if self._expected.is_kept(expr):
                self._known.kept.add(expr)
        return name

    def _attempt_test(self, expr: Expr) -> None:
        """Drop rows whose test is false or raises."""
        with self._trying("continue"):
            while isinstance(expr, First):
                for need in expr.needs:
                    self._touch(need)
                expr = expr.then
            if expr != TRUE:
                self.line(f"if not {self.use(expr, 3)}: continue")

    def _name_attempts(self, expr: Expr) -> None:
        """Assign attempts, which are a constant if they raise, to variables by lines of code."""
        for part in [] if expr in self._known else surely(expr):
            if isinstance(part, Attempt) and part not in self._known:
                self._name_attempt(part)

    def _name_attempt(self, expr: Attempt) -> None:
        """Write a `try` that gives the value of an attempt, or of its otherwise, to a variable."""
        name, known = self._free("value"), dict(self._known)
        with self._trying(f"{name} = {self._writer.write(expr.otherwise)}"):
            self.line(f"{name} = {self.use(expr.of)}")
        for part in self._known.keys() - known.keys():
            del self._known[part]  # unset if the attempt has raised
        if self._expected.may_name(expr):
            self._known[expr] = name
        else:
            self._known.once[expr] = name

    @contextmanager
    def _trying(self, otherwise: str) -> Iterator[None]:
        """Write lines that may raise, and the line to run if they do."""
        start = len(self.lines)
        self.line("try:")
        self.indent += 1
        yield
        self.indent -= 1
        if len(self.lines) == start + 1:  # the value is already in a variable
            self.lines.pop()
            return
        self.line("except Exception as error:")
        self.line("reraise(error)", 1)
        self.line(otherwise, 1)

    def _touch(self, expr: Expr) -> None:
        """Evaluate an expression here; the next use of it reads the variable."""
        name = self._name(expr)
        if expr not in self._known:
            self._known.once[expr] = name

    def _free(self, wish: str) -> str:
        """Return a variable name like `wish` that is not in use, and reserve it."""
        if keyword.iskeyword(wish) or wish.startswith("__"):
            wish = "value"
        elif not can_be_variable(wish):
            wish = f"_{wish}"
        number, name = 1, wish
        while name in self._taken or name in self._values.by_name:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        self._values.reserve(name)
        return name


def row_names(functions: Iterable[Lifted], bindings: int) -> tuple[str, ...]:
    """Return the names for the bindings of a row: `row`, or the user's names if they are free."""
    if bindings == 1:
        return ("row",)
    for function in functions:
        names = function.names
        if len(set(names)) == len(names) == bindings and all(map(_is_free, names)):
            return names
    return tuple(f"row{index}" for index in range(bindings))


def _is_free(name: str) -> bool:
    return name.isidentifier() and "_" not in name and can_be_variable(name)


def _reads_local(expr: Expr) -> bool:
    return isinstance(expr, Local) or any(_reads_local(part) for part in parts(expr))


# The variables of a loop that hold evaluated expressions.


class EvaluatedVariables(dict[Expr, str]):
    """The variables that hold evaluated expressions.

    A value that may be an iterator or a container, as from an opaque callable, is valid for one
    use, before a loop begins (`once`). A value `kept` in a row is valid for one row, but a loop
    makes several.
    """

    def __init__(self) -> None:
        super().__init__()
        self.once: dict[Expr, str] = {}
        self.kept: set[Expr] = set()

    def begin_loop(self) -> None:
        """Drop the values that are valid for one row only."""
        self.once.clear()
        for expr in self.kept:
            self.pop(expr, None)
        self.kept.clear()

    def for_loops(self) -> dict[Expr, str]:
        """Return the variables that nested loops may use."""
        return {expr: name for expr, name in self.items() if expr not in self.kept}

    def get(self, expr: Expr, default: str | None = None) -> str | None:  # type: ignore[override]
        """Return the variable of an expression, else `default`; one in `once` is removed."""
        found = super().get(expr) if self else None
        if found is None:
            return self.once.pop(expr, default) if self.once else default
        return found


def canonical_maker(expr: Expr, shapes: Shapes) -> Callable[[Any], Any]:
    """Return the function that makes a value of an expression canonical, as loops do.

    A NaN in a field whose annotation excludes it is stored as it is. Rows with that NaN are found
    again only if loops and plain operators change the same parts of a value.

    >>> as_read, negated = Parameter(0), Operation("-", (Parameter(0),))
    >>> make, held = canonical_maker(tuple_of(as_read, negated), (float,)), float("nan")
    >>> [value is held for value in make((held, held))]
    [True, False]
    """
    if is_canonical(expr, shapes):
        return itself
    match expr:
        case First(_, then):
            return canonical_maker(then, shapes)
        case Display("tuple", items):
            makers = [canonical_maker(item, shapes) for item in items]
            return lambda value: tuple(
                [make(item) for make, item in zip(makers, value, strict=True)]
            )
        case Call(Constant(kind), arguments, keywords) if makes_record(expr):
            given = dict(zip(constructor(kind) or (), arguments, strict=False)) | dict(keywords)
            names = [name for name, value in given.items() if not is_canonical(value, shapes)]
            return lambda value: canonical_record(value, names)
        case _:
            return canonical


def canonical_test(name: str, expr: Operation) -> str:
    """Return the text of a test that the value of an operation is canonical.

    >>> canonical_test("value", Operation("*", ()))
    'value == value'
    """
    is_no_moment = f" and {name}.__class__ is not datetime" if may_be_moment(expr) else ""
    return f"{name} == {name}{is_no_moment}"
