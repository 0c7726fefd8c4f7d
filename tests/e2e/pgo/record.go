//go:build record

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

const (
	rate    = 500 // samples per second of CPU time
	cpuTime = 400 * time.Millisecond
	wallMax = 30 * time.Second
)

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func record(file string, work func()) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	runtime.SetCPUProfileRate(rate) // StartCPUProfile complains that it is set, and leaves it
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	for from, end := used(), time.Now().Add(wallMax); used()-from < cpuTime && time.Now().Before(end); {
		work()
	}
	pprof.StopCPUProfile()
	return f.Close()
}

// main writes a CPU profile of each work to a directory: record DIR.
func main() {
	for name, work := range works {
		if err := record(filepath.Join(os.Args[1], name+".pb.gz"), work); err != nil {
			panic(err)
		}
	}
}
