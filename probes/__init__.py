"""The kernel side: everything that touches BPF, ELF and /proc."""
