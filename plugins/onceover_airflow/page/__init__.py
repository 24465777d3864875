"""The page in Airflow's UI: pipelines, windows and repairs, read-only by itself."""
