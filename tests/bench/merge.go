// Merge prints what the last sample type adds up to, then the CPU seconds google/pprof takes to parse and merge all
// files named on standard input, round by round; a file a line (a name may stand there many times).
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/google/pprof/profile"
)

func read() [][]byte {
	var bodies [][]byte
	seen := map[string][]byte{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		name := lines.Text()
		if seen[name] == nil {
			body, err := os.ReadFile(name)
			if err != nil {
				panic(err)
			}
			seen[name] = body
		}
		bodies = append(bodies, seen[name])
	}
	return bodies
}

// Of the process, so that other work on the machine does not count.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func merge(bodies [][]byte) (*profile.Profile, float64) {
	begin := cpu()
	profiles := make([]*profile.Profile, len(bodies))
	for i, body := range bodies {
		p, err := profile.ParseData(body)
		if err != nil {
			panic(err)
		}
		profiles[i] = p
	}
	merged, err := profile.Merge(profiles)
	if err != nil {
		panic(err)
	}
	return merged, (cpu() - begin).Seconds()
}

func main() {
	runtime.GOMAXPROCS(1)
	bodies := read()
	for round := 0; round < 3; round++ {
		merged, took := merge(bodies)
		if round == 0 {
			var total int64
			for _, s := range merged.Sample {
				total += s.Value[len(s.Value)-1]
			}
			fmt.Print(total)
		}
		fmt.Print(" ", took)
		runtime.GC()
	}
	fmt.Println()
}
