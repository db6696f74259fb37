// One pid, several lifetimes: each generation works for its share of the time, prints its counts, and execs
// the same program again; between calls it also forks children that do the same work without exec.
//
//     execs [SECONDS] [GENERATIONS]
#include <sys/wait.h>

#include "bounded.h"

static unsigned long calls, children;

FUNCTION void generation_work(void)
{
    spin_ns(10000);
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    unsigned long seconds = bounded(argc, argv), generations = argument(argc, argv, 2, 3);
    uint64_t end = now_ns() + seconds * 1000000000u / (generations ? generations : 1);
    while (!stop && now_ns() < end) {
        generation_work();
        if (calls++ % 256 == 0) {
            pid_t child = fork();
            if (child == 0) {
                generation_work();
                _exit(0);
            }
            if (child > 0) {
                waitpid(child, NULL, 0);
                children++;
            }
        }
        sleep_ns(500000);
    }
    printf("{\"generations_left\": %lu, \"generation_work\": %lu, \"children\": %lu}\n", generations - 1,
           calls + children, children);
    fflush(stdout);
    if (!stop && generations > 1) {
        char left[24], rest[24];
        snprintf(rest, sizeof(rest), "%lu", seconds - seconds / generations);
        snprintf(left, sizeof(left), "%lu", generations - 1);
        char *next[] = {argv[0], rest, left, NULL};
        execv("/proc/self/exe", next);
        perror("execs");
        return 1;
    }
    return 0;
}
