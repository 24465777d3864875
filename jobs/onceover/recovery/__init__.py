"""Recovery: rebuilds a pipeline's part of a lost ledger from raw."""
