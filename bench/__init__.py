"""Every figure that the README quotes, printed by one command: ./dev bench."""
