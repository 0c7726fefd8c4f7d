package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

// serve takes requests as a receiver with a file exporter does, the least that stores: it decodes the body, appends it to
// the file, and answers after the sync. The port is its first line.
func serve(name string) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	var lock sync.Mutex
	store := func(body []byte) error {
		lock.Lock()
		defer lock.Unlock()
		if _, err := file.Write(body); err != nil {
			return err
		}
		return file.Sync()
	}
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = pprofileotlp.NewExportRequest().UnmarshalProto(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := store(body); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
}
