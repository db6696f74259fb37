// Functions whose first instruction is the head of their own loop: going round is no call.
#include "steps.h"

static volatile long calls;

void turn(void);
int looping(int rounds);

FUNCTION void turn(void)
{
    spin_us(60);
    KEEP_FRAME();
}

__asm__(".text\n.globl looping\n.type looping, @function\nlooping:\n.cfi_startproc\n"
        "push %rdi\n.cfi_adjust_cfa_offset 8\ncall turn\npop %rdi\n.cfi_adjust_cfa_offset -8\n"
        "dec %edi\njnz looping\nmov $1, %eax\nret\n.cfi_endproc\n.size looping, . - looping\n");

int main(void)
{
    await_line();
    long sum = 0;
    for (int i = 0; i < 300; i++) {
        calls++;
        sum += looping(3);
        RETURNED();
        pause_us(2000);
    }
    printf("{\"looping\": %ld, \"sum\": %ld, \"least_ns\": {\"looping\": 180000}}", calls, sum);
    said();
    return 23;
}
