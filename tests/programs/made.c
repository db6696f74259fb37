/* Half of the time in `native`, half in code that is made at run time, as a JIT makes it. */
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

__attribute__((noinline)) void native(unsigned long rounds)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds));
}

int main(int argc, char **argv)
{
	static const unsigned char code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3}; /* 1: dec rdi; jnz 1b; ret */
	void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	time_t end = time(0) + (argc > 1 ? atoi(argv[1]) : 10);

	memcpy(page, code, sizeof code);
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	while (time(0) < end) {
		((void (*)(unsigned long))page)(1000000);
		native(1000000);
	}
	return 0;
}
