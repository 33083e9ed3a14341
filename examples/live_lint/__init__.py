"""An incremental linter for Python code that works across modules.

Every file becomes facts, every fact a row, every check a query over the tables of facts. Saving a
file replaces its rows in one transaction, and all findings are up to date.

    file --extract--> facts --project--> tables --checks--> findings
"""
