"""A chart parser whose chart is a live query: edit words or the grammar, and the parse follows.

sentence, terminals, rules, operators --chart--> edges --> accepted, derivations --> trees
"""
