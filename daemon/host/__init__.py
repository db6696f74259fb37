"""The host seen from the daemon: experiments and the environment."""
