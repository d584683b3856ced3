#!/bin/sh
exec java -Xmx100m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp '/opt/kafka/libs/*' org.apache.kafka.tools.TopicCommand "$@"
