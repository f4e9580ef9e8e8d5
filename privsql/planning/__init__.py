"""A question goes in; a Plan comes out: measurements with their noise, the exact SQL, and the formulas of the
outputs.
"""
