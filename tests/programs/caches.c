// Two empty functions: warm() is called in a loop, cold() between work that runs through 384 kB of code.
//
//     caches [SECONDS]
#include "bounded.h"

#define PIECES 6144
#define STEP 2731 // odd: every piece is met, and no prefetcher knows which is next

void warm(void);
void cold(void);
extern const char pieces[];

#define EMPTY(name)                                                                                                    \
    __asm__(".text\n.p2align 6\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                            \
            ".cfi_startproc\npush %rbp\n.cfi_adjust_cfa_offset 8\npop %rbp\n.cfi_adjust_cfa_offset -8\nret\n"          \
            ".cfi_endproc\n.size " #name ", . - " #name "\n")
EMPTY(warm);
EMPTY(cold);

// as many functions, each in a cache line of its own
__asm__(".text\n.p2align 6\n.globl pieces\n.type pieces, @function\npieces:\n.cfi_startproc\n"
        ".rept 6144\nadd $1, %rax\nxor %rcx, %rax\nret\n.p2align 6\n.endr\n.cfi_endproc\n.size pieces, . - pieces\n");

FUNCTION void run_through(void)
{
    for (unsigned i = 0, at = 0; i < PIECES; i++, at = (at + STEP) % PIECES)
        ((void (*)(void))(pieces + 64ul * at))();
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    unsigned long warms = 0, colds = 0;

    bounded(argc, argv);
    while (!stop) {
        for (int i = 0; i < 50; i++, warms++)
            warm();
        for (int i = 0; i < 10; i++, colds++) {
            run_through();
            cold();
        }
        sleep_ns(100000);
    }
    printf("{\"warm\": %lu, \"cold\": %lu}\n", warms, colds);
    return 0;
}
