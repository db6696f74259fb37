// Probed functions within probed functions: outer() calls inner() forty times within some ten microseconds, light()
// calls it once in some ten times as long.
//
//     nests [SECONDS]
#include "bounded.h"

static unsigned long outers, lights, inners;

FUNCTION void inner(void)
{
    inners++;
    KEEP_FRAME();
}

// In a register: a sum in memory takes 0.3 or 0.5 ns a round, as the CPU happens to guess where it is stored.
FUNCTION void work(unsigned rounds)
{
    unsigned long sum = 1;
    for (unsigned i = 0; i < rounds; i++) {
        sum = sum * 3 + i;
        __asm__ volatile("" : "+r"(sum));
    }
    KEEP_FRAME();
}

FUNCTION void outer(void)
{
    outers++;
    work(15000);
    for (int i = 0; i < 40; i++)
        inner();
    KEEP_FRAME();
}

FUNCTION void light(void)
{
    lights++;
    work(50000);
    inner();
    KEEP_FRAME();
}

// As much work as in light(), and nothing within.
FUNCTION void plain(void)
{
    work(50000);
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    bounded(argc, argv);
    while (!stop) {
        outer();
        light();
        plain();
        sleep_ns(500000);
    }
    printf("{\"outer\": %lu, \"light\": %lu, \"inner\": %lu}\n", outers, lights, inners);
    return 0;
}
