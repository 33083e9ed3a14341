"""Functions of expressions: source text, compiled, that can be read and debugged.

    s.age > 30 and s.first_name == "Sally"  ->  lambda s: s.age > 30 and s.first_name == "Sally"

Values without a literal are bound to names. The text is registered in `linecache`, so that
tracebacks show it.

`recall_of` reuses code generated for one query for another that differs in constants.

    def step(delta): ... row.customer == c      c = "ann", for the plan that a template was made of
    def step(delta): ... row.customer == c      c = "bob", for a plan made of the template

Sound:  the nodes differ only in constants of slots, which code refers to by name whatever their
        values (`BoundValues`), and in callables and tables that the code does not refer to.
State:  per node of a template, the functions generated for it, as long as the template exists.

Names of generated code never clash with names of a query.

    OWN        variables and functions that the lines use; some with a number appended
    the rest   fields, parameters, captured values and callables, by their own names

A captured `weight` would be hidden in a loop over `row, weight`. So an object of the query never
gets a name of the code's own, and none of these begins with `_`.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import keyword
import linecache
import math
import re
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any

from optimizer.callables.opaque import Opaque
from optimizer.callables.source import Place
from optimizer.errors import PlanError
from optimizer.expr import (
    Apply,
    Attempt,
    Call,
    Composition,
    Conjunction,
    Constant,
    Display,
    Expr,
    Function,
    Guard,
    Lifted,
    Local,
    Operation,
    Outer,
    Subquery,
    all_parameters,
    row_names,
    walk,
)
from optimizer.expressions.knowledge import Bounded
from optimizer.expressions.operand_checks import LARGEST, IsOf
from optimizer.expressions.text import Writer, Written
from optimizer.lifting import folds
from optimizer.lifting.lift import lift
from reactive.engine.collections.zset import canonical
from reactive.engine.runtime.boundary import GENERATED
from reactive.engine.runtime.interrupts import reraise_asynchronous

LONGEST = 60
"""Maximum length of a literal in generated code."""
MOST_TEXTS = 512
"""Number of texts whose code is cached, for later queries of the same shape."""
NOWHERE = "<reactive expression>"
"""The file of an expression that no user wrote."""
CAPTURED = (int, float, str, bytes)
"""Classes of captured values that generated code refers to by name."""
LITERALS = (int, str, bytes, bool, type(None))
WRITTEN_HERE = frozenset({Outer, Subquery, Guard, Call, Attempt})
"""Expressions whose generated code differs from their text for readers."""
EMPTY_ENTRY: Any = (0, None, [], NOWHERE)
_numbers = itertools.count(1)
_gone: deque[str] = deque()
"""Files of functions that no longer exist; removed from `linecache` when the next file is added.

They are not removed immediately, since a garbage collection may run while other code iterates over
`linecache`.
"""


class BoundValues:
    """The objects that generated code refers to, by name."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.by_name: dict[str, Any] = {
            "attempt": evaluate_or,
            "canonical": canonical,
            "datetime": datetime,
            "guard": guard,
            "reraise": reraise_asynchronous,
        }
        self.slots: dict[str, int] = {}
        """Names of values that other queries of the same shape replace, with their slots."""
        self._names: dict[int, str] = {}
        self._reserved = set(reserved)

    def reserve(self, name: str) -> None:
        """Reserve a name for a variable of the code."""
        self._reserved.add(name)

    def bind(self, by_name: Mapping[str, Any]) -> None:
        """Bind values to names of the code's own."""
        assert OWN.issuperset(by_name) or all(map(is_own, by_name)), by_name
        self.by_name |= by_name

    def are_seen(self, variables: Set[str]) -> bool:
        """Return True if no variable of the code hides a bound value or a builtin, or could."""
        if not self.by_name.keys().isdisjoint(variables):
            return False
        for name in variables if self._reserved else ():
            if name not in self._reserved and name not in OWN and not is_own(name):
                return False
            if name != "_" and hasattr(builtins, name):  # `_` is the last value of a prompt
                return False
        return True

    def constant(self, constant: Constant) -> str:
        """Return a literal or the name of a value.

        Captured values and constants of slots get a name, so that queries of one shape have one
        text, whatever the constants are.
        """
        value = constant.value
        if constant.slot is not None:
            name = self.name(value, constant.name or "value")
            self.slots[name] = constant.slot
            return name
        if constant.name is not None and type(value) in CAPTURED:
            return self.name(value, constant.name)
        if type(value) in LITERALS and len(repr(value)) <= LONGEST:
            return repr(value)
        if type(value) is float and math.isfinite(value):
            return repr(value)
        return self.name(value, constant.name or getattr(value, "__name__", None) or "value")

    def name_of_opaque(self, part: Apply) -> str:
        """Return the name of an opaque callable."""
        name = "part" if part.function.is_part else part.function.name
        return self.name(part.function.function, name)

    def name(self, value: Any, wish: str) -> str:
        """Return a name for a value: the wished one if it is free."""
        known = self._names.get(id(value))
        if known is not None:
            return known
        base = re.sub(r"\W", "_", wish.rpartition(".")[2]).strip("_") or "value"
        base = avoid_own_name(base)
        wanted = (base if n == 0 else f"{base}_{n}" for n in itertools.count())
        taken = self._reserved | self.by_name.keys()
        name = next(n for n in wanted if n not in taken and getattr(builtins, n, value) is value)
        self.by_name[name] = value
        self._names[id(value)] = name
        return name


class CodeWriter(Writer):
    """Writes expressions as code; guards that may fail are written as calls of `guard`."""

    def __init__(
        self,
        names: Sequence[str],
        values: BoundValues,
        *,
        known: Mapping[Expr, str] | None = None,
        careful: bool = True,
    ) -> None:
        super().__init__(names, values.constant, apply=values.name_of_opaque, known=known)
        self._careful = careful

    def _written(self, expr: Expr) -> Written:
        """Return the text of an expression and its precedence.

        Raises `PlanError` for an outer row or a sub-query where none can be evaluated.
        """
        if expr.__class__ not in WRITTEN_HERE:
            return super()._written(expr)
        if isinstance(expr, Outer):
            raise PlanError(
                "a query reads the row around it, and stands in none: it was made in a nest\n"
                "  give it back from the callable of nest; outside, make it without that row"
            )
        if isinstance(expr, Subquery) and expr not in self.known:
            raise PlanError(
                "a sub-query stands where none can be evaluated\n"
                "  compute its value in a query of its own, and join it"
            )
        if isinstance(expr, Guard) and expr not in self.known:
            asked = ", ".join(self.write(e) for e in (*expr.needs, expr.test))
            inner = self.write(expr.test) if not expr.needs else f"({asked})[-1]"
            return (f"guard(lambda: {inner})" if self._careful else f"({inner})"), 14
        if isinstance(expr, Call) and expr not in self.known:
            match expr:
                case Call(Constant(Bounded(low, high)) as check, (of,)):
                    shown = f"bounded if {low} <= (bounded := {self.write(of)}) <= {high}"
                    return f"({shown} else {self.write(check)}(bounded))", 14
                case Call(Constant(IsOf(_, usual, is_computed)) as check, (of,)) if (
                    usual in _INLINE
                ):
                    shown = f"(checked := {self.write(of)}).__class__ is {usual.__name__}"
                    if is_computed and usual is int:
                        shown += f" and {-LARGEST} < checked < {LARGEST}"
                    return f"({shown} or {self.write(check)}(checked))", 14
        if isinstance(expr, Attempt):
            known = self.known.get(expr)
            otherwise = self.write(expr.otherwise)
            return known or f"attempt(lambda: {self.write(expr.of)}, {otherwise})", 14
        return super()._written(expr)

    def _operation(self, operator: str, operands: tuple[Expr, ...]) -> Written:
        if operator in ("is", "is not"):
            operands = tuple(map(self._hide_literal, operands))
        return super()._operation(operator, operands)

    def _hide_literal(self, operand: Expr) -> Expr:
        """Return an operand of `is`; a literal other than None becomes a call of a lambda.

        Python warns of comparing literals by `is`, but one query may test what another one
        makes.
        """
        is_hidden = operand not in self.known and _is_folded(operand) and not _is_single(operand)
        return Local(f"(lambda: {self.write(operand)})()") if is_hidden else operand


def _is_folded(expr: Expr) -> bool:
    """Return True if Python folds the text into one constant."""
    match expr:
        case Constant(value):
            is_named = expr.name is not None or expr.slot is not None
            return not is_named and type(value) in (*LITERALS, float)
        case Display("tuple", operands) | Operation(_, operands):
            return all(map(_is_folded, operands))
        case _:
            return False


def _is_single(expr: Expr) -> bool:
    """Return True if only one object has this value."""
    return isinstance(expr, Constant) and (expr.value is None or isinstance(expr.value, bool))


def guard(evaluate: Callable[[], object]) -> bool:
    """Return True if a test is true or raises."""
    try:
        return bool(evaluate())
    except Exception as error:
        reraise_asynchronous(error)
        return True


def evaluate_or(evaluate: Callable[[], Any], otherwise: Any) -> Any:
    """Return the value of `evaluate`, or `otherwise` if it raises.

    >>> evaluate_or(lambda: int("x"), None)
    """
    try:
        return evaluate()
    except Exception as error:
        reraise_asynchronous(error)
        return otherwise


def callable_of(function: Function) -> Callable[..., Any]:
    """Return the callable that computes an expression: the user's own, if it does just that."""
    return _as_made(function) or _compile_lazily(function)  # type: ignore[arg-type]


def compiled_of(function: Function) -> Callable[..., Any]:
    """Return the callable, compiled immediately: for many rows, this saves a call per row."""
    return _as_made(function) or _compile_lifted(function)  # type: ignore[arg-type]


def _as_made(function: Function) -> Callable[..., Any] | None:
    """Return the existing callable of a function, if it must not be compiled; else None."""
    if isinstance(function, Opaque):
        return _with_folds(function) or function.function
    match function.made:
        case Opaque(call):
            return None if _folds(function) else call
        case Conjunction(tests):
            return _all_of([callable_of(test) for test in tests])
        case Composition(outer, inner):
            return _compose_callables(callable_of(outer), callable_of(inner))
    body = function.body
    arguments = all_parameters(function.parameters)
    if isinstance(body, Apply) and body.arguments == arguments:
        return body.function.function
    return None


def _with_folds(function: Opaque) -> Callable[..., Any] | None:
    """Return a callable that folds bags incrementally, wherever called; None without folds."""
    if function.is_part or not folds.may_fold(function.function):
        return None
    read = lift(function)
    return _compile_lazily(read) if _folds(read) else None


def _folds(function: Lifted) -> bool:
    """Return True if a callable in the body folds a bag by what has changed in the bag."""
    name_of_opaque = (part.function for part in walk(function.body) if isinstance(part, Apply))
    return any(part.is_part and folds.folds_of(part.function) for part in name_of_opaque)


def _compile_lazily(function: Lifted) -> Callable[..., Any]:
    """Return a callable that is compiled on its first call, since most are rarely called."""
    made: Callable[..., Any] | None = None

    def call(*row: Any) -> Any:
        nonlocal made
        if made is None:
            made = _compile_lifted(function)
        return made(*row)

    return call


def _compile_lifted(function: Lifted) -> Callable[..., Any]:
    """Return a compiled lambda of a lifted callable."""
    values = BoundValues(function.names)
    hides = not values.by_name.keys().isdisjoint(function.names)
    names = _unique_names(() if hides else function.names, function.parameters)
    text = f"lambda {', '.join(names)}: {CodeWriter(names, values).write(function.body)}"
    made: Callable[..., Any] = eval(_code_at_place(text, function.place), values.by_name)
    return made


def build(name: str, text: str, values: BoundValues) -> Callable[..., Any]:
    """Build the function that the text defines; tracebacks show the text.

    >>> double = build("double", "def double(x):\\n    return 2 * x\\n", BoundValues())
    >>> double(4), double.__code__.co_filename in linecache.cache
    (8, True)
    """
    while _gone:
        linecache.cache.pop(_gone.popleft(), None)
    file = f"{GENERATED}{name} {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    code = _code(text)
    assert values.are_seen(_variables(code)), text
    made = FunctionType(_in_file(code, file), dict(values.by_name), name)
    if values.slots:
        vars(made)["slots"] = values.slots
    _files[file] = _FileOf(made, _clear_entry)
    _files[file].name = file
    return made


def build_at_first_call(make: Callable[[], Callable[..., Any]]) -> FunctionType:
    """Return a function that is written and compiled when it is called first.

    It is for loops over batches, since no commit of a row may wait for code.

    >>> text = "def double(x):\\n    return 2 * x\\n"
    >>> double = build_at_first_call(lambda: build("double", text, BoundValues()))
    >>> double(4), double(5)
    (8, 10)
    """
    made = FunctionType(_UNWRITTEN, {}, "unwritten")
    known = weakref.ref(made)  # a cycle would keep closed views until a collection

    def become() -> Callable[..., Any]:
        of = known()
        assert of is not None
        written: Any = make()
        of.__globals__.update(written.__globals__)
        vars(of)["written"] = written  # this keeps its text in `linecache`
        of.__globals__.pop("become", None)
        of.__code__ = written.__code__
        return of

    made.__globals__["become"] = become
    return made


def _first_call(*arguments: Any) -> Any:
    """Write the function that is called, and call it again; the globals are those of it."""
    return become()(*arguments)  # type: ignore[name-defined] # noqa: F821


_UNWRITTEN = _first_call.__code__.replace(co_filename=f"{GENERATED}first call>")


class _FileOf(weakref.ref["FunctionType"]):
    """A reference to a generated function, with the file of its text.

    It is one object; `weakref.finalize` would create four.
    """

    __slots__ = ("name",)
    name: str


def _clear_entry(of: _FileOf) -> None:
    """Clear the `linecache` entry of a function that no longer exists; it is removed later."""
    file = of.name
    _files.pop(file, None)
    if file in linecache.cache:
        linecache.cache[file] = EMPTY_ENTRY
    _gone.append(file)


_files: dict[str, _FileOf] = {}
"""The existing generated functions, by the files of their texts."""


@lru_cache(maxsize=MOST_TEXTS)
def _code(text: str) -> CodeType:
    """Return the code of the function that a text defines; cached, since compiling is slow."""
    module = compile(text, "<reactive>", "exec", dont_inherit=True)
    (code,) = (constant for constant in module.co_consts if isinstance(constant, CodeType))
    return code


def _variables(code: CodeType) -> set[str]:
    """Return the variables of a function and of its inner functions."""
    found = set(code.co_varnames)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _variables(inner) - {".0"}
    return found


def _in_file(code: CodeType, file: str) -> CodeType:
    """Return a copy of code and its inner code, for the interpreter to specialize separately."""
    constants = [_in_file(c, file) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_filename=file, co_consts=tuple(constants))


def generated_source(made: Callable[..., Any]) -> str:
    r"""Return the source text of a function that `build` made; one that is unwritten is written.

    >>> generated_source(build("one", "def one():\n    return 1\n", BoundValues()))
    'def one():\n    return 1\n'
    """
    if made.__code__ is _UNWRITTEN:
        made.__globals__["become"]()
    return "".join(linecache.getlines(made.__code__.co_filename))


def _all_of(tests: list[Callable[..., Any]]) -> Callable[..., Any]:
    """Return a function of a row that evaluates `and` over the tests, as Python does."""

    def conjunction(*row: Any) -> object:
        result: object = True
        for test in tests:
            result = test(*row)
            if not result:
                break
        return result

    return conjunction


def _compose_callables(outer: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    """Return `outer` over `inner`, whose result is made canonical first."""

    def composition(*row: Any) -> Any:
        return outer(canonical(inner(*row)))

    return composition


def _unique_names(names: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the names of parameters; other names if they are missing or not unique."""
    usable = len(set(names)) == len(names) == count and all(map(str.isidentifier, names))
    return tuple(names) if usable else row_names(count)


def _code_at_place(text: str, place: Place | None) -> CodeType:
    """Return the code of an expression, placed at the user's source line for tracebacks."""
    if place is None:
        return _in_file(_code_anywhere(text), NOWHERE)
    line = linecache.getline(place.file, place.line).rstrip()
    code = _code_at(text, place.file, place.line, len(line) - len(line.lstrip()), len(line))
    return _in_file(code, place.file)


@lru_cache(maxsize=MOST_TEXTS)
def _code_anywhere(text: str) -> CodeType:
    """Return the code of an expression without a place; `_code_at_place` copies it."""
    return compile(text, NOWHERE, "eval", dont_inherit=True)


@lru_cache(maxsize=MOST_TEXTS)
def _code_at(text: str, file: str, line: int, first: int, end: int) -> CodeType:
    """Return the code of an expression at columns of a line; cached for repeated queries.

    `_code_at_place` returns copies of it, as `build` does for functions.
    """
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.arg | ast.keyword):
            node.lineno = node.end_lineno = line
            node.col_offset = first
            node.end_col_offset = end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # constants may be compared by `is`
        return compile(tree, file, "eval", dont_inherit=True)


Made = tuple[Callable[..., Any], str]
"""A function, and its text."""
Recall = Callable[[str, Callable[[], Made]], Made]
"""Returns the code made for a role, or makes it."""


def make_without_reuse(role: str, make: Callable[[], Made]) -> Made:
    """Make the code, without reuse."""
    return make()


def recall_of(known: dict[str, Any]) -> Recall:
    """Return the function that makes or reuses code for a physical node.

    `known` is the data of its template.
    """
    instance = known.get("instance")
    if instance is None:
        return make_without_reuse
    codes, values = instance
    return partial(_recall_code, codes, values)


def _recall_code(
    codes: dict[str, Made], values: Sequence[Any], role: str, make: Callable[[], Made]
) -> Made:
    """Return the code of a role from `codes`, with the values of this query in its slots.

    Code that is missing is made, and added to `codes`.
    """
    found = codes.get(role)
    if found is None:
        found = codes[role] = make()
        return found
    function, text = found
    slots = vars(function).get("slots")
    return (_with_values(function, slots, values) if slots else function), text


def _with_values(function: Any, slots: dict[str, int], values: Sequence[Any]) -> FunctionType:
    """Return the function with the constants of another query.

    It gets its own code, since the interpreter specializes code by the types of its variables.
    """
    own = {name: values[slot] for name, slot in slots.items()}
    made = FunctionType(function.__code__.replace(), function.__globals__ | own, function.__name__)
    vars(made)["written"] = function  # this keeps its text in `linecache`
    return made


_INLINE = (int, float, str, bytes)
"""Classes that generated code tests by their built-in names."""
_WORDS = """
add add_key add_row add_sum_to_avg add_to_avg add_to_sum add_value all alone_left alone_right also
append attempt avg_of Batch before below bounded canonical changed checked closed copied count
counts Crowded Decimal DecimalSum delta DOWN element empty error ExactSum RingSum find find_left
find_right floats found get group groups guard handle inside is_empty kept key keyed keys kind
left left_extreme left_group left_sign left_sum log made Many Mark match_key meetings met new
NO_MATCH note NOTHING nothing old once other out pair pairs part plus plus_value REJECTED repeated
reraise result right right_extreme right_group right_sign right_sum rounds Row row Rows rows
rows_of scaled scaled_sum SEVERAL since size state sum sum_of sums times times_left times_right
times_sum times_value total turn UNIT unordered UP valued was weight Weighted without zero
"""
OWN = frozenset(_WORDS.split())


def is_own(name: str) -> bool:
    """Return True if generated code may have its own variable or function of this name.

    >>> is_own("weight"), is_own("times_0_1"), is_own("row2"), is_own("price"), is_own("_weight")
    (True, True, True, False, False)
    """
    base = name.rstrip("_0123456789")
    return not base or base in OWN or name in OWN


def can_be_variable(name: str) -> bool:
    """Return True if a query may use this name for a variable of generated code.

    >>> can_be_variable("price"), can_be_variable("weight"), can_be_variable("len")
    (True, False, False)
    """
    return not is_own(name) and not hasattr(builtins, name)


def avoid_own_name(wish: str) -> str:
    """Return a similar name that is neither the code's own nor a keyword.

    >>> [avoid_own_name(name) for name in ("price", "weight", "class", "1st")]
    ['price', '_weight', '_class', '_1st']
    """
    is_odd = keyword.iskeyword(wish) or wish[0].isdigit() or is_own(wish)
    return f"_{wish}" if is_odd else wish
