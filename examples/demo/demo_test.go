package main

import (
	"bytes"
	"context"
	"hash/adler32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"runtime/pprof"
	"sort"
	"strings"
	"testing"
	"time"
)

func serveTest(t *testing.T) (*httptest.Server, context.CancelFunc) {
	t.Helper()
	stopping, stop := context.WithCancel(context.Background())
	server := httptest.NewServer(newHandler(newShop(), "v1", stopping))
	t.Cleanup(func() {
		setRegression("none")
		stop()
		server.Close()
	})
	return server, stop
}

func fetch(t *testing.T, method, url string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

// What a page answers must not depend on which function regresses, or v2 would do other work.
func TestPagesAnswerTheSameUnderEveryRegression(t *testing.T) {
	server, _ := serveTest(t)
	want := map[string]string{}
	names := []string{"none"}
	for _, c := range candidates {
		names = append(names, c.name)
	}
	for _, name := range names {
		if err := setRegression(name); err != nil {
			t.Fatal(err)
		}
		for _, at := range routes {
			if at.path == "/checkout" || at.path == "/watch" {
				continue // the stock changes; nothing is computed
			}
			code, body, _ := fetch(t, "GET", server.URL+at.path+"?region=eu&seed=12345")
			if code != 200 || len(body) < 40 {
				t.Fatalf("%s: status %d, %d bytes", at.path, code, len(body))
			}
			if name == "none" {
				want[at.path] = body
			} else if body != want[at.path] {
				t.Errorf("%s answers otherwise while %s regresses", at.path, name)
			}
		}
	}
}

func TestRegressionPage(t *testing.T) {
	server, _ := serveTest(t)
	for _, c := range []struct {
		method, name string
		code         int
		body         string
	}{
		{"GET", "", 200, "none\n"},
		{"POST", "rankOffers", 200, "rankOffers\n"},
		{"GET", "", 200, "rankOffers\n"},
		{"POST", "nonesuch", 400,
			"unknown regression \"nonesuch\": one of --list-regressions or none\n"},
		{"POST", "", 400, "unknown regression \"\": one of --list-regressions or none\n"},
		{"GET", "", 200, "rankOffers\n"},
		{"PUT", "none", 405, "method not allowed\n"},
		{"POST", "none", 200, "none\n"},
	} {
		page := server.URL + "/-/regression?name=" + url.QueryEscape(c.name)
		code, body, _ := fetch(t, c.method, page)
		if code != c.code || body != c.body {
			t.Errorf("%s %q: %d %q, want %d %q",
				c.method, c.name, code, body, c.code, c.body)
		}
	}
}

func TestRoundsGrowForTheRegressedOnly(t *testing.T) {
	defer setRegression("none")
	for i, c := range candidates {
		if err := setRegression(c.name); err != nil {
			t.Fatal(err)
		}
		for k, other := range candidates {
			want := other.rounds
			if k == i {
				want *= slowdown
			}
			if got := rounds(int32(k)); got != want {
				t.Errorf("%s regresses: %s takes %d rounds, want %d",
					c.name, other.name, got, want)
			}
		}
	}
}

func TestReadyAndWatch(t *testing.T) {
	server, stop := serveTest(t)
	for _, c := range []struct {
		path string
		code int
		body string
	}{
		{"/-/ready", 200, "ready\n"},
		{"/watch?wait=10ms", 200, "nothing new\n"},
		{"/watch?wait=31s", 400, "wait must be a duration of at most 30s\n"},
		{"/watch", 400, "wait must be a duration of at most 30s\n"},
		{"/nonesuch", 404, "404 page not found\n"},
	} {
		code, body, _ := fetch(t, "GET", server.URL+c.path)
		if code != c.code || body != c.body {
			t.Errorf("%s: %d %q, want %d %q", c.path, code, body, c.code, c.body)
		}
	}
	stop()
	code, body, _ := fetch(t, "GET", server.URL+"/-/ready")
	if code != 503 || body != "stopping\n" {
		t.Errorf("after stop: %d %q", code, body)
	}
}

// The leaks grow with the requests that cause them, and end at their limit.
func TestLeaks(t *testing.T) {
	s := newShop()
	s.leaks = newLeak()
	server := httptest.NewServer(newHandler(s, "v1", context.Background()))
	defer server.Close()
	for i := 0; i < 3; i++ {
		fetch(t, "GET", server.URL+"/checkout?seed=1")
		fetch(t, "GET", server.URL+"/export?seed=1")
	}
	if kept := len(s.leaks.receipts); kept != 3 {
		t.Errorf("3 checkouts keep %d receipts", kept)
	}
	// Goroutines begin and end a moment later.
	waiting := func(want int) int {
		n := -1
		for i := 0; i < 1000 && n != want; i++ {
			var stacks bytes.Buffer
			pprof.Lookup("goroutine").WriteTo(&stacks, 2)
			n = strings.Count(stacks.String(), ".awaitReview(")
			time.Sleep(time.Millisecond)
		}
		return n
	}
	if n := waiting(3); n != 3 {
		t.Errorf("3 exports leave %d goroutines", n)
	}
	for i := 3; i < receiptsMax; i++ {
		s.leaks.keepReceipt([]byte("paid"))
	}
	if kept := len(s.leaks.receipts); kept != 0 {
		t.Errorf("%d receipts are kept at the limit", kept)
	}
	if n := waiting(0); n != 0 {
		t.Errorf("%d goroutines are left at the limit", n)
	}
}

func TestWorkIsRight(t *testing.T) {
	cents := make([]int64, 3)
	if n := parsePrices([]byte("1.20\n30.04\n"), cents); n != 2 ||
		!reflect.DeepEqual(cents, []int64{120, 3004, 0}) {
		t.Errorf("parsePrices: %d, %v", n, cents)
	}
	page := make([]byte, 2*cartWidth)
	want := strings.Repeat(".", cartWidth-6) + "12,34\n" +
		strings.Repeat(".", cartWidth-7) + "987,65\n"
	if n := renderCart([]int64{1234, 98765, 1}, page); string(page[:n]) != want {
		t.Errorf("renderCart: %q, want %q", page[:n], want)
	}
	data := []byte("sku-00001,amber anvil\n")
	if got, want := checksumExport(data), adler32.Checksum(data); got != want {
		t.Errorf("checksumExport: %08x, want %08x", got, want)
	}
	tree := &category{sold: []int64{1, 998}, below: []*category{{sold: []int64{5}}}}
	if got := sumCategory(tree); got != 7 {
		t.Errorf("sumCategory: %d, want 7", got)
	}
	scores := []float64{3, 9, 1, 7, 8, 2}
	best := make([]int, 3)
	rankOffers(scores, best)
	all := []int{0, 1, 2, 3, 4, 5}
	sort.Slice(all, func(a, b int) bool { return scores[all[a]] > scores[all[b]] })
	if !reflect.DeepEqual(best, all[:3]) {
		t.Errorf("rankOffers: %v, want %v", best, all[:3])
	}
	photo := make([]byte, photoSize*photoSize)
	thumb := make([]byte, thumbSize*thumbSize)
	for i := range photo {
		photo[i] = byte(i / photoSize / (photoSize / thumbSize)) // even rows
	}
	resizeImage(photo, thumb)
	for i, got := range thumb {
		if got != byte(i/thumbSize) {
			t.Fatalf("resizeImage: pixel %d is %d, want %d", i, got, i/thumbSize)
		}
	}
}

func TestLoadAsksForEveryPageAndStops(t *testing.T) {
	server, _ := serveTest(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := newLoad(strings.TrimPrefix(server.URL, "http://"), 100)
	go func() {
		for l.done.Load() < 20 && l.failed.Load() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	l.run(ctx)
	if failed := l.failed.Load(); failed != 0 {
		t.Errorf("%d requests failed", failed)
	}
	if left := l.watching.Load(); left != 0 {
		t.Errorf("%d watchers left", left)
	}
}
