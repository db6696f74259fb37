"""What the host itself does to a program's timing, derived by measurement: small experiments, safe in production."""
