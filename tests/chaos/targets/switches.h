// A switch of stacks as fiber libraries write it: no call of the C library betrays it.
#pragma once

// Save where this fiber stands in *from, go on where the other stands.
void hop(void **from, void *to);

__asm__(".text\n.type hop, @function\nhop:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n.size hop, . - hop\n");

// Return what to hop to in order to run a function, which never returns, on a stack.
static inline void *fresh(void *stack, size_t size, void (*run)(void))
{
    void **top = (void **)((char *)stack + size) - 2;
    top[0] = (void *)run;
    return top - 6; // six registers, of no matter what value
}
