"""The course: worksheets, exercises, and lessons that train and compare small models."""
