from tests.integration.lane_fixtures import lanes, over, spark_session

__all__ = ["lanes", "over", "spark_session"]
