"""Airflow's tasks: each says who asked, calls one room and shows what came out."""
