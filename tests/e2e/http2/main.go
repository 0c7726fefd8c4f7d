// Http2 is a target that speaks only HTTP/2, with net/http/pprof behind TLS: http2 CERT KEY prints its address. Each
// request is told on standard error: its protocol, path, and how many connections there have been.
package main

import (
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"sync/atomic"
)

func work() {
	for n := 0; ; n++ {
		sink = fmt.Sprint(n)
	}
}

var sink string

func main() {
	cert, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	var connections int64
	server := &http.Server{
		TLSConfig: config,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				atomic.AddInt64(&connections, 1)
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(os.Stderr, r.Proto, r.URL.Path, atomic.LoadInt64(&connections))
			http.DefaultServeMux.ServeHTTP(w, r)
		}),
	}
	go work()
	fmt.Println(listener.Addr())
	log.Fatal(server.Serve(tls.NewListener(listener, config)))
}
