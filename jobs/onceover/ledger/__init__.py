"""The ledger: what was read, landed, counted, found, repaired and certified. The only source of truth about windows.

Every statement of SQL about it stands in this package; functions take an open connection and say which of them
open a transaction of their own. Times are the database's, never this machine's.
"""
