/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What the programs and probes/kernel/structs.py share; a test compiles this file and compares sizes and offsets. */
#ifndef SPECMINE_LAYOUT
#define SPECMINE_LAYOUT

#define MAX_SLOTS 256    /* functions watched at once */
#define THREAD_CELLS 1024      /* threads whose memory is found by their id; a power of two */
#define MAX_OPEN 32      /* timed calls open at once on one thread */
#ifndef MAX_FRAMES
#define MAX_FRAMES 64    /* frames walked for one path; the path of a probed caller continues it */
#endif
#define PERIODS 4        /* of max_open: calls are counted by the period in which they begin; a power of two */
#define MAX_TAIL_CALLS 4 /* functions that one return may end */
#define MAX_CALLEES 6    /* timed functions that are told apart in one call; the last place is shared by all further ones */
#define CACHED_RETURNS 8  /* return sites that a thread caches */
#define MAX_RANGES 128   /* executable mappings of one process */
#define WINDOW 4096      /* bytes of stack copied at once */

/* Attach cookie: the slot, the use of the slot, the kind of link. */
#define COOKIE_SLOT(c) ((u32)(c) & 0xff)
#define COOKIE_SHARED (1ULL << 8)    /* inode-wide link: any process may hit it */
#define COOKIE_PATH (1ULL << 9)      /* durations are counted by call path */
#define COOKIE_BY_PATH(c) ((c) >> 9 & 1)
#define COOKIE_STEPPED (1ULL << 10)  /* a return site whose instruction is single-stepped */
#define COOKIE_GENERATION(c) ((u32)(c) >> 16)
#define COOKIE_IDENTITY 0xffff00ff   /* the slot in this use */

/* One watched function; user space writes it, the programs read it. */
struct slot {
	u64 limit;     /* the rate limit: a hit beyond this number detaches the probes */
	u64 generation; /* the use whose cookies are valid; open calls of another use are not counted */
	u32 entry_ns;  /* cost of a hit at its entry without the walk; subtracted from the durations of outer calls */
	u32 return_ns; /* the same at its return */
	u32 timed_of_4g; /* sessions: how many of 2^32 calls are timed, at random; 0: all */
	u32 era;       /* number of the time since when the same callees of it are timed, see inside.h; 0: it has none */
	u32 step_ns;   /* more than return_ns, at a return site that is single-stepped */
	u32 spare;
	u64 max_open;  /* ns after which a call that has not returned is given up; 0: never */
	u64 period;    /* how often calls were given up; see OpenCalls in user space */
};

/* Counts of one slot. */
struct counters {
	u64 hits;      /* traps taken: entries and returns */
	u64 calls;     /* outermost calls that began */
	u64 timed;     /* outermost calls that ended */
	u64 inner;     /* recursive calls inside an outermost one */
	u64 lost;      /* calls for which the shadow stack had no room */
	u64 dropped;   /* open calls that never return: longjmp, exception, end of the thread */
	u64 unlearnt;  /* calls whose return site has no probe (yet) */
	u64 bystander_hits; /* hits by unwatched processes */
	u64 nested;    /* timed calls during which other probes were hit */
	u64 nested_ns; /* what was subtracted from their durations for that */
	u64 unsplit;   /* timed calls that left their CPU, but off_cpu was full */
	u64 handler_ns;   /* time of the timed handlers */
	u64 handlers_timed;     /* number of timed handlers */
	u64 handler_log;  /* sum of the buckets of their times, for the geometric mean */
	u64 censored;  /* calls that returned later than max_open, before they were given up */
	u64 open[PERIODS]; /* calls that are open now, by the period in which they began */
	u64 late[PERIODS]; /* calls that ended after they were given up */
	u64 stepped;   /* hits at return sites that are single-stepped */
	u64 untold;    /* timed calls whose callees are not known, since the map ``inside`` was full */
};

/* What the timed calls of one function took of the call that they lie in. */
struct callee_time {
	u64 ns;
	u32 waiting;   /* of it, runnable without a CPU, in units of 256 ns */
	u32 blocked;   /* of it, waiting for anything else, likewise */
	u32 calls;
	u32 callee;    /* identity of the function in this use of its slot; 0: the place is free */
};

#define OTHER_CALLEES 0xffff00ff /* no slot has this generation */
#define ALL_INSIDE 256           /* calls of a window of which it is recorded what happened inside; */
#define ONE_INSIDE 8             /* of further ones it is of one in so many; a power of two */
#define AWAY_SHIFT 8             /* of the units of ``waiting`` and ``blocked`` */
#define BLOCKED_SHIFT 3          /* a call is told as blocked if it was so for one part of its duration in 2 ** so much */
#define BLOCKED_CALL 0x8000      /* with a bucket in a key: the call was blocked so long; */
#define BLOCKED_IN 0x100         /* with a callee in a key: it was so within this callee. No identity has this bit */

/* An open timed call. */
struct open_call {
	u64 sp;        /* stack pointer at entry: identity of the frame */
	u64 start;
	u64 path;      /* id of its call path, 0 if none was taken */
	u64 ret;       /* the return address before a return probe replaced it, 0 if not read */
	u64 cookie;
	u64 cost;      /* the thread's cost at its begin */
	u64 arrivals;  /* how often the thread had been given a CPU at its begin, see off_cpu.h */
	u64 run_delay; /* how long the thread had waited for one */
	u64 run_base;  /* how long the thread had run, minus the clock */
	u64 period;    /* the slot's at its begin */
	u64 era;       /* likewise */
	struct callee_time callees[MAX_CALLEES]; /* timed calls directly in it, in the order of their first end */
};

/* A return site with a probe, cached by a thread. */
struct cached_return {
	u64 address;
	u64 cookie;
	u64 epoch;     /* in which this holds, see cached_process.h */
};

struct thread {
	u64 born;                  /* start time of the task, see threads.h; 0: no thread */
	u32 tid;
	u32 depth;
	u32 layout, followed;      /* those of its process, as of ``epoch`` */
	u32 random;                /* state of the random numbers, see prng.h; 0: no state yet */
	u32 low_code;              /* its calls return to low addresses, see return_sites.h */
	u64 epoch;                 /* of layout and followed; 0: the process was not watched */
	u64 cost;                  /* total cost of probes in this thread, ns */
	u64 place;                 /* see inside.h, and ROUNDS in verifier.h */
	u64 stack_end;             /* first unreadable address above the stack, 0: none found */
	u64 busy[MAX_SLOTS / 64];  /* slots with an open call: recursion */
	struct cached_return returns[CACHED_RETURNS];
	struct open_call open[MAX_OPEN];
};

struct process {
	u32 program;   /* index of the chosen program */
	u32 layout;    /* index into layouts, 0: none known */
	u32 followed;  /* exits without a return (exceptions, longjmp) are probed in it */
	u32 spare;
};

#define RANGE_ROWS 1     /* the module has unwind rows */
#define RANGE_FRAMES 2   /* a file without rows: assume frame pointers */
#define RANGE_JIT 4      /* executable memory without a file */
#define RANGE_PROBE 8    /* the kernel's area for probed instructions and return probes */

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

/* Outcome of a walk. */
#define WALK_COMPLETE 1   /* the thread's start */
#define WALK_JOINED 2     /* reached a probed caller with a path: see parent */
#define WALK_NO_RANGE 3   /* an address outside all mappings of the layout */
#define WALK_NO_ROW 4     /* no rule for this address */
#define WALK_UNSUPPORTED 5 /* a rule that the rows cannot express */
#define WALK_FAULT 6      /* stack memory not readable */
#define WALK_DEEP 7       /* more frames than MAX_FRAMES */
#define WALK_JIT 8        /* code made at run time */
#define WALK_HIDDEN 9     /* another tool replaced a return address */
#define WALK_NO_LAYOUT 10 /* user space has not described the mappings */
#define WALK_BUSY 11      /* another walk used the scratch memory */
#define WALK_PROBE 12     /* a sample of a probe, not of the program */
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

/* Timed calls that left their CPU; the others ran all the time. */
struct off_cpu {
	u64 path;      /* 0 where durations are not counted by path */
	u32 cookie;    /* low 32 bits */
	u16 bucket;    /* of the duration */
	u16 running;   /* bucket of the time on CPU, and BLOCKED_CALL */
};

struct off_cpu_value {
	u64 calls;
	u64 waiting;   /* ns that all these calls were runnable without a CPU */
	u64 blocked;   /* ns that they waited for anything else */
};

/* Timed calls in which others were timed: which ones, directly in it. */
struct inside_key {
	u64 path;      /* 0 where durations are not counted by path */
	u32 cookie;    /* low 32 bits */
	u16 bucket;    /* of the duration, and BLOCKED_CALL */
	u16 era;       /* low 16 bits; 0: another one began during the call */
	u32 callees[MAX_CALLEES]; /* each with BLOCKED_IN or without */
};

struct inside_sums {
	u64 ns;
	u64 waiting;   /* units of 256 ns, as below */
	u64 blocked;
	u64 calls;
};

struct inside_value {
	u64 calls;     /* of the outer function */
	u64 waiting;   /* what these did of their time, callees included; units as below */
	u64 blocked;
	struct inside_sums of[MAX_CALLEES]; /* in the order of the key */
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
	u32 weight;    /* number of waits that this one represents; 0: only the call below wants it */
	u64 begun;     /* when the timed call began whose waits are followed, 0: it is in none */
	u32 cookie;    /* of that call, low 32 bits without the flags of a link */
	u32 call_weight; /* as ``weight``, for that call */
	u16 call;      /* number of the system call, NO_CALL without one */
	u16 object;    /* kind of its descriptor, see waits.h */
	u16 waker_call; /* the system call in which the thread was that woke this one, NO_CALL if in none */
	u16 waker;     /* one of those below */
	u64 waker_path; /* its stack, if it is of a watched process */
};

#define WAKER_UNSEEN 0
#define WAKER_WATCHED 1  /* a thread of a watched process, or an interrupt of it */
#define WAKER_FOREIGN 2  /* the same of another one */

/* Waits of timed calls that have ended. */
struct call_wait {
	u64 path;      /* where the thread waited */
	u32 cookie;    /* of the timed call */
	u16 call;
	u16 object;
	u16 bucket;    /* of the time that the call had taken when the wait ended */
	u16 waker_call; /* as above */
	u16 waker;
	u16 spare;
	u64 waker_path;
};

/* Settings that change at run time. */
struct settings {
	u32 wait_every;    /* one wait in so many is timed; 0: none */
	u32 period_ns;     /* of the CPU clock */
	u32 followed;      /* identity of the function whose calls' waits are followed; 0: none */
	u32 follow_every;  /* one of these in so many */
	u64 left;          /* so many more stacks may be walked for them */
	u32 look_every;    /* of the blocked threads one in so many is looked at */
	u32 spare;
};

/* A thread that is blocked at a look. */
struct blocked_thread {
	u64 path;
	u64 sleeps;    /* how often it had gone to sleep */
	u32 tid;
	u32 spare;
};

/* What a ring buffer had no room for. Paths and rate limits are sent again. */
#define UNSENT_EVENTS 0
#define UNSENT_PATHS 1
#define UNSENT_ALARMS 2
#define UNSENT 3

#define WAIT_MARKS 1024   /* counts of open waits, by the low bits of the thread's id */
#define SWITCHES_A_TIMED 64 /* one in so many passes of the switch tracepoint is timed */

/* Cost of the switch tracepoint. */
struct switches {
	u64 timed;     /* passes that were timed */
	u64 ns;        /* what they took */
	u64 own;       /* those of them with a watched thread, before or after */
};

/* Ends of epochs, by who ended them, see cached_process.h. */
struct epochs {
	u64 by_user;
	u64 by_kernel;
};

/* Slots whose probes were hit inside timed calls of a slot; directly, not inside a third one. */
struct nest {
	u64 inner[MAX_SLOTS / 64];
};

#define CALL_SAMPLES 256      /* single durations of a window; a power of two */

/* Single durations of a slot's open window, ns, corrected as in the histogram; 0: none. */
struct call_samples {
	u64 began;     /* calls timed before the window */
	u64 first[CALL_SAMPLES]; /* of its first calls, in the order of their ends */
	u64 kept[CALL_SAMPLES];  /* a random sample: each of its calls has the same probability */
};

/* An address to which calls of one function return. */
struct return_site {
	u64 address;
	u32 layout;
	u32 slot;      /* low 32 bits of the cookie, without the flags of a link */
};

#define RETURN_REPORTED 0    /* user space knows it */
#define RETURN_PROBED 1   /* a probe is there */
#define RETURN_REFUSED 2  /* no probe can be there */
#define RETURN_SHARED 3   /* probed, but other calls return there too: for followed processes only */

#define EVENT_FORK 1
#define EVENT_EXEC 2
#define EVENT_EXIT 3
#define EVENT_RATE_LIMIT 4     /* a slot passed its rate limit */
#define EVENT_BYSTANDER 5  /* an unwatched process hit a probe */
#define EVENT_RETURN 6    /* a new return site */
#define EVENT_STOP 7      /* a process was sent SIGSTOP, as debuggers do when they attach */

#define SIGSTOP 19

struct event {
	u32 type;
	u32 tgid;      /* who */
	u64 value;     /* child's tgid, or the cookie; EVENT_RETURN: its low 32 bits, and the layout above them */
	u64 address;   /* EVENT_RETURN: of the return site */
};

#endif
