"""Detection: judges closed windows by the ledger's numbers and the lengths of files."""
