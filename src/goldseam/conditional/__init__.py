"""A cell given the others, nonlinearly: the third source of evidence."""
