"""The configuration: one frozen tree (``tree``), how it is read (``loader``, ``fields``), what a reload may change."""
