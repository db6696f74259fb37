"""The process around the loop: systemd, signals, logs, priority, kill switch, and what requests may cost it."""
