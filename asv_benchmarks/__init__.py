"""Benchmarks: each workload on the engine, and on a hand-written program for the one query.

rows --> workloads (engine and twin) --> measure, memory --> run --> asv classes, report
"""
