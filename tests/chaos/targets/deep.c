// A thousand levels of recursion, direct and mutual.
#include "steps.h"

static volatile long down_calls, ping_calls, pong_calls;

FUNCTION long down(int depth)
{
    down_calls++;
    long below = depth ? down(depth - 1) : 0;
    KEEP_FRAME();
    return below + 1;
}

FUNCTION long pong(int depth);

FUNCTION long ping(int depth)
{
    ping_calls++;
    long below = depth ? pong(depth - 1) : 0;
    KEEP_FRAME();
    return below + 1;
}

FUNCTION long pong(int depth)
{
    pong_calls++;
    long below = depth ? ping(depth - 1) : 0;
    KEEP_FRAME();
    return below + 1;
}

int main(void)
{
    await_line();
    long sum = 0;
    for (int i = 0; i < 60; i++) {
        sum += down(1000) + ping(1000);
        pause_us(10000);
    }
    printf("{\"down\": %ld, \"ping\": %ld, \"pong\": %ld, \"sum\": %ld}", down_calls, ping_calls, pong_calls, sum);
    said();
    return 5;
}
