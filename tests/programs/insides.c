// A function whose slow calls are slow by what they call: request() calls parse() twice, and one time in four flush(),
// which sleeps. deep() calls middle(), which calls flush(); a probe on middle() takes flush() away from deep().
//
//     insides [SECONDS]
#include "bounded.h"

static unsigned long requests, flushed, parses, flushes, deeps;

FUNCTION void parse(void)
{
    parses++;
    spin_ns(20000);
    KEEP_FRAME();
}

FUNCTION void flush(void)
{
    flushes++;
    sleep_ns(1000000);
    KEEP_FRAME();
}

FUNCTION void middle(void)
{
    flush();
    KEEP_FRAME();
}

FUNCTION void deep(void)
{
    deeps++;
    middle();
    KEEP_FRAME();
}

FUNCTION void request(int with_flush)
{
    requests++;
    parse();
    if (with_flush) {
        flushed++;
        flush();
    }
    spin_ns(30000);
    parse();
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    uint64_t state = 88172645463325252u;
    bounded(argc, argv);
    while (!stop) {
        request(random_next(&state) >> 62 == 0);
        if (requests % 16 == 0)
            deep();
        sleep_ns(30000);
    }
    printf("{\"request\": %lu, \"flushed\": %lu, \"parse\": %lu, \"flush\": %lu, \"deep\": %lu}\n", requests, flushed,
           parses, flushes, deeps);
    return 0;
}
