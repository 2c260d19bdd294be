"""Generated protocol buffer modules."""
