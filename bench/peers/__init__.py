"""What people would use instead, where this machine can have it, measured in one run with ours."""
