from tests.integration.lane_fixtures import lanes, over, spark_session
from tests.onceover.conftest import spark

__all__ = ["lanes", "over", "spark", "spark_session"]
