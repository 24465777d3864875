"""Functions from DataFrame to DataFrame, which parse, interpret and aggregate records, and the Spark session."""
