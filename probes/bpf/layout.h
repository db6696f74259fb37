/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What the programs and probes/kernel/structs.py agree on; a test compiles this file and compares sizes and offsets. */
#ifndef SPECMINE_LAYOUT
#define SPECMINE_LAYOUT

#define MAX_SLOTS 256    /* functions watched at once */
#define PLACES 1024      /* threads whose memory is found by their number; a power of two */
#define MAX_OPEN 32      /* timed calls open at once on one thread */
#ifndef MAX_FRAMES
#define MAX_FRAMES 64    /* frames walked for one path; a probed caller's path continues it */
#endif
#define MAX_TAIL_CALLS 4 /* functions that end at one return */
#define KNOWN_RETURNS 8  /* return sites that a thread knows by heart */
#define MAX_RANGES 128   /* executable mappings of one process */
#define WINDOW 4096      /* bytes of stack copied at once */

/* Attach cookie: which slot, in which of its uses, over which kind of link. */
#define COOKIE_SLOT(c) ((u32)(c) & 0xff)
#define COOKIE_SHARED (1ULL << 8)    /* inode-wide link: any process may hit it */
#define COOKIE_PATH (1ULL << 9)      /* durations are counted by call path */
#define COOKIE_GENERATION(c) ((u32)(c) >> 16)

/* One watched function: written by user space, read by the programs. */
struct slot {
	u64 limit;     /* the bucket: hits beyond this number take the probes off */
	u64 generation; /* the use whose cookies are valid; another's open calls are not counted any more */
	u32 entry_ns;  /* what a hit at its entry costs, walks excepted: taken from the durations of calls around it */
	u32 return_ns; /* likewise at its return */
	u32 timed_of_4g; /* sessions: how many of 2^32 calls are timed, by chance; 0: all */
	u32 spare;
};

/* What happened at a slot. */
struct counters {
	u64 hits;      /* traps taken: entries and returns */
	u64 calls;     /* outermost calls seen to begin */
	u64 timed;     /* outermost calls seen to end */
	u64 inner;     /* recursive calls inside an outermost one */
	u64 lost;      /* calls without a place on the shadow stack */
	u64 dropped;   /* open calls found abandoned: longjmp, exception, thread exit */
	u64 unlearnt;  /* calls whose return site was not probed yet, or cannot be */
	u64 strangers; /* hits by processes that nobody chose */
	u64 nested;    /* timed calls in which other probes were hit */
	u64 nested_ns; /* what was taken from their durations for that */
	u64 unsplit;   /* timed calls that left their CPU, for which there was no room to note it */
	u64 pace_ns;   /* what the handlers took whose time was taken */
	u64 paced;     /* their number */
	u64 pace_log;  /* sum of the buckets of their times: a geometric mean */
};

/* An open timed call. */
struct open_call {
	u64 sp;        /* where its return address stands: identity of the frame */
	u64 start;
	u64 path;      /* id of its call path, 0 if none was taken */
	u64 ret;       /* the return address before a return probe replaced it, 0 if not read */
	u64 cookie;
	u64 cost;      /* the thread's cost when it began */
	u64 arrivals;  /* how often the thread had been given a CPU when it began, see off_cpu.h */
	u64 run_delay; /* how long it had waited for one */
	u64 run_base;  /* how long it had run, less the clock */
};

/* A place to which this thread's calls return and where a probe stands. */
struct known_return {
	u64 address;
	u64 cookie;
	u64 known;     /* in which state of ``changes`` */
};

struct thread {
	u64 born;                  /* whose it is, see threads.h; 0: nobody's */
	u32 tid;
	u32 depth;
	u32 layout, followed;      /* its process's, as they were in the state ``known`` of ``changes`` */
	u32 random;                /* which calls are timed; 0: not drawn yet */
	u32 low;                   /* its calls return to low addresses, see return_sites.h */
	u64 known;                 /* 0: the process was not watched */
	u64 cost;                  /* what probes have cost this thread so far, ns */
	u64 stack_end;             /* first address above the stack known not to be readable, 0: none found */
	u64 busy[MAX_SLOTS / 64];  /* slots with an open call: recursion */
	struct known_return returns[KNOWN_RETURNS];
	struct open_call open[MAX_OPEN];
};

struct process {
	u32 program;   /* index of the chosen program */
	u32 layout;    /* index into layouts, 0: none known */
	u32 followed;  /* what leaves frames without returning (exceptions, longjmp) is probed in it */
	u32 spare;
};

#define RANGE_ROWS 1     /* the module has unwind rows */
#define RANGE_FRAMES 2   /* a file without rows: frame pointers are tried */
#define RANGE_JIT 4      /* executable memory without a file */
#define RANGE_PROBE 8    /* where the kernel runs probed instructions, and return probes return to */

struct range {
	u64 start, end;
	u64 file_offset;
	u32 index;     /* where the module's page index begins */
	u32 flags;
};

struct layout {
	u32 count;
	u32 spare;
	struct range ranges[MAX_RANGES];
};

/* How a walk ended. */
#define WALK_COMPLETE 1   /* the thread's start */
#define WALK_JOINED 2     /* a probed caller whose path is known: see parent */
#define WALK_NO_RANGE 3   /* an address outside all known mappings */
#define WALK_NO_ROW 4     /* no rule for this address */
#define WALK_UNSUPPORTED 5 /* a rule that the rows cannot express */
#define WALK_FAULT 6      /* stack memory not readable */
#define WALK_DEEP 7       /* more frames than MAX_FRAMES */
#define WALK_JIT 8        /* code made at run time */
#define WALK_HIDDEN 9     /* a return address replaced by somebody else's probe */
#define WALK_NO_LAYOUT 10 /* the process's mappings are not known */
#define WALK_BUSY 11      /* another walk held the scratch memory */
#define WALK_PROBE 12     /* a sample that hit a probe at work, not the program */
#define WALK_OUTCOMES 13

struct path {
	u64 id;
	u64 parent;    /* path that continues this one, 0: none */
	u32 tgid;
	u32 layout;
	u16 count;
	u16 outcome;
	u32 spare;
	u64 address[MAX_FRAMES]; /* innermost first */
};

struct path_bucket {
	u64 path;
	u32 cookie;    /* low 32 bits: the slot in this use */
	u32 bucket;
};

/* Timed calls that left their CPU meanwhile; those that are not here ran all the time. */
struct absence {
	u64 path;      /* 0 where durations are not counted by path */
	u32 cookie;    /* low 32 bits */
	u16 bucket;    /* of the duration */
	u16 running;   /* bucket of the time on CPU */
};

struct absence_value {
	u64 calls;
	u64 waiting;   /* ns, runnable without a CPU, of all these calls */
	u64 blocked;   /* ns, waiting for anything else */
};

struct sample {
	u64 path;
	u32 program;
	u32 waiting;   /* 0: on CPU, 1: blocked */
};

struct sample_value {
	u64 count;
	u64 ns;
};

struct wait {
	u64 start;
	u64 path;
	u32 program;
	u32 weight;    /* waits that this one stands for */
};

/* Settings that change at run time. */
struct settings {
	u32 wait_every;    /* one wait in so many is followed */
	u32 period_ns;     /* of the CPU clock */
};

#define WAIT_MARKS 1024   /* numbers of open waits, by the low bits of their thread's id */
#define SWITCHES_A_TIMED 64 /* passes of the switch tracepoint of which the time of one is taken */

/* What the switch tracepoint cost so far. */
struct switches {
	u64 timed;     /* passes whose time was taken */
	u64 ns;        /* what they took */
	u64 own;       /* those of them in which a watched thread came or went */
};

/* How often what threads keep in mind of other maps was changed, by whom. */
struct changes {
	u64 by_user;
	u64 by_kernel;
};

/* Which slots' probes were hit inside timed calls of a slot; directly, not through a third one. */
struct nest {
	u64 inner[MAX_SLOTS / 64];
};

#define SINGLES 256      /* durations kept one by one; a power of two */

/* Durations of single calls of a slot's open window, ns, corrected as in the histogram; 0: none. */
struct singles {
	u64 began;     /* calls timed before the window */
	u64 first[SINGLES]; /* of its first calls, in the order of their ends */
	u64 kept[SINGLES];  /* each of its calls is here with the same probability */
};

/* A place to which calls of one function return. */
struct return_site {
	u64 address;
	u32 layout;
	u32 slot;      /* low 32 bits of the cookie, without the flags of a link */
};

#define RETURN_ASKED 0    /* user space has been told */
#define RETURN_PROBED 1   /* a probe is there */
#define RETURN_REFUSED 2  /* no probe can be there */
#define RETURN_SHARED 3   /* probed, but other functions may be called from there: use it in followed processes */

#define EVENT_FORK 1
#define EVENT_EXEC 2
#define EVENT_EXIT 3
#define EVENT_ALARM 4     /* a bucket ran empty */
#define EVENT_STRANGER 5  /* a process that nobody chose hit a probe */
#define EVENT_RETURN 6    /* a return site was seen for the first time */
#define EVENT_STOP 7      /* a process was sent SIGSTOP, as debuggers do when they attach */

#define SIGSTOP 19

struct event {
	u32 type;
	u32 tgid;      /* who */
	u64 value;     /* child's tgid, or the cookie; EVENT_RETURN: its low 32 bits, and the layout above them */
	u64 address;   /* EVENT_RETURN: of the return site */
};

#endif
