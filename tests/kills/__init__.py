"""Flushes of views on Spark while processes are killed at random moments; `make soak` runs it.

A program (`victim.py`) plays a history that a seed decides (`history.py`) and compares its views,
and what they are written to, with plain Python after each flush. Another one (`__main__.py`) kills
Python workers, executors, the JVM and the program itself meanwhile (`killing.py`).
"""
