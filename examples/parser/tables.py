"""The tables of the parser. Users edit these; everything else follows from them."""

from __future__ import annotations

from examples.parser.keys import itself
from examples.parser.rows import Operator, Rule, Terminal, Token
from reactive import Database, Table


class Tables:
    """A sentence and a grammar. Each row is there once: a second one would tell nothing more."""

    def __init__(self, db: Database) -> None:
        self.sentence: Table[Token] = db.table(Token, name="sentence", key=itself)
        self.terminals: Table[Terminal] = db.table(Terminal, name="terminals", key=itself)
        self.rules: Table[Rule] = db.table(Rule, name="rules", key=itself)
        self.operators: Table[Operator] = db.table(Operator, name="operators", key=itself)
