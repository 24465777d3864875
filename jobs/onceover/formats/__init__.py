"""What a Kafka record holds besides plain JSON, text and bytes, read in Python."""
