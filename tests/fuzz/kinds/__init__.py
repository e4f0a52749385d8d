"""Programs of other kinds than tensor expressions under block schedules; each with a reference of its own in NumPy."""
