"""One module per command; each is imported when the command is asked for."""
