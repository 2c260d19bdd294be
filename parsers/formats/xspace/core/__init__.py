"""The decoder: its functions, the compiled loops behind them, and the fallback for where these are not built."""
