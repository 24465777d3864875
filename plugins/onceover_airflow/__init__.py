"""Where Onceover meets Airflow: operators, the steps all repair DAGs share, forms, and a REST client."""
