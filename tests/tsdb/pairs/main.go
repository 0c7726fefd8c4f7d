// Two scrapes each of the allocs, block and mutex profiles of one process, with work before, between and in new
// places: what cumulative columns look like. Writes NAME1.pb.gz and NAME2.pb.gz into the directory given.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var sink [][]byte

func allocate(n int) {
	for i := 0; i < n; i++ {
		sink = append(sink, make([]byte, 1000+i%7*5000))
	}
	if len(sink) > 200 {
		sink = sink[:0]
	}
}

func compressSome() {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for i := 0; i < 2000; i++ {
		fmt.Fprintf(w, "line %d\n", i*i)
	}
	w.Close()
}

func contend() {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := 0; i < 4; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := 0; k < 20; k++ {
				mu.Lock()
				time.Sleep(200 * time.Microsecond)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
}

func wait() {
	c := make(chan int)
	go func() {
		time.Sleep(3 * time.Millisecond)
		c <- 1
	}()
	<-c
}

func write(dir string, n int) {
	// A heap profile shows what was allocated before the last two collections.
	runtime.GC()
	runtime.GC()
	for _, name := range []string{"allocs", "block", "mutex"} {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s%d.pb.gz", name, n)))
		if err != nil {
			log.Fatal(err)
		}
		if err := pprof.Lookup(name).WriteTo(f, 0); err != nil {
			log.Fatal(err)
		}
		if err := f.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

func main() {
	runtime.MemProfileRate = 512
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	allocate(300)
	compressSome()
	contend()
	write(os.Args[1], 1)
	allocate(500)
	compressSome()
	contend()
	wait()
	write(os.Args[1], 2)
}
