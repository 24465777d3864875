"""The ledger's tables, in the order in which they refer to each other, each with a sentence on what it is for."""
