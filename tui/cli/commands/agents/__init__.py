"""What coding agents use: a skill that tells them which command answers what."""
