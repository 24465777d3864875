#!/bin/bash
# The published image's start: as root it becomes `postgres`; an empty folder of data gets a cluster, and the files of
# /docker-entrypoint-initdb.d are run by a server that listens on a socket only.
set -euo pipefail
if [ "$(id -u)" = 0 ]; then
    install --directory --owner=postgres --mode=0700 "${PGDATA%/*}" "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    eval "initdb --username=postgres --pwfile=<(printenv POSTGRES_PASSWORD) $POSTGRES_INITDB_ARGS"
    printf '\nhost all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
    pg_ctl --wait --options="-c listen_addresses='' -c unix_socket_directories=/var/run/postgresql" start
    for file in /docker-entrypoint-initdb.d/*.sql; do
        PGPASSWORD=$POSTGRES_PASSWORD psql --set=ON_ERROR_STOP=1 --no-password --host=/var/run/postgresql \
            --username=postgres --file="$file"
    done
    pg_ctl --wait --mode=fast stop
fi
exec "$@" -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
