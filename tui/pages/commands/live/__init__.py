"""The chips right now: duty, memory and bandwidth, as the runtime tells them."""
