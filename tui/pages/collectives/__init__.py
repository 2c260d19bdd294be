"""The page of collectives: what moves between cores, what compute hides of it, and who comes late."""
