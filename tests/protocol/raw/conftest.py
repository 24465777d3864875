from tests.integration.lane_fixtures import lanes, spark_session

__all__ = ["lanes", "spark_session"]
