"""Onceover: find windows whose near-real-time aggregates are wrong, rebuild them from raw, prove the result."""

__version__ = "0.1.0"
