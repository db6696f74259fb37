// Recursion whose length is known, entered from several places: the outermost call is the duration, no inner one is.
#include "steps.h"

static volatile long down_calls, left_calls, right_calls;

// Four levels of 60 us each.
FUNCTION int down(int depth)
{
    down_calls++;
    spin_us(60);
    int below = depth ? down(depth - 1) : 0;
    KEEP_FRAME();
    return below + 1;
}

FUNCTION int right(int depth);

FUNCTION int left(int depth)
{
    left_calls++;
    spin_us(60);
    int below = depth ? right(depth - 1) : 0;
    KEEP_FRAME();
    return below + 1;
}

FUNCTION int right(int depth)
{
    right_calls++;
    spin_us(60);
    int below = depth ? left(depth - 1) : 0;
    KEEP_FRAME();
    return below + 1;
}

int main(void)
{
    await_line();
    long sum = 0;
    for (int i = 0; i < 300; i++) {
        sum += i % 3 ? i % 3 == 1 ? down(3) : 2 * down(3) : 3 * down(3);
        sum += left(3);
        pause_us(1500);
    }
    printf("{\"down\": %ld, \"left\": %ld, \"right\": %ld, \"sum\": %ld, "
           "\"least_ns\": {\"down\": 240000, \"left\": 240000, \"right\": 180000}}",
           down_calls, left_calls, right_calls, sum);
    said();
    return 25;
}
