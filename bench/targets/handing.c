/* Two processes hand a byte to and fro over pipes: two switches of their CPU each time, of which FILE holds the number.
 *
 *     handing FILE
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int file = argc == 2 ? open(argv[1], O_RDWR) : -1, there[2], back[2];
	volatile uint64_t *switches = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	char byte = 0;

	if (file < 0 || switches == MAP_FAILED || pipe(there) || pipe(back))
		return 2;
	if (fork() == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		return 0;
	}
	while (write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1)
		*switches += 2;
	return 0;
}
