// A program that has given a function another beginning before it is watched: what the file says there is not so.
#include <sys/mman.h>

#include "steps.h"

extern char patched_page[];
int patched(int number);

__asm__(".text\n.p2align 12\n.globl patched_page\npatched_page:\n"
        ".globl patched\n.type patched, @function\npatched:\n"
        ".cfi_startproc\npush %rbp\nmov %rsp, %rbp\nmov $1, %eax\nadd %edi, %eax\npop %rbp\nret\n.cfi_endproc\n"
        ".size patched, . - patched\n.p2align 12\n");

// lea 1000(%rdi), %eax; ret
static const unsigned char other[] = {0x8d, 0x87, 0xe8, 0x03, 0x00, 0x00, 0xc3};

int main(void)
{
    unsigned char first[sizeof other];
    memcpy(first, patched_page, sizeof first);
    mprotect(patched_page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(patched_page, other, sizeof other);
    mprotect(patched_page, 4096, PROT_READ | PROT_EXEC);
    await_line();
    long sum = 0, calls = 0;
    for (; calls < 500; calls++) {
        sum += patched((int)calls);
        pause_us(300);
    }
    printf("{\"patched\": %ld, \"sum\": %ld}", calls, sum);
    fflush(stdout);
    mprotect(patched_page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(patched_page, first, sizeof first);
    said();
    return 24;
}
