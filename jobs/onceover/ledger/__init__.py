"""The ledger: all reads, landings, counts, findings, repairs and certificates. The only source of truth about windows.

Every SQL statement about windows is in this package. Functions take an open connection; those that open a transaction
of their own say so. Times are the database's, never this machine's.
"""
