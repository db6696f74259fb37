// Every third call of step is slow: calls in a row depend on each other.
//
//     turns [SECONDS] [CALLS PER SECOND]
#include "bounded.h"

enum { FAST_NS = 20000, SLOW_NS = 60000 };

FUNCTION void step(unsigned long nth)
{
    spin_ns(nth % 3 ? FAST_NS : SLOW_NS);
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    bounded(argc, argv);
    uint64_t pause = 1000000000u / argument(argc, argv, 2, 4000);
    unsigned long calls = 0;
    while (!stop) {
        step(calls++);
        spin_ns(pause);
    }
    printf("{\"calls\": %lu}\n", calls);
    return 0;
}
