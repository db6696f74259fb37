#ifndef SPECMINE_PERF_EVENT
#define SPECMINE_PERF_EVENT
#include <uapi/linux/ptrace.h>
struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};
#endif
