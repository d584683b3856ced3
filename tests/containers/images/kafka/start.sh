#!/bin/sh
# Each KAFKA_SOME_SETTING is the broker's some.setting; the folder of data is made when there is none.
set -euf # the class path has a star that is Java's
settings=/opt/kafka/config/server.properties
env | sed -n 's/^KAFKA_//p' | while IFS='=' read -r name value; do
    printf '%s=%s\n' "$(printf '%s' "$name" | tr 'A-Z_' 'a-z.')" "$value"
done >"$settings"
echo log.dirs=/var/lib/kafka/data >>"$settings"
java='java -Xmx300m -XX:+UseSerialGC -cp /opt/kafka/libs/*'
[ -e /var/lib/kafka/data/meta.properties ] ||
    $java kafka.tools.StorageTool format -t 4L6g3nShT-eMCtK--X86sw -c "$settings"
exec $java kafka.Kafka "$settings"
