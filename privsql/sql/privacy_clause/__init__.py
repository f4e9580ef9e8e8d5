"""BigQuery's own syntax of differential privacy goes in: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...); an
ordinary query, and the options of its request, come out.
"""
