// Merge prints the seconds google/pprof takes to parse and merge all files named on standard input, a file a line
// (a name may stand there many times), best of three rounds: the yardstick of the server's merge.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/google/pprof/profile"
)

func main() {
	runtime.GOMAXPROCS(1)
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
	best := 0.0
	var total int64
	for round := 0; round < 3; round++ {
		begin := time.Now()
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
		took := time.Since(begin).Seconds()
		if best == 0 || took < best {
			best = took
		}
		total = 0
		for _, s := range merged.Sample {
			total += s.Value[len(s.Value)-1]
		}
	}
	fmt.Println(best, total)
}
