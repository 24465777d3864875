#!/bin/sh
# Gives a name to a user without an entry in passwd (a container started by a number): Java's login needs one. Refuses a
# project that this user cannot read.
set -e
if ! getent passwd "$(id -u)" > /dev/null; then
    entries=$(mktemp)
    { cat /etc/passwd; echo "uid$(id -u):x:$(id -u):$(id -g)::${HOME:-/}:/bin/sh"; } > "$entries"
    export LD_PRELOAD=libnss_wrapper.so NSS_WRAPPER_PASSWD="$entries" NSS_WRAPPER_GROUP=/etc/group
fi
unreadable=$(cd /opt/onceover && find dags jobs local demo plugins pipelines \( -type d -o -type f -name '*.py' \
    -o -type f -name '*.toml' \) ! -readable -print -quit 2> /dev/null) || true
if [ -n "$unreadable" ]; then # mounted from a clone that was made under umask 077
    echo "onceover: uid $(id -u) cannot read $unreadable; in the clone, run" \
        "\`chmod -R a+rX dags jobs local demo plugins pipelines\`" >&2
    exit 78
fi
exec "$@"
