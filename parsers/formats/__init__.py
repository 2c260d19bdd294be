"""Bytes to columns: protocol buffers, XSpace traces, HLO modules."""
