// As thrown.cc, with longjmp.
#include <setjmp.h>

#include "steps.h"

static jmp_buf back;
static volatile long jumper_calls, longer_calls, direct_calls, jumped;

FUNCTION void jumper(int number)
{
    jumper_calls++;
    if (number % 3 == 0)
        longjmp(back, 1);
    spin_us(400);
    KEEP_FRAME();
}

FUNCTION void longer(int number)
{
    longer_calls++;
    if (number % 4 == 0)
        longjmp(back, 1);
    spin_us(900);
    KEEP_FRAME();
}

FUNCTION void direct(int number)
{
    direct_calls++;
    spin_us(number % 2 ? 400 : 410);
    KEEP_FRAME();
}

FUNCTION void unwatched(int number)
{
    spin_us(number % 2 ? 40 : 2000);
    KEEP_FRAME();
}

static void (*volatile callees[])(int) = {jumper, unwatched, longer, unwatched, unwatched};

int main(void)
{
    await_line();
    for (volatile int i = 0; i < 300; i++) {
        for (volatile int which = 0; which < 5; which++) {
            if (setjmp(back)) {
                jumped++;
            } else {
                callees[which](i);
                RETURNED();
            }
        }
        direct(i);
        pause_us(500);
    }
    printf("{\"jumper\": %ld, \"longer\": %ld, \"direct\": %ld, \"jumped\": %ld, "
           "\"least_ns\": {\"jumper\": 400000, \"longer\": 900000, \"direct\": 400000}}",
           jumper_calls, longer_calls, direct_calls, jumped);
    said();
    return 16;
}
