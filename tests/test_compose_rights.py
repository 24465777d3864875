"""docker-compose.yml gives its users of HDFS the rights that they need, and no others."""

from __future__ import annotations

from tests.test_compose import AIRFLOW, SERVICES, environment

from onceover.config.pipeline_tables import StorageTable


def test_compose_users_of_hdfs_are_in_the_group_of_raw() -> None:
    mapping = str(environment("namenode")["HDFS-SITE.XML_hadoop.user.group.static.mapping.overrides"])
    group_of = dict(entry.split("=") for entry in mapping.strip(";").split(";"))
    users = {str(environment(service)["HADOOP_USER_NAME"]) for service in ("ingest", *AIRFLOW)}
    assert users == {"ingest", "airflow"}
    folder = SERVICES["raw-folder"]
    commands = folder["command"][-1].splitlines()
    assert commands == [
        "hdfs dfs -mkdir -p /onceover",
        "hdfs dfs -chown ingest:onceover /onceover",
        "hdfs dfs -chmod 775 /onceover",
    ]
    assert {group_of[user] for user in (*users, "oncall")} == {"onceover"}
    assert group_of[folder["user"]] == group_of[SERVICES["namenode"]["user"]] == "supergroup"
    assert StorageTable().raw_root.startswith("/onceover/")
    for service in ("ingest", "scheduler"):
        assert SERVICES[service]["depends_on"]["raw-folder"] == {"condition": "service_completed_successfully"}
