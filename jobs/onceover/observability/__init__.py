"""Observability: metrics from the ledger, and the lineage of repairs."""
