"""On-line detection of changes inside a build: streams of windows, their detectors, and the threshold of alarms."""
