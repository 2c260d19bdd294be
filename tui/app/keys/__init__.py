"""What keys do on the tabs: actions, searches, and what Escape closes."""
