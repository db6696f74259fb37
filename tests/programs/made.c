// Half of the time in native(), half in code that is made at run time, as a JIT makes it.
//
//     made [SECONDS]
#include "bounded.h"
#include <string.h>
#include <sys/mman.h>

FUNCTION void native(unsigned long rounds)
{
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds));
}

int main(int argc, char **argv)
{
    static const unsigned char code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3}; // 1: dec rdi; jnz 1b; ret
    void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long rounds = 0;
    bounded(argc, argv);
    memcpy(page, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    while (!stop) {
        ((void (*)(unsigned long))page)(1000000);
        native(1000000);
        rounds++;
    }
    printf("{\"rounds\": %lu}\n", rounds);
    return 0;
}
