"""Judges which closed windows are right, from the ledger's numbers and the lengths of files."""
