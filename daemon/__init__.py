"""The daemon: configuration, controller, loop, worker, store, exporter, lifecycle."""
