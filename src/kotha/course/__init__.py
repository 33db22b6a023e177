"""The course: the worksheet, its exercises, and lessons that small models answer on the spot."""
