"""The grammar and the sentence of the paper.

Source: [i3ql] section 5, figures 8 and 9.
"""

from __future__ import annotations

from examples.parser.grammar import Grammar, rules, terminals

SENTENCE = "colorless green ideas sleep furiously"

GRAMMAR = Grammar(
    start="S",
    rules=rules(
        """
        S -> NP VP
        NP -> Noun
        NP -> AdjP Noun
        VP -> Verb
        VP -> Verb Adv
        AdjP -> Adj
        AdjP -> Adj AdjP
        """
    ),
    terminals=terminals(
        """
        Noun: green ideas sleep
        Verb: green sleep
        Adj: colorless green
        Adv: furiously
        """
    ),
)
