// Demo is a small online shop to profile: pages of clearly different cost, pprof labels, its own
// customers, and, in version v2, one function that has become several times slower.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const (
	procsMax     = 2 // the service is small on a large machine too: fewer idle collectors
	rateMax      = 10000
	shutdownTime = 3 * time.Second
)

type options struct {
	listen     string
	version    string
	regression string
	rate       float64
	leak       bool
	list       bool
	printPort  bool
}

func parseOptions() (options, error) {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:6061",
		"address to serve on; port 0 takes a free one")
	flag.StringVar(&o.version, "version-label", "v1", "which version this is: v1 or v2")
	flag.StringVar(&o.regression, "regression", "",
		"function that is slower here, or none (default: none, in v2 scoreItems)")
	flag.Float64Var(&o.rate, "load", 32,
		"requests per second it sends to itself; 0 for none")
	flag.BoolVar(&o.leak, "leak", false,
		"keep each checkout's receipt and a goroutine per export, up to 96 MiB")
	flag.BoolVar(&o.list, "list-regressions", false,
		"print the functions that can regress and exit")
	flag.BoolVar(&o.printPort, "print-port", false,
		"print the address served on to standard output")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.version != "v1" && o.version != "v2" {
		return o, fmt.Errorf("--version-label is %q, must be v1 or v2", o.version)
	}
	if !(o.rate >= 0 && o.rate <= rateMax) {
		return o, fmt.Errorf("--load is %g, must be within 0 and %d", o.rate, rateMax)
	}
	if o.regression == "" {
		o.regression = "none"
		if o.version == "v2" {
			o.regression = "scoreItems"
		}
	}
	return o, setRegression(o.regression)
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("demo: ")
	o, err := parseOptions()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(2)
	}
	if o.list {
		for _, c := range candidates {
			fmt.Println(c.name)
		}
		return
	}
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

func run(o options) error {
	if os.Getenv("GOMAXPROCS") == "" && runtime.NumCPU() > procsMax {
		runtime.GOMAXPROCS(procsMax)
	}
	runtime.MemProfileRate = 64 << 10 // small heaps, small changes: eight times as fine as usual
	runtime.SetMutexProfileFraction(5)
	runtime.SetBlockProfileRate(int(100 * time.Microsecond))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	addr := listener.Addr().String()
	s := newShop()
	if o.leak {
		s.leaks = newLeak()
	}
	// Requests live in ctx: watchers and a profile being taken end early when the shop closes.
	server := &http.Server{
		Handler:           newHandler(s, o.version, ctx),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	log.Printf("%s on http://%s regression=%s load=%g/s", o.version, addr, o.regression, o.rate)
	if o.printPort {
		fmt.Println(addr)
	}

	customers := newLoad(addr, o.rate)
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		if o.rate > 0 {
			customers.run(ctx)
		}
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	stop() // a second signal ends the process at once
	<-loaded
	limit, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := server.Shutdown(limit); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	log.Printf("stopped: requests=%d failed=%d skipped=%d", customers.done.Load(),
		customers.failed.Load(), customers.skipped.Load())
	return nil
}
