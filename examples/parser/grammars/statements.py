"""A small programming language: functions of statements, with expressions.

What keeps an edit local is in the rules:

- Lists grow to the right from a word that begins them: `Body -> {`, `Body -> Body Statement`.
  A list of n parts then has n edges, not one for each of the n * n / 2 stretches of it.
- A statement ends with its own `;` or `}`, so nothing reaches over the end of a statement but the
  list that it is in.
- Precedence is no rule: one edge for each stretch that is an expression, not one for each level.
"""

from __future__ import annotations

from examples.parser.grammar import Grammar, rules, terminals
from examples.parser.rows import Operator, Terminal

RULES = rules(
    """
    Program -> Functions }
    Functions -> program Name {
    Functions -> Functions Function
    Function -> function Name Parameters Block
    Parameters -> ( )
    Parameters -> Named )
    Named -> ( Name
    Named -> Named , Name

    Block -> Body }
    Body -> {
    Body -> Body Statement

    Statement -> ;
    Statement -> Block
    Statement -> Call ;
    Statement -> Assignment ;
    Statement -> let Assignment ;
    Statement -> const Name = Expression ;
    Statement -> return ;
    Statement -> return Expression ;
    Statement -> break ;
    Statement -> continue ;
    Statement -> print Arguments ;
    Statement -> assert Expression ;
    Statement -> If
    Statement -> If Else
    Statement -> while Condition Block
    Statement -> do Block while Condition ;
    Statement -> for Name in Expression Block
    Statement -> for ( Assignment ; Expression ; Assignment ) Block
    If -> if Condition Block
    Else -> else Block
    Else -> else If
    Else -> else If Else
    Condition -> ( Expression )

    Assignment -> Place Assigns Expression
    Place -> Name
    Place -> Element
    Place -> Member

    Expression -> Number
    Expression -> Text
    Expression -> true
    Expression -> false
    Expression -> null
    Expression -> Place
    Expression -> Call
    Expression -> List
    Expression -> ( Expression )
    Expression -> ( Expression ? Expression : Expression )
    Element -> Place [ Expression ]
    Member -> Place . Name
    Call -> Place Arguments
    Arguments -> ( )
    Arguments -> Given )
    Given -> ( Expression
    Given -> Given , Expression
    List -> [ ]
    List -> Items ]
    Items -> [ Expression
    Items -> Items , Expression
    """
)

KINDS = terminals(
    f"""
    Name: a b c d e f g h i j k m n p q r s t u v w x y z area count data delta distance index items
    Name: key left length limit line list lower mean name node offset parts price rate ratio result
    Name: right rows scale size state step sum table text time total upper value weight width words
    Number: {" ".join(map(str, range(100)))}
    Text: "" "yes" "no" "none" "north" "south" "first" "last" "red" "green" "blue"
    Assigns: = += -= *= /=
    """
)
"""Kinds of words with many words each."""

PRECEDENCE = (
    ("left", ("or",)),
    ("left", ("and",)),
    ("prefix", ("not",)),
    ("none", ("==", "!=", "<", "<=", ">", ">=")),
    ("left", ("+", "-")),
    ("left", ("*", "/", "%")),
    ("prefix", ("-",)),
    ("right", ("**",)),
)
"""The loosest first."""

OPERATORS = tuple(
    Operator("Expression", word, level, side)
    for level, (side, words) in enumerate(PRECEDENCE, 1)
    for word in words
)


def words_of(category: str) -> list[str]:
    """Return the words of a kind."""
    return [kind.word for kind in KINDS if kind.category == category]


def _fixed() -> list[str]:
    """Return the words that rules need as written: neither a head of a rule nor a kind of word."""
    made = {rule.head for rule in RULES} | {kind.category for kind in KINDS}
    return sorted({part for rule in RULES for part in rule.body} - made)


GRAMMAR = Grammar(
    start="Program",
    rules=RULES,
    terminals=(*KINDS, *(Terminal(word, word) for word in _fixed())),
    operators=OPERATORS,
)
