/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The log-linear bucket of a duration: 32 buckets per power of two from 2^5 to 2^40 ns.
 * Pure: also compiled for the host, where a test compares it with model/buckets.py. */
#ifndef SPECMINE_HISTOGRAM
#define SPECMINE_HISTOGRAM

#define SUB_BITS 5
#define FIRST_EXPONENT 5
#define LAST_EXPONENT 39
#define BUCKETS ((LAST_EXPONENT - FIRST_EXPONENT + 1) << SUB_BITS)

static inline __attribute__((always_inline)) unsigned int exponent_of(unsigned long long value)
{
	unsigned int exponent = 0;

	/* no loop and no table: cheap for the verifier, 6 compares at run time */
	if (value >> 32) { value >>= 32; exponent += 32; }
	if (value >> 16) { value >>= 16; exponent += 16; }
	if (value >> 8) { value >>= 8; exponent += 8; }
	if (value >> 4) { value >>= 4; exponent += 4; }
	if (value >> 2) { value >>= 2; exponent += 2; }
	if (value >> 1) exponent += 1;
	return exponent;
}

static inline __attribute__((always_inline)) unsigned int bucket_of(unsigned long long duration)
{
	unsigned int exponent;

	if (duration < (1ULL << FIRST_EXPONENT))
		return 0;
	if (duration >= (1ULL << (LAST_EXPONENT + 1)))
		return BUCKETS - 1;
	exponent = exponent_of(duration);
	return ((exponent - FIRST_EXPONENT) << SUB_BITS) +
	       ((unsigned int)(duration >> (exponent - SUB_BITS)) & ((1 << SUB_BITS) - 1));
}

#endif
