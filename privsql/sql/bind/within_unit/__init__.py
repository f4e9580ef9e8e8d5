"""What is within one unit: windows, different rows, differences of its rows."""
