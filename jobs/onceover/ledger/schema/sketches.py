"""The function that readers and aggregates estimate by: how many values differ, from a sketch of them."""

from __future__ import annotations

from typing import Final

from onceover.model.measures import SKETCH_COMPONENT_BITS, SKETCH_COMPONENTS

# Each component counts linearly (-m ln(1 - bits / m)); the first that is not too full for it, and those after it, hold
# one value in 2^n. A load of 2.5 values a bit, 0.918 of the bits, is where the error is the smallest: 0.8 / sqrt(m).
# It is in the schema that readers may use.
_FULL: Final = int(SKETCH_COMPONENT_BITS * 0.918)
TABLES: Final = f"""
CREATE OR REPLACE FUNCTION aggregates.estimate_distinct(sketch bit varying) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN (
  WITH component AS (
    SELECT n, bit_count(substring(sketch FROM n * {SKETCH_COMPONENT_BITS} + 1 FOR {SKETCH_COMPONENT_BITS})) AS bits
    FROM generate_series(0, {SKETCH_COMPONENTS - 1}) AS n
  ), base AS (SELECT coalesce(min(n) FILTER (WHERE bits <= {_FULL}), {SKETCH_COMPONENTS - 1}) AS n FROM component)
  SELECT round(power(2, base.n) * sum(-{SKETCH_COMPONENT_BITS} * ln(
    1 - least(bits, {SKETCH_COMPONENT_BITS - 1}) / {SKETCH_COMPONENT_BITS}::double precision)))::bigint
  FROM component, base WHERE component.n >= base.n GROUP BY base.n
);
COMMENT ON FUNCTION aggregates.estimate_distinct IS
  'How many values differ, with a standard error of 5 %, by the column _sketch of an approx_count_distinct, or bit_or.';
"""
