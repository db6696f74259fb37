// int fN(int x) { return x + N; } for N below 50,000, and a table of them.
.altmacro
.macro function n
.globl f\n
.type f\n, @function
f\n:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    lea \n(%rdi), %eax
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
.size f\n, . - f\n
.endm
.macro entry n
    .quad f\n
.endm

.text
.set number, 0
.rept 50000
    function %number
    .set number, number + 1
.endr

.section .data.rel.ro, "aw"
.globl every
every:
.set number, 0
.rept 50000
    entry %number
    .set number, number + 1
.endr
.section .note.GNU-stack, "", @progbits
