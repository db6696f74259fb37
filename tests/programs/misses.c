// A function whose calls are slow if and only if they reach a callee, all over one path: request() calls parse(), in one
// call of four miss(), and render(). It measures for how long these run in its slow calls by the clock of its thread.
//
//     misses [SECONDS]
#include "bounded.h"

static uint64_t requests, missed, parse_ns, miss_ns, render_ns;

static uint64_t ran_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

FUNCTION void parse(void)
{
    spin_ns(20000);
    KEEP_FRAME();
}

FUNCTION void miss(void)
{
    spin_ns(150000);
    KEEP_FRAME();
}

FUNCTION void render(void)
{
    spin_ns(30000);
    KEEP_FRAME();
}

FUNCTION void request(int misses)
{
    uint64_t begin = ran_ns(), parsed, found, end;
    parse();
    parsed = ran_ns();
    if (misses)
        miss();
    found = ran_ns();
    render();
    end = ran_ns();
    requests++;
    if (misses) {
        missed++;
        parse_ns += parsed - begin;
        miss_ns += found - parsed;
        render_ns += end - found;
    }
    KEEP_FRAME();
}

FUNCTION void serve(int misses)
{
    request(misses);
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    uint64_t state = 88172645463325252u;
    bounded(argc, argv);
    while (!stop) {
        serve(random_next(&state) >> 62 == 0);
        sleep_ns(100000);
    }
    printf("{\"request\": %lu, \"missed\": %lu, \"parse\": %lu, \"miss\": %lu, \"render\": %lu}\n", requests, missed,
           parse_ns, miss_ns, render_ns);
    return 0;
}
