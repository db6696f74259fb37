"""The daemon's view of its host: experiments and the environment."""
