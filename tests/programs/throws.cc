// C++ exceptions pass through frames: every third call of middle() is left by one. A return probe on middle()
// or thrower() would abort this program.
//
//     throws [SECONDS] [CALLS PER SECOND]
#include <stdexcept>

#include "bounded.h"

static unsigned long calls, thrown, caught;

FUNCTION void thrower(unsigned long number)
{
    spin_ns(5000);
    if (number % 3 == 0) {
        thrown++;
        throw std::runtime_error("every third");
    }
    KEEP_FRAME();
}

FUNCTION void middle(unsigned long number)
{
    thrower(number);
    KEEP_FRAME();
}

FUNCTION void outer(unsigned long number)
{
    try {
        middle(number);
    } catch (const std::runtime_error &) {
        caught++;
    }
}

int main(int argc, char **argv)
{
    bounded(argc, argv);
    uint64_t rest_ns = 1000000000u / argument(argc, argv, 2, 2000);
    while (!stop) {
        outer(calls++);
        sleep_ns(rest_ns);
    }
    printf("{\"calls\": %lu, \"thrown\": %lu, \"caught\": %lu}\n", calls, thrown, caught);
    return caught == thrown ? 0 : 1;
}
