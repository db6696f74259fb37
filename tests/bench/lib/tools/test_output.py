"""What other tools print is counted as calls of functions."""

from __future__ import annotations

from bench.lib.tools.output import (
    bpftrace_calls,
    funclatency_calls,
    known,
    perf_samples,
    specmine_known,
    uftrace_calls,
)

BPFTRACE = """

@hist[1]: 
[0]                    5 |                                                    |
[512, 1K)             90 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
[1K, 2K)               9 |@@@@@                                               |

@hist[0]: 
[2M, 4M)              99 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

@start[17180, 2]: 123456789
"""
FUNCLATENCY = """Tracing 2 functions for "/usr/bin/x:^(a|b)$"... Hit Ctrl-C to end.

Function = b'a' [17180]
     nsecs               : count     distribution
         0 -> 1          : 0        |                                        |
      4096 -> 8191       : 80       |****************************************|

avg = 4100 nsecs, total: 820000 nsecs, count: 80

Function = a [17181]
     nsecs               : count     distribution
      4096 -> 8191       : 40       |****************************************|

Function = b [17181]
     nsecs               : count     distribution
       128 -> 255        : 7        |****************************************|
"""
UFTRACE = """  Total time   Self time       Calls  Function
  ==========  ==========  ==========  ====================
   10.385  s   10.385  s         460  linux:schedule
  528.184 ms  528.184 ms        3867  linux:schedule (pre-empted)
    2.917  s  213.878 ms        5711  processInputBuffer
   19.348 us   19.348 us           3  operator new
"""
PERF = """# Samples: 18  of event 'cpu-clock:ppp'
#
11         |[k] _raw_spin_unlock
4          |[.] deflate
2          |[.] 0x000000000000584e
1          |[.] operator new
3          |[.] deflate
"""


def test_each_histogram_of_bpftrace_is_counted_by_its_number() -> None:
    """All buckets of a histogram count, also that of no time; other maps do not."""
    assert bpftrace_calls(BPFTRACE) == {"1": 104, "0": 99}


def test_histograms_of_funclatency_are_counted_over_processes() -> None:
    """A function that several processes call is one function; its average is no bucket."""
    assert funclatency_calls(FUNCLATENCY) == {"a": 120, "b": 7}


def test_events_of_the_kernel_are_no_functions_of_uftrace() -> None:
    """Rows of a report count by their calls, whatever their units."""
    assert uftrace_calls(UFTRACE) == {"processInputBuffer": 5711, "operator new": 3}


def test_samples_of_the_kernel_and_of_no_name_are_no_functions_of_perf() -> None:
    """Functions of one name count together, the most first."""
    assert list(perf_samples(PERF).items()) == [("deflate", 7), ("operator new", 1)]


def test_a_function_is_known_from_a_hundred_calls_on() -> None:
    """The rule is the same for all tools; levels are stated where both are."""
    assert known({"a": 100, "b": 99}) == 1
    functions = [{"timed": 100, "quantiles": {}}, {"timed": 99, "quantiles": {"p50": {}, "p99": {}}}]
    assert specmine_known(functions) == (1, 1)
