"""A Measurement: noise and its price in one object, as a closed union of classes."""

from __future__ import annotations

from privsql.planning.measurements.gaussian_noise import GaussianMeasurement
from privsql.planning.measurements.label_selection import SelectionMeasurement
from privsql.planning.measurements.laplace_noise import LaplaceMeasurement
from privsql.planning.measurements.partition_selection import KeyMeasurement
from privsql.planning.measurements.quantile_selection import QuantileMeasurement

CellMeasurement = LaplaceMeasurement | GaussianMeasurement  # every cell plus noise
Measurement = CellMeasurement | SelectionMeasurement | KeyMeasurement | QuantileMeasurement
