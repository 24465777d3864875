"""Where Onceover meets Airflow: operators, the steps all repair DAGs share, and forms."""
