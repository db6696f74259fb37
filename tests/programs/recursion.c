// Recursive functions: descend() calls itself, even() and odd() call each other. A duration is that of the
// outermost call; the inner ones are only counted.
//
//     recursion [SECONDS] [CALLS PER SECOND]
#include "bounded.h"

static unsigned long outermost, inner, even_calls, odd_calls, pairs;

FUNCTION void descend(unsigned depth)
{
    spin_ns(1000);
    if (depth > 0) {
        inner++;
        descend(depth - 1);
    }
    KEEP_FRAME();
}

FUNCTION int even(unsigned n);

FUNCTION int odd(unsigned n)
{
    odd_calls++;
    spin_ns(500);
    int result = n == 0 ? 0 : even(n - 1);
    KEEP_FRAME();
    return result;
}

FUNCTION int even(unsigned n)
{
    even_calls++;
    spin_ns(500);
    int result = n == 0 ? 1 : odd(n - 1);
    KEEP_FRAME();
    return result;
}

int main(int argc, char **argv)
{
    uint64_t seed = 88172645463325252u;
    bounded(argc, argv);
    uint64_t rest_ns = 1000000000u / argument(argc, argv, 2, 1000);
    int sum = 0;
    while (!stop) {
        outermost++;
        descend((unsigned)(random_next(&seed) >> 40) % 8);
        pairs++;
        sum += even(4);
        sleep_ns(rest_ns);
    }
    printf("{\"outermost\": %lu, \"inner\": %lu, \"even_outermost\": %lu, \"even\": %lu, \"odd\": %lu}\n", outermost,
           inner, pairs, even_calls, odd_calls);
    return sum < 0;
}
