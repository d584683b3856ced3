"""Metadata and data messages for Kafka, in JSON and Avro: written from changes, and read back.

Pure: no I/O, no clock.
"""
