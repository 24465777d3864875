# One image for ingest, Spark's master and workers, and Airflow's processes: Python 3.11, Java 17, the locked packages,
# the project. `make test-containers` builds it: last on Docker 20.10.24, and not on the published base image.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless libnss-wrapper procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 50000 onceover \
    && install --directory --owner=onceover /var/lib/airflow /var/lib/onceover

WORKDIR /opt/onceover
ENV PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1 \
    ONCEOVER_HOME=/opt/onceover \
    ONCEOVER_LOCAL=/var/lib/onceover \
    SPARK_HOME=/usr/local/lib/python3.11/site-packages/pyspark

# The lock alone first: a change of code does not install 180 packages again. It names every package: none is resolved.
COPY requirements/base.txt requirements/
RUN pip install --require-hashes --no-deps -r requirements/base.txt

COPY pyproject.toml ./
COPY jobs jobs
COPY plugins plugins
COPY local local
COPY demo demo
COPY dags dags
COPY pipelines pipelines
COPY deploy/entrypoint.sh deploy/
# Editable: docker-compose.yml mounts the folders over these copies, and what it mounts is what runs. Readable: of a
# clone that was made under umask 077 only root could read the copies.
RUN chmod -R a+rX . && pip install --no-deps --no-build-isolation -e .
RUN python -m onceover.cli.make_class_archive

USER onceover
ENTRYPOINT ["/opt/onceover/deploy/entrypoint.sh"]
CMD ["onceover", "--help"]
