"""Shows pipelines to monitoring: metrics of what the ledger says, and the lineage of repairs."""
