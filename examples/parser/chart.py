"""The parser: queries from a sentence and a grammar to all phrases of the sentence.

    sentence, terminals -> terminal ----+
    sentence, operators -> prefixed ----+
    rules, edges --------> constructed -+-> derivations -> edges -+
    operators, edges ----> operated ----+                         |
    edges, edges --------> combined ----+                         |
             ^                                                    |
             +----------------------------------------------------+

Each query returns derivations: new edges, and the parts of each. New edges are the parts of further
ones, so the whole parser is one fixpoint.

Nothing here is about change. The queries are those of a chart parser that runs once; the library
keeps their results up to date.

Source: [i3ql] section 5. Operators and derivations are additions.
"""

from __future__ import annotations

from examples.parser.keys import (
    begin,
    category,
    end,
    end_and_category,
    end_and_need,
    first,
    itself,
    same,
    start_and_category,
    start_and_operand,
    word,
)
from examples.parser.rows import ANY, Derivation, Edge, Infix, Operator, Rule, Terminal, Token
from examples.parser.tables import Tables
from reactive import Count, Min, Relation, fixpoint


def all_edges(t: Tables) -> Relation[Edge]:
    """Everything that can be found in the sentence."""
    return fixpoint(lambda edges: derivations(t, edges).select(lambda d: d.made))


def derivations(t: Tables, edges: Relation[Edge]) -> Relation[Derivation]:
    """All ways to make an edge of these edges, and of the words."""
    phrases = edges.where(lambda e: not e.needs)
    return (
        terminal(t)
        .union_all(prefixed(t))
        .union_all(constructed(t, phrases))
        .union_all(operated(t, phrases))
        .union_all(combined(edges.where(lambda e: e.needs), phrases))
    )


def terminal(t: Tables) -> Relation[Derivation]:
    """Each word as what it may be."""
    known = t.sentence.join(t.terminals, left_key=word, right_key=word)
    return known.select(lambda token, kind: Derivation(word_edge(token, kind), token))


def constructed(t: Tables, phrases: Relation[Edge]) -> Relation[Derivation]:
    """Begin a rule with a phrase: the new edge needs the rest of the rule, if there is any."""
    found = phrases.join(t.rules, left_key=category, right_key=first)
    return found.select(lambda part, rule: Derivation(rule_edge(part, rule), rule, part))


def combined(active: Relation[Edge], phrases: Relation[Edge]) -> Relation[Derivation]:
    """Extend an active edge by the phrase that it needs next, where it ends."""
    found = active.join(phrases, left_key=end_and_need, right_key=start_and_category)
    bound = found.where(lambda edge, part: part.level >= edge.least)
    return bound.select(lambda edge, part: Derivation(longer_edge(edge, part), None, edge, part))


def prefixed(t: Tables) -> Relation[Derivation]:
    """Begin an operator before its operand: the new edge needs the operand."""
    operators = t.operators.where(lambda o: o.side == "prefix")
    found = t.sentence.join(operators, left_key=word, right_key=word)
    return found.select(lambda token, o: Derivation(prefix_edge(token, o), o))


def operated(t: Tables, phrases: Relation[Edge]) -> Relation[Derivation]:
    """Begin an operator with an operand bound tightly enough: the edge needs the right operand."""
    operators = t.operators.where(lambda o: o.side != "prefix")
    infixes = t.sentence.join(operators, left_key=word, right_key=word).select(Infix)
    found = phrases.join(infixes, left_key=end_and_category, right_key=start_and_operand)
    bound = found.where(lambda part, infix: part.level >= infix.operator.left)
    return bound.select(
        lambda part, infix: Derivation(operator_edge(part, infix), infix.operator, part)
    )


def accepted(t: Tables, edges: Relation[Edge], start: str) -> Relation[Edge]:
    """Return the edges that are the whole sentence; none, if it is not accepted.

    The first gap is the one where no word ends. If there are several, the sentence has a hole, and
    nothing is the whole of it.
    """
    first = t.sentence.anti_join(t.sentence, left_key=begin, right_key=end)
    last = t.sentence.anti_join(t.sentence, left_key=end, right_key=begin)
    first_gap = only(first.select(lambda token: token.start))
    last_gap = only(last.select(lambda token: token.end))
    return (
        edges.where(lambda e: not e.needs and e.category == start)
        .semi_join(first_gap, left_key=begin, right_key=itself)
        .semi_join(last_gap, left_key=end, right_key=itself)
    )


def only(gaps: Relation[int]) -> Relation[int]:
    """Return the gap, if there is one and no other."""
    found = gaps.aggregate(Count(), Min(same))
    return found.where(lambda count, gap: count == 1).select(lambda count, gap: gap)


def word_edge(token: Token, kind: Terminal) -> Edge:
    """Return the edge of a word of a category."""
    return Edge(token.start, token.end, kind.category)


def rule_edge(part: Edge, rule: Rule) -> Edge:
    """Return the first edge of a rule; it is passive if the rule has one part."""
    return Edge(part.start, part.end, rule.head, rule.body[1:])


def prefix_edge(token: Token, operator: Operator) -> Edge:
    """Return the edge of an operator that its operand must follow."""
    needs = (operator.category,)
    return Edge(token.start, token.end, operator.category, needs, operator.level, operator.right)


def operator_edge(part: Edge, infix: Infix) -> Edge:
    """Return the edge of a left operand and its operator."""
    operator = infix.operator
    return Edge(
        part.start,
        infix.token.end,
        part.category,
        (part.category,),
        operator.level,
        operator.right,
    )


def longer_edge(edge: Edge, part: Edge) -> Edge:
    """Return an active edge with one part more; passive, if that was the last."""
    return Edge(edge.start, part.end, edge.category, edge.needs[1:], edge.level, ANY)
