// A program that Pyroscope's SDK for Go profiles: it computes and allocates until its standard input ends, then it says how
// much CPU time it used.
package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/grafana/pyroscope-go"
)

var kept [64][]byte
var sum uint64

//go:noinline
func priceCart(n uint64) {
	for i := uint64(0); i < n; i++ {
		sum = sum*6364136223846793005 + i
	}
}

//go:noinline
func loadItems(i int) {
	kept[i%len(kept)] = make([]byte, 64<<10)
}

func cpuTime() int64 {
	var u syscall.Rusage

	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func main() {
	done := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(done)
	}()
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: os.Args[2],
		ServerAddress:   os.Args[1],
		Tags:            map[string]string{"region": "here"},
		UploadRate:      2 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		select {
		case <-done:
			used := cpuTime()
			profiler.Flush(true)
			if err := profiler.Stop(); err != nil {
				panic(err)
			}
			fmt.Printf("{\"cpu_ns\": %d}\n", used)
			return
		default:
			priceCart(20 << 20)
			loadItems(i)
			time.Sleep(10 * time.Millisecond)
		}
	}
}
