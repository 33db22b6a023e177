"""Commands under fire: killed, cut off from power, given a failing disk, at the calls that they make of the kernel."""
