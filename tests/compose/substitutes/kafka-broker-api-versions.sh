#!/bin/sh
# Asks a broker a question, as the published image's tool of this name does; that tool's jar is not locked.
exec java -Xmx64m -cp '/opt/kafka/libs/*' kafka.admin.ConfigCommand "$@" --entity-type brokers --entity-default --describe
