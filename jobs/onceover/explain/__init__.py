"""Explanation: everything the ledger and files say about a window, in words and as values."""
