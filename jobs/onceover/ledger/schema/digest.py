"""The columns of a digest: the number of records, and the sums of the parts of their hashes."""

from __future__ import annotations

from typing import Final

DIGEST: Final = """
  records bigint NOT NULL DEFAULT 0,
  high1 bigint NOT NULL DEFAULT 0, low1 bigint NOT NULL DEFAULT 0,
  high2 bigint NOT NULL DEFAULT 0, low2 bigint NOT NULL DEFAULT 0"""
