// Probed functions within probed functions: outer() calls inner() forty times within some ten microseconds, light()
// calls it once in some ten times as long.
//
//     nests [SECONDS]
#include "bounded.h"

static unsigned long outers, lights, inners;
static volatile unsigned sink;

FUNCTION void inner(void)
{
    inners++;
    KEEP_FRAME();
}

FUNCTION void work(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sink += i;
    KEEP_FRAME();
}

FUNCTION void outer(void)
{
    outers++;
    work(30000);
    for (int i = 0; i < 40; i++)
        inner();
    KEEP_FRAME();
}

FUNCTION void light(void)
{
    lights++;
    work(100000);
    inner();
    KEEP_FRAME();
}

// As much work as in light(), and nothing within.
FUNCTION void plain(void)
{
    work(100000);
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
