// The same empty function once for each way to time it, called in a loop as deep on the stack as wanted.
//
//     prices FRAMES          then a line "NAME CALLS" for each loop; answers the CPU time that it took, ns
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTION __attribute__((noinline, noclone))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")
#define FRAMES_AROUND 6 // _start, two of the C library, main; the loop and the function itself

#define LOOP(name)                                                                                                     \
    FUNCTION static void loop_##name(long calls)                                                                       \
    {                                                                                                                  \
        while (calls--)                                                                                                \
            name();                                                                                                    \
    }
#define ASSEMBLED_ALONE(name, body)                                                                                        \
    void name(void);                                                                                                   \
    __asm__(".p2align 6\n"                                                                                             \
            ".globl " #name "\n"                                                                                       \
            ".type " #name ", @function\n" #name ":\n"                                                                 \
            ".cfi_startproc\n" body ".cfi_endproc\n"                                                                   \
            ".size " #name ", . - " #name "\n");
#define ASSEMBLED(name, body)                                                                                          \
    ASSEMBLED_ALONE(name, body)                                                                                        \
    LOOP(name)
// begins with push, which the kernel emulates
#define PUSHES                                                                                                         \
    "push %rbp\n"                                                                                                      \
    ".cfi_def_cfa_offset 16\n"                                                                                         \
    ".cfi_offset rbp, -16\n"                                                                                           \
    "mov %rsp, %rbp\n"                                                                                                 \
    "pop %rbp\n"                                                                                                       \
    ".cfi_def_cfa_offset 8\n"                                                                                          \
    ".cfi_restore rbp\n"                                                                                               \
    "ret\n"
#define WAY(name) ASSEMBLED(name, PUSHES)

WAY(alone)
WAY(counted)
WAY(timed)
WAY(paths)
WAY(sampled)
WAY(bpftrace_count)
WAY(bpftrace_hist)
WAY(bpftrace_ustack)
WAY(funclatency)

// the same, between other work that fills the first-level caches
#define AMID(name)                                                                                                     \
    ASSEMBLED_ALONE(name, PUSHES)                                                                                      \
    FUNCTION static void loop_##name(long calls)                                                                       \
    {                                                                                                                  \
        static volatile char memory[1 << 18];                                                                          \
        while (calls--) {                                                                                              \
            for (size_t i = 0; i < sizeof(memory); i += 64)                                                            \
                memory[i]++;                                                                                           \
            name();                                                                                                    \
        }                                                                                                              \
    }
AMID(amid_work)
// begins with two instructions that the kernel would single-step; the third it emulates
ASSEMBLED(badly_begun, "mov %edi, %eax\n"
                       "test %eax, %eax\n"
                       "js 1f\n"
                       "nop\n"
                       "1: ret\n")

static const struct {
    const char *name;
    void (*loop)(long);
} ways[] = {
#define ENTRY(name) {#name, loop_##name}
    ENTRY(alone),
    ENTRY(counted),
    ENTRY(timed),
    ENTRY(paths),
    ENTRY(sampled),
    ENTRY(badly_begun),
    ENTRY(amid_work),
    ENTRY(bpftrace_count),
    ENTRY(bpftrace_hist),
    ENTRY(bpftrace_ustack),
    ENTRY(funclatency),
};

static long cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

FUNCTION static long deep(int frames, void (*loop)(long), long calls)
{
    long took;
    if (frames > 1) {
        took = deep(frames - 1, loop, calls);
    } else {
        long start = cpu_ns();
        loop(calls);
        took = cpu_ns() - start;
    }
    KEEP_FRAME();
    return took;
}

int main(int argc, char **argv)
{
    int frames = argc > 1 ? atoi(argv[1]) - FRAMES_AROUND : 1;
    char name[32];
    long calls;
    while (scanf("%31s %ld", name, &calls) == 2)
        for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
            if (!strcmp(ways[i].name, name)) {
                printf("%ld\n", deep(frames, ways[i].loop, calls));
                fflush(stdout);
            }
    return 0;
}
