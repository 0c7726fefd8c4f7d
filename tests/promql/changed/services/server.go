// A plain HTTP server of the standard library, with work of several kinds, for services.mjs.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

var words = regexp.MustCompile(`[a-z]+([0-9]+)`)

func size(r *http.Request) int {
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	return n
}

func list(n int) []map[string]any {
	out := make([]map[string]any, n)
	for i := range out {
		out[i] = map[string]any{"id": i, "name": "item" + strconv.Itoa(i*7919%n), "price": float64(i) / 3}
	}
	return out
}

func main() {
	http.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(list(size(r)))
	})
	http.HandleFunc("/sort", func(w http.ResponseWriter, r *http.Request) {
		v := list(size(r))
		sort.Slice(v, func(i, k int) bool { return v[i]["name"].(string) < v[k]["name"].(string) })
		fmt.Fprintln(w, v[0]["name"])
	})
	http.HandleFunc("/hash", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%x\n", sha256.Sum256(make([]byte, 1000*size(r))))
	})
	http.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		json.NewEncoder(z).Encode(list(size(r)))
		z.Close()
		w.Write(b.Bytes())
	})
	http.HandleFunc("/match", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, len(words.FindAllString(strings.Repeat("abc123 --- ", size(r)), -1)))
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	panic(http.Serve(l, nil))
}
