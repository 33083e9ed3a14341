"""Programs made at random, of a given length, in the language of `grammars/statements.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from random import Random

from examples.parser.grammars.statements import OPERATORS, words_of
from examples.parser.rows import ANY

Words = list[str]

NAMES, NUMBERS, TEXTS, ASSIGNS = map(words_of, ("Name", "Number", "Text", "Assigns"))

SHORTEST = 10
"""A program with one empty function."""
STATEMENTS, INNER, ITEMS = (4, 8), (1, 3), (0, 3)
"""The numbers of statements of a function, of statements of a block, and of items of a list."""
DEPTH = 2
"""The nesting depth of blocks and expressions."""


def program(length: int, seed: int) -> Words:
    """Return the words of a program.

    Parameters
    ----------
    length: number of words, `SHORTEST` or more.

    >>> words = program(200, seed=1)
    >>> len(words), words[0], words[-1]
    (200, 'program', '}')
    """
    return _Writer(Random(seed)).program(length)


class _Writer:
    """Writes each part of the language as a list of words."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def program(self, length: int) -> Words:
        """Return a program of `length` words; the last function fills the rest."""
        functions = _fitting(self._function, length - SHORTEST)
        left = length - SHORTEST - len(functions)
        body = _fitting(lambda: self._statement(DEPTH), left)
        body += [";"] * (left - len(body))
        last = ["function", self._name(), "(", ")", "{", *body, "}"]
        return ["program", self._name(), "{", *functions, *last, "}"]

    def _function(self) -> Words:
        names = self._list(lambda: [self._name()])
        body = self._block(DEPTH, STATEMENTS)
        return ["function", self._name(), "(", *names, ")", *body]

    def _block(self, depth: int, bounds: tuple[int, int] = INNER) -> Words:
        statements = (self._statement(depth) for _ in range(self._random.randint(*bounds)))
        return ["{", *chain.from_iterable(statements), "}"]

    def _statement(self, depth: int) -> Words:
        simple = [self._assignment, self._let, self._call, self._return, self._print]
        nested = [self._if, self._while, self._do, self._for, self._count]
        if depth and self._random.random() < 0.3:
            return self._random.choice(nested)(depth - 1)
        return [*self._random.choice(simple)(), ";"]

    def _assignment(self) -> Words:
        return [*self._place(1), self._random.choice(ASSIGNS), *self._expression()]

    def _let(self) -> Words:
        word = self._random.choice(["let", "const"])
        return [word, self._name(), "=", *self._expression()]

    def _return(self) -> Words:
        found = [["return", *self._expression()], ["assert", *self._expression()], ["break"], []]
        return self._random.choice(found)

    def _print(self) -> Words:
        return ["print", "(", *self._list(self._expression), ")"]

    def _if(self, depth: int) -> Words:
        words = ["if", *self._condition(), *self._block(depth)]
        match self._random.randrange(3):
            case 0:
                return words
            case 1:
                return [*words, "else", *self._block(depth)]
            case _:
                return [*words, "else", *self._if(depth)]

    def _while(self, depth: int) -> Words:
        return ["while", *self._condition(), *self._block(depth)]

    def _do(self, depth: int) -> Words:
        return ["do", *self._block(depth), "while", *self._condition(), ";"]

    def _for(self, depth: int) -> Words:
        return ["for", self._name(), "in", *self._expression(), *self._block(depth)]

    def _count(self, depth: int) -> Words:
        test = self._expression()
        steps = [*self._assignment(), ";", *test, ";", *self._assignment()]
        return ["for", "(", *steps, ")", *self._block(depth)]

    def _condition(self) -> Words:
        return ["(", *self._expression(), ")"]

    def _expression(self, depth: int = DEPTH, least: int = ANY) -> Words:
        """Return an expression that binds at least so tightly."""
        if not depth or self._random.random() < 0.3:
            return self._operand(depth)
        fitting = [operator for operator in OPERATORS if operator.level >= least]
        if not fitting:
            return self._operand(depth)
        o = self._random.choice(fitting)
        left = [] if o.side == "prefix" else self._expression(depth - 1, o.left)
        return [*left, o.word, *self._expression(depth - 1, o.right)]

    def _operand(self, depth: int) -> Words:
        if not depth or self._random.random() < 0.6:
            names, others = [self._name() for _ in range(4)], [self._random.choice(TEXTS), "true"]
            return [self._random.choice([*names, *self._random.choices(NUMBERS, k=3), *others])]
        return self._random.choice([self._place, self._call_of, self._brackets, self._items])(depth)

    def _place(self, depth: int) -> Words:
        words = [self._name()]
        match self._random.randrange(4):
            case 0:
                return [*words, ".", self._name()]
            case 1:
                return [*words, "[", *self._expression(depth - 1), "]"]
            case _:
                return words

    def _call(self) -> Words:
        return self._call_of(DEPTH)

    def _call_of(self, depth: int) -> Words:
        arguments = self._list(lambda: self._expression(depth - 1))
        return [*self._place(1), "(", *arguments, ")"]

    def _brackets(self, depth: int) -> Words:
        test, one, other = (self._expression(depth - 1) for _ in range(3))
        long = self._random.random() < 0.2
        return ["(", *test, *(["?", *one, ":", *other] if long else []), ")"]

    def _items(self, depth: int) -> Words:
        return ["[", *self._list(lambda: self._expression(depth - 1)), "]"]

    def _list(self, item: Callable[[], Words]) -> Words:
        """Items with commas between them."""
        items = [item() for _ in range(self._random.randint(*ITEMS))]
        return _joined(items)

    def _name(self) -> str:
        return self._random.choice(NAMES)


def _joined(items: Iterable[Words]) -> Words:
    words = [word for item in items for word in [",", *item]]
    return words[1:]


def _fitting(part: Callable[[], Words], room: int) -> Words:
    """Return parts, until the next one does not fit."""
    words: Words = []
    while len(words) + len(made := part()) <= room:
        words += made
    return words
