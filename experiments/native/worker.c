// One load task of a host experiment, a process of its own:
//   worker KEY=VALUE...      go, page and ready are descriptors: a pipe whose end is the barrier, a shared page, and a
//                            pipe that takes one byte when the task is ready
// Prepares, says that it is ready, waits for the barrier, runs until its end, and writes to standard output one line
// of JSON and then its samples, three int64 each: start or last time, end time, CPU.
//
// In the sampling loops there is no system call but those of the load itself: a task that enters the kernel is
// preempted there, and the measurement would move what it measures. Clocks come from the vDSO.

#define _GNU_SOURCE
#include "demands.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { MOST_STEPS = 16 };
enum random { FIXED, UNIFORM, EXPONENTIAL };
enum stop { NEVER, CHANGED };

struct step { enum kind kind; int64_t amount; enum random random; };
struct sample { int64_t start, end, cpu; };
struct attributes { // sched_setattr(2)
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static struct {
    const char *sensor, *group, *folder;
    struct step steps[MOST_STEPS];
    int n_steps, cpu, nice, policy, window, final_iterations, forks, go, page, ready;
    enum stop stop;
    int64_t seconds_ns, delay_ns, slice_ns, slack_ns, threshold_ns, iterations, capacity, fork_units;
} task = {.sensor = "none", .group = "", .folder = "/tmp", .cpu = -1, .seconds_ns = 1000000000,
          .threshold_ns = 300000, .capacity = 65536, .window = 8};

static volatile uint32_t *stopped;
static struct sample *samples;
static int64_t n_samples, lost;

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(4);
}

static void record(int64_t start, int64_t end)
{
    if (n_samples == task.capacity) {
        lost++;
        return;
    }
    unsigned cpu = 0;
    getcpu(&cpu, NULL); // vDSO
    samples[n_samples++] = (struct sample){start, end, cpu};
}

static int over(int64_t now, int64_t deadline) { return now >= deadline || *stopped; }

static void watch_gaps(int64_t deadline)
{
    int64_t last = now_ns(), now;
    do {
        now = now_ns();
        if (now - last > task.threshold_ns)
            record(last, now);
        last = now;
    } while (!over(now, deadline));
}

static int64_t drawn(const struct step *step)
{
    double u = ((double)(next_random() >> 11) + 0.5) / 9007199254740992.0;
    switch (step->random) {
    case UNIFORM: return (int64_t)(u * (double)step->amount);
    case EXPONENTIAL: return (int64_t)(-log(u) * (double)step->amount);
    default: return step->amount;
    }
}

static void do_body(void)
{
    for (int i = 0; i < task.n_steps; i++)
        do_step(task.steps[i].kind, drawn(&task.steps[i]));
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

// Three running outside median +- max(4 MAD, 15 %) of the window before them
static int changed(void)
{
    int64_t values[64], deviations[64];
    int n = task.window;
    if (n_samples < n + 3)
        return 0;
    struct sample *before = samples + n_samples - 3 - n;
    for (int i = 0; i < n; i++)
        values[i] = before[i].end - before[i].start;
    int64_t middle = median(values, n);
    for (int i = 0; i < n; i++)
        deviations[i] = llabs(values[i] - middle);
    int64_t allowed = 4 * median(deviations, n), least = middle * 15 / 100;
    if (allowed < least)
        allowed = least;
    for (int i = 0; i < 3; i++) {
        struct sample *s = samples + n_samples - 3 + i;
        if (llabs(s->end - s->start - middle) <= allowed)
            return 0;
    }
    return 1;
}

// A task that starts others beside it, one at a time: where does the kernel put them?
static pid_t child;
static struct sample *births; // shared with the children: start CPU, end CPU, duration
static int n_births;

static void maybe_fork(void)
{
    if (child && waitpid(child, NULL, WNOHANG) == 0)
        return;
    child = 0;
    if (n_births == task.forks)
        return;
    struct sample *birth = &births[n_births++];
    child = fork();
    if (child == 0) {
        unsigned cpu = 0;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        getcpu(&cpu, NULL);
        int64_t start = now_ns();
        integer(task.fork_units);
        *birth = (struct sample){start, now_ns(), cpu};
        _exit(0);
    }
}

static void time_body(int64_t deadline)
{
    int64_t left = -1; // iterations to go since the change
    for (int64_t i = 0; task.iterations == 0 || i < task.iterations; i++) {
        int64_t start = now_ns();
        if (over(start, deadline) || left == 0)
            break;
        if (task.forks)
            maybe_fork();
        do_body();
        int64_t end = now_ns();
        record(start, end);
        if (left > 0)
            left--;
        else if (task.stop == CHANGED && changed())
            left = task.final_iterations;
    }
    if (child)
        waitpid(child, NULL, 0);
}

static void only_load(int64_t deadline)
{
    int64_t done = 0;
    if (task.n_steps == 0)
        while (!over(now_ns(), deadline))
            continue;
    else
        while (!over(now_ns(), deadline) && (task.iterations == 0 || done < task.iterations)) {
            do_body();
            done++;
        }
    n_samples = 0;
}

// Units that take amount ns of CPU time: by CPU time, so that a competitor on the same CPU does not matter
static int64_t cpu_of(enum kind kind, int64_t units)
{
    int64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    do_step(kind, units);
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static int64_t median_cpu(enum kind kind, int64_t units, int n)
{
    int64_t values[16];
    for (int i = 0; i < n; i++)
        values[i] = cpu_of(kind, units);
    return median(values, n);
}

static void calibrate(int64_t deadline)
{
    enum kind kind = task.steps[0].kind;
    int64_t wanted = task.steps[0].amount, units = 16;
    while (median_cpu(kind, units, 3) < wanted / 4 && !over(now_ns(), deadline))
        units *= 2;
    for (int i = 0; i < 6 && !over(now_ns(), deadline); i++) {
        int64_t taken = median_cpu(kind, units, 9);
        double factor = (double)wanted / (double)(taken > 0 ? taken : 1);
        int64_t next = (int64_t)((double)units * factor + 0.5);
        record(units, taken);
        units = next > 0 ? next : 1;
        if (factor > 0.998 && factor < 1.002)
            break;
    }
    record(units, median_cpu(kind, units, 9)); // the last pair is the result
}

static void parse_step(char *text)
{
    struct step *step = &task.steps[task.n_steps++];
    char *amount = strchr(text, ':'), *random = amount ? strchr(amount + 1, ':') : NULL;
    if (!amount || task.n_steps > MOST_STEPS) {
        errno = EINVAL;
        fail(text);
    }
    *amount++ = 0;
    if (random)
        *random++ = 0;
    step->amount = strtoll(amount, NULL, 10);
    step->random = !random ? FIXED : strcmp(random, "uniform") == 0 ? UNIFORM : EXPONENTIAL;
    for (step->kind = 0; step->kind < KINDS && strcmp(text, KIND_NAMES[step->kind]) != 0; step->kind++)
        continue;
    if (step->kind == KINDS) {
        errno = EINVAL;
        fail(text);
    }
}

static void parse(char *argument)
{
    char *value = strchr(argument, '=');
    if (!value) {
        errno = EINVAL;
        fail(argument);
    }
    *value++ = 0;
    int64_t number = strtoll(value, NULL, 10);
    const struct { const char *name; int *whole; int64_t *large; const char **text; } keys[] = {
        {"sensor", NULL, NULL, &task.sensor},          {"group", NULL, NULL, &task.group},
        {"folder", NULL, NULL, &task.folder},          {"cpu", &task.cpu, NULL, NULL},
        {"nice", &task.nice, NULL, NULL},              {"policy", &task.policy, NULL, NULL},
        {"partner", &partner_cpu, NULL, NULL},         {"window", &task.window, NULL, NULL},
        {"final", &task.final_iterations, NULL, NULL}, {"forks", &task.forks, NULL, NULL},
        {"go", &task.go, NULL, NULL},                  {"page", &task.page, NULL, NULL},
        {"ready", &task.ready, NULL, NULL},
        {"seconds_ns", NULL, &task.seconds_ns, NULL},  {"delay_ns", NULL, &task.delay_ns, NULL},
        {"slice_ns", NULL, &task.slice_ns, NULL},      {"slack_ns", NULL, &task.slack_ns, NULL},
        {"threshold_ns", NULL, &task.threshold_ns, NULL}, {"iterations", NULL, &task.iterations, NULL},
        {"capacity", NULL, &task.capacity, NULL},      {"fork_units", NULL, &task.fork_units, NULL},
    };
    if (strcmp(argument, "step") == 0)
        return parse_step(value);
    if (strcmp(argument, "seed") == 0) {
        random_state ^= (uint64_t)number * 2654435761u;
        return;
    }
    if (strcmp(argument, "changed") == 0) {
        task.stop = number ? CHANGED : NEVER;
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(argument, keys[i].name) == 0) {
            if (keys[i].whole)
                *keys[i].whole = (int)number;
            else if (keys[i].large)
                *keys[i].large = number;
            else
                *keys[i].text = value;
            return;
        }
    errno = EINVAL;
    fail(argument);
}

static void settle(void) // where and how this task runs
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
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
