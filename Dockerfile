# One image for ingest and for Airflow's processes: Python 3.11, Java 17, the locked packages, the project.
# Not built where this project is developed (there is no container engine); a first version, see docker-compose.yml.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 50000 onceover

WORKDIR /opt/onceover
ENV PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1 \
    ONCEOVER_HOME=/opt/onceover \
    SPARK_HOME=/usr/local/lib/python3.11/site-packages/pyspark

# The lock alone first: a change of code does not install 170 packages again.
COPY requirements/base.txt requirements/
RUN pip install --require-hashes -r requirements/base.txt

COPY pyproject.toml ./
COPY jobs jobs
COPY plugins plugins
COPY dags dags
COPY pipelines pipelines
RUN pip install --no-deps --no-build-isolation -e . && mkdir /var/lib/airflow && chown onceover /var/lib/airflow
RUN python -m onceover.spark.make_class_archive

USER onceover
CMD ["onceover", "--help"]
