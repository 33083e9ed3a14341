"""Queries that differ from a measured one by one thing, each beside a twin generated with it.

cell --> query, twin (texts of the same pieces) --> measure --> cliffs, the command
"""
