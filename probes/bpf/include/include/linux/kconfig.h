/* Stand-in for the kernel's header tree: just what bcc's own headers ask for. */
#define CONFIG_BPF_SYSCALL 1
