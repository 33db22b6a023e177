"""Many hands for one errand after the other: worker processes on this machine, or on a Ray cluster."""
