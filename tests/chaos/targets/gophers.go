// Goroutines call counted functions, their stacks grow and move under them, panics are recovered, garbage is collected.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var workCalls, growCalls, panicCalls, recovered int64

//go:noinline
func work(number int) int {
	atomic.AddInt64(&workCalls, 1)
	return number + grow(number%12)
}

//go:noinline
func grow(depth int) int {
	atomic.AddInt64(&growCalls, 1)
	var big [1024]byte
	big[depth] = 1
	if depth > 0 {
		return grow(depth-1) + int(big[depth])
	}
	return int(big[0])
}

//go:noinline
func panics(number int) {
	atomic.AddInt64(&panicCalls, 1)
	if number%3 == 0 {
		panic("every third")
	}
}

func guarded(number int) {
	defer func() {
		if recover() != nil {
			atomic.AddInt64(&recovered, 1)
		}
	}()
	panics(number)
}

func awaitLine() {
	one := make([]byte, 1)
	for {
		if n, err := os.Stdin.Read(one); n != 1 || err != nil || one[0] == '\n' {
			return
		}
	}
}

func main() {
	awaitLine()
	var sum int64
	for round := 0; round < 20; round++ {
		var group sync.WaitGroup
		for g := 0; g < 16; g++ {
			group.Add(1)
			go func() { // a small new stack each
				defer group.Done()
				for i := 0; i < 20; i++ {
					atomic.AddInt64(&sum, int64(work(i)))
					guarded(i)
					runtime.Gosched()
				}
			}()
		}
		group.Wait()
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Printf("{\"main.work\": %d, \"main.grow\": %d, \"main.panics\": %d, \"recovered\": %d, \"sum\": %d}\n",
		workCalls, growCalls, panicCalls, recovered, sum)
	awaitLine()
	os.Exit(20)
}
