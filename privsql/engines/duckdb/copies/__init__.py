"""Tables with many rows a unit go in; stored copies with a rank for each row come out."""
