// Parse prints how many times a second google/pprof parses each file given: the yardstick of ingest_bench.
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/google/pprof/profile"
)

const (
	rounds = 7
	round  = 200 * time.Millisecond
)

// Of the process, so that other work on the machine does not count.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func main() {
	runtime.GOMAXPROCS(1)
	for _, name := range os.Args[1:] {
		body, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		best := 0.0
		for r := 0; r < rounds; r++ {
			n, begin := 0, cpu()
			for cpu()-begin < round {
				if _, err := profile.ParseData(body); err != nil {
					panic(err)
				}
				n++
			}
			if rate := float64(n) / (cpu() - begin).Seconds(); rate > best {
				best = rate
			}
		}
		fmt.Printf("%s %.0f\n", name, best)
	}
}
