// Functions whose time is spent in known ways, and the truth about it by the thread's own CPU clock.
//
//     splits [SECONDS]
//
// work: about 1 ms on CPU; rest: 1 ms of sleep and little else; both: half a ms each. Pin it beside a busy task and
// work waits for the CPU as well.
#include "bounded.h"

static struct totals { unsigned long calls; double wall, cpu; } totals[3];
static volatile unsigned long sink;

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void burn(double s)
{
    double end = seconds(CLOCK_THREAD_CPUTIME_ID) + s;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 2000; i++)
            sink += i;
}

FUNCTION void work(void) { burn(0.001); }
FUNCTION void rest(void) { sleep_ns(1000000); }
FUNCTION void both(void)
{
    burn(0.0005);
    sleep_ns(500000);
}

int main(int argc, char **argv)
{
    void (*call[])(void) = {work, rest, both};
    bounded(argc, argv);
    for (int i = 0; !stop; i = (i + 1) % 3) {
        double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
        call[i]();
        totals[i].cpu += seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
        totals[i].wall += seconds(CLOCK_MONOTONIC) - wall;
        totals[i].calls++;
    }
    printf("{\"work\": [%lu, %g, %g], \"rest\": [%lu, %g, %g], \"both\": [%lu, %g, %g]}\n",
           totals[0].calls, totals[0].wall, totals[0].cpu, totals[1].calls, totals[1].wall, totals[1].cpu,
           totals[2].calls, totals[2].wall, totals[2].cpu);
    return 0;
}
