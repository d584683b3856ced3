"""What capturing costs whoever writes: bulk statements, single rows, and how the log is stored."""
