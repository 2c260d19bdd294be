"""What two compiled programs differ by, and what is expected of one, as reports."""
