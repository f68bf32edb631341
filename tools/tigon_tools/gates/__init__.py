"""Gates that need the interpreter with torch: imports, unit tests, what the machine has."""
