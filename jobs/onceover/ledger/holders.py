"""Who holds a window, as parts of SQL about windows: one holder or none, until the window's next certificate."""

from __future__ import annotations

from typing import Final

HELD: Final = """
  w.expired_at IS NULL AND NOT EXISTS (SELECT FROM onceover.certificate later
    WHERE later.pipeline = n.pipeline AND later.window_start = n.window_start
      AND later.certificate_id > n.last_certificate)"""
"""Of a row n of `taken_window` and its window w: whether it still counts."""

WITH_HOLDER: Final = """
  LEFT JOIN onceover.taken_window n ON n.pipeline = w.pipeline AND n.window_start = w.window_start
  LEFT JOIN onceover.taking t ON t.taking_id = n.taking_id"""
"""What joins a window w with the row n that may say who holds it, and with its taking t."""

HOLDER: Final = f"""
  CASE WHEN n.taking_id IS NOT NULL AND {HELD} THEN t.who END AS taken_by,
  CASE WHEN n.taking_id IS NOT NULL AND {HELD} THEN t.ticket END AS ticket"""
"""The columns `taken_by` and `ticket` of a window w that is joined WITH_HOLDER; both are NULL if no person holds it."""
