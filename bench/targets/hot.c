// tiny() is called some 500 million times a second; the work of each 10 ms is written down where others can see.
//
//     hot COUNTER SECONDS        COUNTER: a file of numbers of 8 bytes: calls in all, the start on the clock
//                                CLOCK_MONOTONIC, then the calls of each 10 ms
// With -DWELL_BEGUN the function's first instruction is one that the kernel emulates.
#include "bounded.h"
#include <fcntl.h>
#include <sys/mman.h>

#define STEP_NS 10000000u
#define STEPS 60000

FUNCTION unsigned long tiny(unsigned long value)
{
#ifdef WELL_BEGUN
    __asm__ volatile("push %rbp\n\tpop %rbp");
#endif
    return value * 3 + 1;
}

int main(int argc, char **argv)
{
    char *seconds[] = {argv[0], argc > 2 ? argv[2] : "10", 0};
    bounded(2, seconds);
    int file = open(argc > 1 ? argv[1] : "", O_RDWR);
    size_t size = 8 * (STEPS + 2);
    if (file < 0 || ftruncate(file, (off_t)size))
        return 2;
    volatile uint64_t *counts = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (counts == MAP_FAILED)
        return 2;
    uint64_t start = now_ns();
    counts[1] = start;
    unsigned long value = 1;
    for (int step = 0; step < STEPS && !stop; step++) {
        uint64_t calls = 0;
        while (now_ns() < start + (step + 1) * (uint64_t)STEP_NS) {
            for (int i = 0; i < 1000; i++)
                value = tiny(value);
            calls += 1000;
            counts[0] += 1000;
        }
        counts[step + 2] = calls;
    }
    printf("{\"calls\": %lu, \"value\": %lu}\n", counts[0], value);
    return 0;
}
