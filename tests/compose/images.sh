#!/bin/bash
# Provides the images that Dockerfile and docker-compose.yml name. One that cannot be pulled gets a substitute of the
# same name: Debian 12 with its Python 3.11 below /usr/local, and the servers of the embedded stack, started as the
# published image starts them. Needs root, Docker and debootstrap, and `make setup` before it.
set -euo pipefail
cd "$(dirname "$0")/../.."

LABEL=onceover.substitute=yes # by which `make test-containers` removes what it made
BASE=python:3.11-slim-bookworm
SERVERS=(postgres:18 apache/kafka:4.2.1 apache/hadoop:3.4.1)

is_there() {
    docker image inspect "$1" > /dev/null 2>&1 || docker pull --quiet "$1" > /dev/null 2>&1
}

jars_of() { # links to the locked jars of a part, fetched if they are missing
    mkdir -p "$2"
    .venv/bin/python -c 'import sys
from onceover_local.stack.jars import fetch_class_path
print(fetch_class_path(sys.argv[1], lambda *said: print(*said, file=sys.stderr)))' "$1" \
        | tr : '\n' | xargs cp --target-directory="$2"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if ! is_there "$BASE"; then
    echo "images: $BASE cannot be pulled; making a substitute"
    debootstrap --variant=minbase --include=ca-certificates bookworm "$scratch/debian" > "$scratch/log" \
        || { cat "$scratch/log"; exit 1; }
    DEBIAN_FRONTEND=noninteractive chroot "$scratch/debian" apt-get install --quiet --yes --no-install-recommends \
        python3.11-venv > "$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
    rm -rf "$scratch"/debian/var/cache/apt/archives/*.deb
    # Also what this machine trusts, for a mirror that signs for itself.
    cp /etc/ssl/certs/ca-certificates.crt "$scratch/debian/etc/ssl/certs/"
    chroot "$scratch/debian" python3.11 -m venv /usr/local
    tar -C "$scratch/debian" -c . | docker import --change "LABEL $LABEL" \
        --change "ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt" - "$BASE" > "$scratch/log"
    rm -rf "$scratch/debian"
fi

for image in "${SERVERS[@]}"; do
    is_there "$image" && continue
    echo "images: $image cannot be pulled; making a substitute"
    name=${image#*/}
    name=${name%:*}
    mkdir "$scratch/$name"
    case $name in
        postgres)
            package=$(.venv/bin/python -c 'from onceover_local.stack.postgres import find_binaries
print(find_binaries().parents[1])')
            mkdir "$scratch/$name/site" "$scratch/$name/site/${package##*/}"
            cp -a "$package/pginstall18" "$scratch/$name/site/${package##*/}/"
            cp -a "$package.libs" "$scratch/$name/site/"
            ;;
        kafka) jars_of kafka "$scratch/$name/libs" ;;
        hadoop) jars_of hdfs "$scratch/$name/lib" ;;
    esac
    cp -a tests/compose/substitutes/. "$scratch/$name/"
    docker build --quiet --label "$LABEL" --file "$scratch/$name/$name.dockerfile" --tag "$image" "$scratch/$name" \
        > "$scratch/log" || { cat "$scratch/log"; exit 1; }
done
docker image ls --format '{{.Repository}}:{{.Tag}} {{.Size}}' | grep -F "$(printf '%s\n' "$BASE" "${SERVERS[@]}")"
