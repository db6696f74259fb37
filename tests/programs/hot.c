// tiny() is called as fast as the machine can: no budget can watch it all the time.
//
//     hot [SECONDS]
#include "bounded.h"

FUNCTION unsigned long tiny(unsigned long value)
{
    return value * 3 + 1;
}

int main(int argc, char **argv)
{
    unsigned long calls = 0, value = 1;
    bounded(argc, argv);
    uint64_t start = now_ns();
    while (!stop) {
        for (int i = 0; i < 1000; i++)
            value = tiny(value);
        calls += 1000;
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{\"calls\": %lu, \"ns_per_call\": %.3f, \"value\": %lu}\n", calls, seconds * 1e9 / (double)calls, value);
    return 0;
}
