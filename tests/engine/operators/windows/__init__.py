"""Windows over ordered partitions."""
