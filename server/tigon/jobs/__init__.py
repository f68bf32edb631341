"""Running `tigon_tools` jobs in the interpreter that has torch, from a process that has not."""
