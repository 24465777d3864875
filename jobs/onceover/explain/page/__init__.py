"""The page's answers: pipelines, the strip of windows, trouble, a window, its numbers, runs and actions, for JSON.

Functions that take a connection read one snapshot of the ledger, for at most 3 seconds a statement: their connection
must not be in a transaction. Nothing here writes.
"""
