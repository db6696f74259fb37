// An empty function, called between work that fills caches: so many bytes of data, so many functions of one line each.
//
//     a line "CALLS BYTES FUNCTIONS CALLED" for each loop; answers the CPU time that it took, ns. CALLED 0: without it
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PIECES 16384
#define EMPTY(name)                                                                                                    \
    __asm__(".text\n.p2align 6\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                            \
            ".cfi_startproc\npush %rbp\n.cfi_adjust_cfa_offset 8\npop %rbp\n.cfi_adjust_cfa_offset -8\nret\n"          \
            ".cfi_endproc\n.size " #name ", . - " #name "\n")

void empty(void);
EMPTY(empty);
extern const char pieces[];
__asm__(".text\n.p2align 6\n.globl pieces\n.type pieces, @function\npieces:\n.cfi_startproc\n"
        ".rept 16384\nadd $1, %rax\nxor %rcx, %rax\nret\n.p2align 6\n.endr\n.cfi_endproc\n.size pieces, . - pieces\n");

static int order[PIECES];

__attribute__((noinline)) static long work(long calls, long bytes, long functions, int called)
{
    static volatile char memory[4 << 20];
    struct timespec start, end;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    while (calls--) {
        for (long i = 0; i < bytes; i += 64)
            memory[i]++;
        for (long i = 0; i < functions; i++)
            ((void (*)(void))(pieces + 64L * order[i]))();
        if (called)
            empty();
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (end.tv_sec - start.tv_sec) * 1000000000L + end.tv_nsec - start.tv_nsec;
}

int main(void)
{
    long calls, bytes, functions;
    int called;

    for (int i = 0; i < PIECES; i++)
        order[i] = i;
    for (int i = PIECES - 1; i > 0; i--) {
        int other = rand() % (i + 1), kept = order[i];

        order[i] = order[other];
        order[other] = kept;
    }
    while (scanf("%ld %ld %ld %d", &calls, &bytes, &functions, &called) == 4) {
        printf("%ld\n", work(calls, bytes, functions, called));
        fflush(stdout);
    }
    return 0;
}
