"""What was decided, for people (tables) and for programs (JSON)."""
