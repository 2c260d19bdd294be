"""HLO ops: devices, op tables and their sums, roofline, filter."""
