"""Damage to what bytes mean: messages are changed field by field, and checksums and lengths are made right again."""
