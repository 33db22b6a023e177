"""Using the machine well: its arithmetic, its memory, its speed, found out and planned."""
