// A program that writes new instructions into a watched function, behind its probe.
#include <sys/mman.h>

#include "steps.h"

extern char changing_page[], changing_value[];
int changing(int number);

__asm__(".text\n.p2align 12\n.globl changing_page\nchanging_page:\n"
        ".globl changing\n.type changing, @function\nchanging:\n"
        ".cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\nmov %rsp, %rbp\n"
        ".byte 0xb8\n.globl changing_value\nchanging_value: .long 1\n" // mov $1, %eax
        "add %edi, %eax\npop %rbp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n"
        ".size changing, . - changing\n.p2align 12\n");

static void set(int value)
{
    mprotect(changing_page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(changing_value, &value, sizeof value);
    mprotect(changing_page, 4096, PROT_READ | PROT_EXEC);
}

int main(void)
{
    await_line();
    long sum = 0, calls = 0;
    for (int i = 0; i < 100; i++) {
        for (int n = 0; n < 15; n++, calls++) {
            sum += changing(n);
            pause_us(550);
        }
        set(i % 99 + 1); // in the end as in the file
    }
    printf("{\"changing\": %ld, \"sum\": %ld}", calls, sum);
    said();
    return 21;
}
