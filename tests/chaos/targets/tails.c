// Timed functions that end in jumps to timed functions.
#include "steps.h"

static volatile long first_calls, second_calls, third_calls, even_calls, odd_calls;

FUNCTION int third(int number)
{
    third_calls++;
    return number + 1;
}

FUNCTION int second(int number)
{
    second_calls++;
    return third(number + 1);
}

FUNCTION int first(int number)
{
    first_calls++;
    return second(number + 1);
}

FUNCTION int odd(int number);

FUNCTION int even(int number)
{
    even_calls++;
    return number ? odd(number - 1) : 1;
}

FUNCTION int odd(int number)
{
    odd_calls++;
    return number ? even(number - 1) : 0;
}

int main(void)
{
    await_line();
    long sum = 0;
    for (int i = 0; i < 800; i++) {
        sum += first(i);
        sum += even(i % 6);
        pause_us(900);
    }
    printf("{\"first\": %ld, \"second\": %ld, \"third\": %ld, \"even\": %ld, \"odd\": %ld, \"sum\": %ld}", first_calls,
           second_calls, third_calls, even_calls, odd_calls, sum);
    said();
    return 6;
}
