// One load task of a host experiment, a process of its own:
//   worker KEY=VALUE...      go, page and ready are descriptors: a pipe whose end is the barrier, a shared page, and a
//                            pipe that takes one byte when the task is ready
// Prepares, says that it is ready, waits for the barrier, runs until its end, and writes to standard output one line
// of JSON and then its samples, three int64 each: start or last time, end time, CPU.

#define _GNU_SOURCE
#include "demands.h"
#include "settings.h"
#include "sensors.h"

#include <sys/mman.h>
#include <sys/resource.h>

struct attributes { // sched_setattr(2)
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static void settle(void) // where and how this task runs
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (*task.group) {
        int fd = open(task.group, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
            fail(task.group);
        close(fd);
    }
    if (task.cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(task.cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set))
            fail("cannot pin");
    }
    int fair = task.policy == SCHED_OTHER || task.policy == SCHED_BATCH;
    struct attributes wanted = {.size = sizeof wanted, .policy = (uint32_t)task.policy, .nice = task.nice,
                                .priority = task.policy == SCHED_FIFO || task.policy == SCHED_RR,
                                .runtime = fair ? (uint64_t)task.slice_ns : 0};
    // also without a wish: whoever started us may have stepped back
    if (syscall(SYS_sched_setattr, 0, &wanted, 0) && (task.policy || task.nice || task.slice_ns))
        fail("cannot set the scheduling policy");
    if (task.slack_ns)
        prctl(PR_SET_TIMERSLACK, task.slack_ns);
}

static void run_delay(int64_t *ran, int64_t *waited)
{
    char text[128] = {0};
    int fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
    long long a = 0, b = -1;
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0)
        sscanf(text, "%lld %lld", &a, &b);
    if (fd >= 0)
        close(fd);
    *ran = a;
    *waited = b;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        parse(argv[i]);
    settle();
    stopped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, task.page, 0);
    samples = calloc((size_t)task.capacity, sizeof *samples);
    births = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stopped == MAP_FAILED || births == MAP_FAILED || !samples)
        fail("no memory");
    memset(samples, 1, (size_t)task.capacity * sizeof *samples); // no page fault later
    for (int i = 0; i < task.n_steps; i++)
        if (prepare_step(task.steps[i].kind, task.folder))
            fail("cannot prepare");
    char byte = 'r';
    if (write(task.ready, &byte, 1) != 1 || read(task.go, &byte, 1) < 0)
        fail("no controller");
    if (task.delay_ns)
        sleep_ns(task.delay_ns);

    struct rusage before, after;
    int64_t ran, waited, ran_after, waited_after;
    run_delay(&ran, &waited);
    getrusage(RUSAGE_SELF, &before);
    int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), start = now_ns(), deadline = start + task.seconds_ns;
    if (strcmp(task.sensor, "gaps") == 0)
        watch_gaps(deadline);
    else if (strcmp(task.sensor, "times") == 0)
        time_body(deadline);
    else if (strcmp(task.sensor, "calibrate") == 0)
        calibrate(deadline);
    else
        only_load(deadline);
    int64_t end = now_ns(), used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    getrusage(RUSAGE_SELF, &after);
    run_delay(&ran_after, &waited_after);
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    used += (children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000000ll +
            (children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1000ll;

    for (int i = 0; i < n_births; i++) // children's CPUs go behind the samples
        if (n_samples < task.capacity)
            samples[n_samples++] = births[i];
    printf("{\"start_ns\": %lld, \"end_ns\": %lld, \"cpu_ns\": %lld, \"voluntary\": %ld, \"involuntary\": %ld, "
           "\"waited_ns\": %lld, \"samples\": %lld, \"births\": %d, \"lost\": %lld}\n",
           (long long)start, (long long)end, (long long)used, after.ru_nvcsw - before.ru_nvcsw,
           after.ru_nivcsw - before.ru_nivcsw, waited < 0 ? -1ll : (long long)(waited_after - waited),
           (long long)n_samples, n_births, (long long)lost);
    fwrite(samples, sizeof *samples, (size_t)n_samples, stdout);
    fflush(stdout);
    _exit(ferror(stdout) ? 4 : 0); // the partner's thread goes with us
}
