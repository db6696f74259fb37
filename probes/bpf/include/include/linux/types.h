#ifndef SPECMINE_TYPES
#define SPECMINE_TYPES
typedef signed char __s8, s8;
typedef unsigned char __u8, u8;
typedef short __s16, s16;
typedef unsigned short __u16, u16, __be16, __le16, __sum16;
typedef int __s32, s32, pid_t;
typedef unsigned int __u32, u32, __be32, __le32, __wsum;
typedef long long __s64, s64;
typedef unsigned long long __u64, u64, __be64, __le64;
typedef unsigned long size_t, uintptr_t;
typedef _Bool bool;
typedef __u64 __aligned_u64 __attribute__((aligned(8)));
#define NULL ((void *)0)
#endif
