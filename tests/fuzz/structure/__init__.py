"""Damage to what bytes mean: messages are changed field by field, and checksums, lengths and packing are made right again."""
