from tests.integration.lane_fixtures import lanes, over, spark_session
from tests.integration.page_scene import scene

__all__ = ["lanes", "over", "scene", "spark_session"]
