// A program of 50,000 functions (many_functions.S), all called at its start and a few while it is watched.
#include "steps.h"

enum { ALL = 50000 };

extern int (*const every[ALL])(int);
int f0(int), f1(int), f2(int), f3(int), f4(int), f5(int), f6(int), f7(int);

int main(void)
{
    long sum = 0;
    for (int n = 0; n < ALL; n++)
        sum += every[n](n);
    await_line();
    for (int i = 0; i < 1500; i++) {
        sum += f0(i) + f1(i) + f2(i) + f3(i) + f4(i) + f5(i) + f6(i) + f7(i);
        pause_us(550);
    }
    printf("{");
    for (int n = 0; n < 8; n++)
        printf("\"f%d\": 1500, ", n);
    printf("\"sum\": %ld}", sum);
    said();
    return 14;
}
