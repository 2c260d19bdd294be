"""Where a step goes: the account of the steps as a waterfall, and as a report."""
