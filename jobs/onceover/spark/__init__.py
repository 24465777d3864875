"""DataFrame to DataFrame: records parsed, interpreted and aggregated by Spark, and the session that does it."""
