// One behaviour: smooth() takes 5 us and a gamma-distributed rest (shape 4, mean 10 us), skewed to the right
// like most durations, with one mode: there is no border to be found.
//
//     single [SECONDS] [CALLS PER SECOND]
#include <math.h>

#include "bounded.h"

static unsigned long calls;

FUNCTION void smooth(uint64_t duration_ns)
{
    spin_ns(duration_ns);
    calls++;
    KEEP_FRAME();
}

FUNCTION void caller(uint64_t duration_ns)
{
    smooth(duration_ns);
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    uint64_t seed = 88172645463325252u;
    bounded(argc, argv);
    uint64_t step = 1000000000u / argument(argc, argv, 2, 4000);
    uint64_t next = now_ns();
    while (!stop) {
        double product = 1;
        for (int i = 0; i < 4; i++)
            product *= random_unit(&seed);
        caller(5000u + (uint64_t)(-2500.0 * log(product)));
        next += step;
        uint64_t now = now_ns();
        if (now < next)
            spin_ns(next - now);
        else
            next = now;
    }
    printf("{\"calls\": %lu}\n", calls);
    return 0;
}
