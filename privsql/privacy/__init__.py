"""The mathematics of privacy: laws of noise, sensitivity, events. No SQL, no input or output."""
