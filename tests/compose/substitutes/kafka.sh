#!/bin/bash
# Kafka's own KafkaDockerWrapper makes server.properties of KAFKA_* and formats an empty folder, as in the published image.
set -euo pipefail
export CLUSTER_ID=${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}
defaults=$(mktemp --directory)
touch "$defaults/server.properties"
printf 'rootLogger:\n  level: INFO\n' | tee "$defaults/tools-log4j2.yaml" > "$defaults/log4j2.yaml"
said=$(java -cp '/opt/kafka/libs/*' kafka.docker.KafkaDockerWrapper setup --default-configs-dir "$defaults" \
    --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config 2>&1) \
    || grep -i "already formatted" <<< "$said" || { echo "$said"; exit 1; }
exec java $KAFKA_HEAP_OPTS -cp '/opt/kafka/libs/*' kafka.Kafka /opt/kafka/config/server.properties
