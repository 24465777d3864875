"""Rebuilds a pipeline's part of a lost ledger from what raw holds."""
