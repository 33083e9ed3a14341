"""Comprehensions over relations against Python: `python -m tests.comprehensions 1000` plays texts.

`texts` draws functions of all forms, `play` makes them queries, changes the tables and compares
what the views hold after every commit with what Python computes of the same text over shuffled
lists.
"""
