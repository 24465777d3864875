# PostgreSQL 18 of the embedded stack's wheel, started as the published image starts it.
FROM python:3.11-slim-bookworm
RUN useradd --system --home-dir /var/lib/postgresql --uid 999 postgres \
    && install --directory --owner=postgres /var/lib/postgresql /docker-entrypoint-initdb.d
COPY site /opt/postgres
COPY postgres.sh /usr/local/bin/docker-entrypoint.sh
RUN ln --symbolic /opt/postgres/*/pginstall18/bin/* /usr/local/bin/ && mkdir --parents /var/run/postgresql \
    && chown postgres /var/run/postgresql && chmod -R a+rX /opt/postgres
ENV PGDATA=/var/lib/postgresql/18/docker
VOLUME /var/lib/postgresql
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
