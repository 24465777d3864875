from tests.integration.lane import lanes, spark_session

__all__ = ["lanes", "spark_session"]
