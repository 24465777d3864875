# The embedded stack's Kafka, started as the published image starts it.
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless
RUN useradd --create-home --uid 1000 appuser \
    && install --directory --owner=appuser /opt/kafka/config /opt/kafka/bin /var/lib/kafka/data /mnt/shared/config
COPY libs /opt/kafka/libs
COPY kafka.sh /opt/kafka/bin/start.sh
COPY kafka-broker-api-versions.sh /opt/kafka/bin/
RUN chmod -R a+rX /opt/kafka
USER appuser
VOLUME /var/lib/kafka/data
CMD ["/opt/kafka/bin/start.sh"]
