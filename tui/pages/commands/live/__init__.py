"""The chips right now: duty, memory and bandwidth, as the runtime reports them."""
