"""Airflow's tasks: each passes on who asked, calls one room and logs the result."""
