"""What the reports and screens of several pages share: their quantities, and who holds memory."""
