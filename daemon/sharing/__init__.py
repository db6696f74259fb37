"""What the fleet said to this host, as the forwarder wrote it to a file: untrusted, bounded, checked.

- The document and its checks, both ways: ``document``. The file: ``watcher``.
"""
