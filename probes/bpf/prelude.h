/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#include <uapi/linux/ptrace.h>
#include <uapi/linux/bpf_perf_event.h>
#define true 1
#define false 0
