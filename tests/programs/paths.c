// z is fast over a->b->c->z and mixed (60 % fast, 40 % slow) over a->b->z and a->c->z: the single edge b->c
// tells its two behaviours apart.
//
//     paths [SECONDS] [CALLS PER SECOND]
#include "bounded.h"

enum { FAST_NS = 20000, SLOW_NS = 60000, SLOW_PERCENT = 40 };

static uint64_t seed = 88172645463325252u;
static unsigned long abcz, abz, acz, slow;

FUNCTION void z(uint64_t duration_ns)
{
    spin_ns(duration_ns);
    KEEP_FRAME();
}

static inline uint64_t mixed(void)
{
    if (random_next(&seed) >> 33 < ((uint64_t)SLOW_PERCENT << 31) / 100) {
        slow++;
        return SLOW_NS;
    }
    return FAST_NS;
}

FUNCTION void c(int from_b)
{
    if (from_b) {
        abcz++;
        z(FAST_NS);
    } else {
        acz++;
        z(mixed());
    }
    KEEP_FRAME();
}

FUNCTION void b(int over_c)
{
    if (over_c) {
        c(1);
    } else {
        abz++;
        z(mixed());
    }
    KEEP_FRAME();
}

FUNCTION void a(unsigned which)
{
    if (which == 0)
        b(1);
    else if (which == 1)
        b(0);
    else
        c(0);
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    bounded(argc, argv);
    uint64_t step = 1000000000u / argument(argc, argv, 2, 4000);
    uint64_t next = now_ns();
    while (!stop) {
        a((unsigned)(random_next(&seed) >> 40) % 3);
        next += step;
        uint64_t now = now_ns();
        if (now < next)
            spin_ns(next - now);
        else
            next = now; // put off by others: do not catch up in a burst
    }
    printf("{\"calls\": %lu, \"abcz\": %lu, \"abz\": %lu, \"acz\": %lu, \"slow\": %lu}\n", abcz + abz + acz, abcz, abz,
           acz, slow);
    return 0;
}
