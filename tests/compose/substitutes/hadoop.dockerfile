# The embedded stack's Hadoop, started as the published image starts it.
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless
COPY lib /opt/hadoop/lib
COPY hdfs /usr/local/bin/
COPY hadoop.py /opt/starter.py
RUN mkdir --parents /opt/hadoop/etc /opt/hadoop/webapps/hdfs/WEB-INF /opt/hadoop/webapps/datanode/WEB-INF \
    && chmod -R a+rX /opt/hadoop
ENTRYPOINT ["python3", "/opt/starter.py"]
