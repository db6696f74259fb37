// A function whose calls are slow if and only if they reach a callee, all over one path: request() calls parse(), in one
// call of four miss(), and render(). It measures its slow calls by its own clock.
//
//     misses [SECONDS]
#include "bounded.h"

static uint64_t requests, missed, whole_ns, parse_ns, miss_ns, render_ns;

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
    uint64_t begin = now_ns(), parsed, found, end;
    parse();
    parsed = now_ns();
    if (misses)
        miss();
    found = now_ns();
    render();
    end = now_ns();
    requests++;
    if (misses) {
        missed++;
        whole_ns += end - begin;
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
    printf("{\"request\": %lu, \"missed\": %lu, \"whole_ns\": %lu, \"parse_ns\": %lu, \"miss_ns\": %lu, \"render_ns\": %lu}\n",
           requests, missed, whole_ns, parse_ns, miss_ns, render_ns);
    return 0;
}
