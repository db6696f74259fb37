// longjmp leaves several timed functions at once, also the same ones again and again.
#include <setjmp.h>

#include "steps.h"

static jmp_buf back;
static volatile long leaf_calls, middle_calls, outer_calls, jumped;

FUNCTION void leaf(int number)
{
    leaf_calls++;
    if (number % 2)
        longjmp(back, 1);
    KEEP_FRAME();
}

FUNCTION void middle(int number)
{
    middle_calls++;
    leaf(number);
    KEEP_FRAME();
}

FUNCTION void outer(int number)
{
    outer_calls++;
    if (setjmp(back))
        jumped++;
    else
        middle(number);
    KEEP_FRAME();
}

int main(void)
{
    await_line();
    for (int i = 0; i < 1000; i++) {
        outer(i);
        pause_us(800);
    }
    printf("{\"leaf\": %ld, \"middle\": %ld, \"outer\": %ld, \"jumped\": %ld}", leaf_calls, middle_calls, outer_calls,
           jumped);
    said();
    return 3;
}
