"""Protobuf wire bytes of an XSpace to columns: planes, lines, events, stats."""
