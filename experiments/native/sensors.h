// The loops that measure: gaps of the clock, times of iterations, units for a CPU time. No system call in them but those
// of the load itself: a task that enters the kernel is preempted there, and the measurement would move what it measures.

#include <math.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct sample { int64_t start, end, cpu; };

static volatile uint32_t *stopped;
static struct sample *samples;
static int64_t n_samples, lost;

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
