// A tiny function called as fast as the CPU can.
#include "steps.h"

static volatile long sink;

FUNCTION void tiny(void)
{
    KEEP_FRAME();
}

int main(void)
{
    await_line();
    long calls = 0;
    for (; calls < 800000000; calls++)
        tiny();
    sink = calls;
    printf("{\"tiny\": %ld}", calls);
    said();
    return 13;
}
