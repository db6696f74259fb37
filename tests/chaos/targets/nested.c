// Tail calls whose lengths are known.
#include "steps.h"

static volatile long self_calls, head_calls, tail_calls;

// Jumps to itself: where returns are not replaced, each jump is a call of its own.
static int self(int depth);
static int (*volatile again)(int) = self;

FUNCTION int self(int depth)
{
    self_calls++;
    spin_us(60);
    return depth ? again(depth - 1) : 1;
}

FUNCTION int tail(int number)
{
    tail_calls++;
    spin_us(60);
    return number + 1;
}

FUNCTION int head(int number)
{
    head_calls++;
    spin_us(120);
    return tail(number + 1);
}

int main(void)
{
    await_line();
    long sum = 0;
    for (int i = 0; i < 300; i++) {
        sum += self(1);
        sum += head(i);
        pause_us(1500);
    }
    printf("{\"self\": %ld, \"head\": %ld, \"tail\": %ld, \"sum\": %ld, "
           "\"least_ns\": {\"self\": 60000, \"head\": 180000, \"tail\": 60000}}",
           self_calls, head_calls, tail_calls, sum);
    said();
    return 17;
}
