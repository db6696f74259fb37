// A program that executes itself again and again, with the timed function called before and after.
#include "steps.h"

static volatile long calls;

FUNCTION void work(void)
{
    calls++;
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    int round = argc > 1 ? atoi(argv[1]) : 0;
    long before = argc > 2 ? atol(argv[2]) : 0;
    char next[16], so_far[24];
    if (round == 0)
        await_line();
    for (int i = 0; i < 20; i++) {
        work();
        pause_us(300);
    }
    if (round < 40) {
        snprintf(next, sizeof next, "%d", round + 1);
        snprintf(so_far, sizeof so_far, "%ld", before + calls);
        execl("/proc/self/exe", argv[0], next, so_far, (char *)NULL);
        return 1;
    }
    printf("{\"work\": %ld}", before + calls);
    said();
    return 8;
}
