"""Random tensor programs under random legal schedules, checked against NumPy, the interpreter and native code."""
