"""What the card beside the ops needs: its texts, fetched and kept."""
