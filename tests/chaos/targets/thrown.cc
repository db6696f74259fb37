// Exceptions end watched calls that were made through a pointer, and the same call instruction, at the same depth of
// the stack, then calls something else: its return must not be booked as theirs. How long each call lasts is known.
#include <stdexcept>

#include "steps.h"

static volatile long thrower_calls, longer_calls, direct_calls, caught;

extern "C" {
FUNCTION void thrower(int number)
{
    thrower_calls++;
    if (number % 3 == 0)
        throw std::runtime_error("every third");
    spin_us(400);
}

FUNCTION void longer(int number)
{
    longer_calls++;
    if (number % 4 == 0)
        throw 1;
    spin_us(900);
}

FUNCTION void direct(int number)
{
    direct_calls++;
    if (number % 2)
        spin_us(400);
    else
        spin_us(410);
    KEEP_FRAME();
}

FUNCTION void unwatched(int number)
{
    spin_us(number % 2 ? 40 : 2000);
}
}

int main()
{
    await_line();
    void (*volatile callees[])(int) = {thrower, unwatched, longer, unwatched, unwatched};
    for (int i = 0; i < 300; i++) {
        for (auto &callee : callees) {
            try {
                callee(i);
                RETURNED();
            } catch (const std::exception &) {
                caught = caught + 1;
            } catch (int) {
                caught = caught + 1;
            }
        }
        direct(i);
        pause_us(500);
    }
    printf("{\"thrower\": %ld, \"longer\": %ld, \"direct\": %ld, \"caught\": %ld, "
           "\"least_ns\": {\"thrower\": 400000, \"longer\": 900000, \"direct\": 400000}}",
           thrower_calls, longer_calls, direct_calls, caught);
    said();
    return 15;
}
