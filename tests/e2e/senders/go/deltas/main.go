// A program with godeltaprof's endpoints beside Go's own, one of them under another path too. GET /work?n=N allocates N MiB, all of which its profiles have
// when the answer comes.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"runtime"
	"strconv"

	deltas "github.com/grafana/pyroscope-go/godeltaprof/http/pprof"
)

var kept []byte

//go:noinline
func loadCart(n int) {
	for range n {
		kept = make([]byte, 1<<20)
	}
}

func main() {
	runtime.MemProfileRate = 1
	http.HandleFunc("/work", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("n"))
		loadCart(n)
		for range 3 { // a profile has what was allocated before the last collection but one
			runtime.GC()
		}
	})
	http.HandleFunc("/internal/heap", deltas.Heap)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	panic(http.Serve(listener, nil))
}
