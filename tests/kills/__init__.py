"""Flushes of views on Spark while processes are killed at random moments; `make soak` runs it.

A program (`victim.py`) plays the history of a seed (`history.py`) and compares its views,
and their written files, with plain Python after each flush. Meanwhile `__main__.py` kills
Python workers, executors, the JVM and the program itself (`killing.py`).
"""
