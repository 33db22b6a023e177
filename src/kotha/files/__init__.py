"""What is read from a disk and written to it: looks, tables, places, and files that are whole or not at all."""
