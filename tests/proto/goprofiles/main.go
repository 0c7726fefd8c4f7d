// Goprofiles writes real profiles of itself, one file per kind, for the tests of the decoder:
//
//	go build -trimpath -o /tmp/goprofiles tests/proto/goprofiles/main.go
//	/tmp/goprofiles [-cpu 2s] DIR
//
// Go 1.27 also writes goroutineleak, and so does Go 1.26 if it was built with GOEXPERIMENT=goroutineleakprofile.
//
// Its work has what the format has: labels (strings and numbers), recursion, inlined calls, generics and
// closures, several goroutines, contention, and threads that wait in the system.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
	"time"
)

type order struct {
	ID    int
	Items []string
	Notes map[string]string
}

func small(a, b int) int { return a*31 + b }

func twice(a, b int) int { return small(small(a, b), b) }

//go:noinline
func recurse(n, seed int) int {
	if n <= 0 {
		for i := 0; i < 2000; i++ {
			seed = twice(seed, i)
		}
		return seed
	}
	return recurse(n-1, twice(seed, n))
}

func mapped[T any](in []T, f func(T) T) []T {
	out := make([]T, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}

var word = regexp.MustCompile(`(\w+)-(\d+)`)

func makeOrder(i int) order {
	o := order{ID: i, Notes: map[string]string{}}
	for k := 0; k < 20; k++ {
		o.Items = append(o.Items, fmt.Sprintf("item-%d", i*k))
		o.Notes[fmt.Sprint(k)] = strings.Repeat("x", k)
	}
	return o
}

func encode(i int) {
	b, err := json.Marshal(makeOrder(i))
	if err != nil {
		panic(err)
	}
	var o order
	if err := json.Unmarshal(b, &o); err != nil {
		panic(err)
	}
}

func search(i int) {
	for _, s := range mapped(makeOrder(i).Items, strings.ToUpper) {
		word.FindStringSubmatch(s)
	}
}

func sorted(i int) {
	v := makeOrder(i).Items
	sort.Slice(v, func(a, b int) bool { return v[a] > v[b] })
	crc32.Update(uint32(recurse(i%40, i)), crc32.IEEETable, []byte(strings.Join(v, ",")))
}

var (
	lock sync.Mutex
	kept [][]byte
	sink int
)

func contended(n int) {
	for i := 0; i < n; i++ {
		lock.Lock()
		sink += recurse(8, i)
		lock.Unlock()
	}
}

func keep() {
	for size := 64; size <= 256<<10; size *= 2 {
		kept = append(kept, make([]byte, size))
	}
}

func work(ctx context.Context, until time.Time) {
	handlers := map[string]func(int){"/encode": encode, "/search": search, "/sorted": sorted}
	for i := 0; time.Now().Before(until); i++ {
		for name, f := range handlers {
			labels := pprof.Labels("handler", name, "tenant", fmt.Sprint("t", i%3))
			pprof.Do(ctx, labels, func(context.Context) { f(i) })
		}
		contended(1)
	}
}

// leak leaves a goroutine that nobody can ever receive from.
//
//go:noinline
func leak() {
	prices := make(chan int)
	go sendPrice(prices)
}

func sendPrice(prices chan int) { prices <- 1 }

func write(dir, name string, emit func(io.Writer) error) {
	var b bytes.Buffer
	if err := emit(&b); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".pb.gz"), b.Bytes(), 0o644); err != nil {
		panic(err)
	}
	fmt.Println(name, b.Len())
}

func main() {
	took := flag.Duration("cpu", 2*time.Second, "how long the CPU profile takes")
	flag.Parse()
	dir := flag.Arg(0)
	runtime.MemProfileRate = 16 << 10
	runtime.SetBlockProfileRate(1000)
	runtime.SetMutexProfileFraction(1)
	write(dir, "cpu", func(w io.Writer) error {
		if err := pprof.StartCPUProfile(w); err != nil {
			return err
		}
		var wait sync.WaitGroup
		for g := 0; g < 3; g++ {
			wait.Add(1)
			go func() {
				defer wait.Done()
				work(context.Background(), time.Now().Add(*took))
			}()
		}
		keep()
		wait.Wait()
		pprof.StopCPUProfile()
		return nil
	})
	stop := make(chan bool)
	for g := 0; g < 4; g++ {
		go pprof.Do(context.Background(), pprof.Labels("waits", "yes"), func(context.Context) { <-stop })
	}
	time.Sleep(20 * time.Millisecond)
	runtime.GC()
	for _, name := range []string{"heap", "allocs", "block", "mutex", "goroutine", "threadcreate"} {
		write(dir, name, func(w io.Writer) error { return pprof.Lookup(name).WriteTo(w, 0) })
	}
	close(stop)
	for g := 0; g < 3; g++ {
		leak()
	}
	time.Sleep(20 * time.Millisecond)
	if p := pprof.Lookup("goroutineleak"); p != nil {
		write(dir, "goroutineleak", func(w io.Writer) error { return p.WriteTo(w, 0) })
	}
}
