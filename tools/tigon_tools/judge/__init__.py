"""The correctness oracle: a candidate against its reference in float64."""
