// Profefe sends and reads as profefe's own programs do. Their module is in no registry, so this makes the requests that
// their sources make:
//
//	profefe agent ADDR DIR SERVICE [KEY VALUE]...  each profile of this process, as profefe's agent sends it; also in DIR
//	profefe kube ADDR FILE SERVICE POD             one CPU profile, as kube-profefe's capture and kprofefe send it
//	profefe list ADDR SERVICE TYPE                 as `kubectl profefe get profiles` asks, of the last day
//	profefe services ADDR                          as `kubectl profefe get services` asks
//	profefe times TEXT...                          which texts Go's parser takes as profefe asks it: "taken" or "-"
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"
)

const layout = "2006-01-02T15:04:05"

var (
	kinds = []string{"cpu", "heap", "block", "mutex", "goroutine", "threadcreate"}
	kept  [][]byte
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// burn uses the processor, allocates and waits for a lock, so that no profile is empty.
func burn(d time.Duration) {
	var mu sync.Mutex
	var done sync.WaitGroup
	for i := 0; i < 2; i++ {
		done.Add(1)
		go func() {
			defer done.Done()
			for end := time.Now().Add(d); time.Now().Before(end); {
				mu.Lock()
				hold(time.Millisecond)
				mu.Unlock()
			}
		}()
	}
	done.Wait()
	kept = append(kept, make([]byte, 4<<20))
}

func hold(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

func collect(kind string, buf *bytes.Buffer) error {
	switch kind {
	case "cpu":
		if err := pprof.StartCPUProfile(buf); err != nil {
			return err
		}
		burn(500 * time.Millisecond)
		pprof.StopCPUProfile()
		return nil
	case "heap":
		runtime.GC()
		return pprof.WriteHeapProfile(buf)
	}
	return pprof.Lookup(kind).WriteTo(buf, 0)
}

// attempt sends a body once; the answer's body is the caller's.
func attempt(method, address string, headers http.Header, body []byte) (int, []byte) {
	req, err := http.NewRequest(method, address, bytes.NewBuffer(body))
	check(err)
	for k, v := range headers {
		req.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(req)
	check(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	check(err)
	return resp.StatusCode, answer
}

type found struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Service   string    `json:"service"`
	CreatedAt time.Time `json:"created_at"`
}

func (f found) String() string {
	return fmt.Sprintf("%s %s %s %s", f.ID, f.Type, f.Service, f.CreatedAt.Format(time.RFC3339))
}

// decode reads an answer's body, or ends with the server's error.
func decode(status int, answer []byte, body interface{}) {
	envelope := struct {
		Code  int             `json:"code"`
		Body  json.RawMessage `json:"body"`
		Error string          `json:"error"`
	}{}
	check(json.Unmarshal(answer, &envelope))
	if status != http.StatusOK {
		check(fmt.Errorf("%d: %s", status, envelope.Error))
	}
	if envelope.Code != status {
		check(fmt.Errorf("code %d in an answer of %d", envelope.Code, status))
	}
	check(json.Unmarshal(envelope.Body, body))
}

func agent(addr, dir, service string, labels []string) {
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	var raw strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		if i > 0 {
			raw.WriteByte(',')
		}
		raw.WriteString(url.QueryEscape(labels[i]) + "=" + url.QueryEscape(labels[i+1]))
	}
	for _, kind := range kinds {
		var buf bytes.Buffer
		var f found
		check(collect(kind, &buf))
		check(os.WriteFile(filepath.Join(dir, kind+".pb.gz"), buf.Bytes(), 0o644))
		q := url.Values{"service": {service}, "labels": {raw.String()}, "type": {kind}}
		status, answer := attempt(http.MethodPost, addr+"/api/0/profiles?"+q.Encode(), nil, buf.Bytes())
		decode(status, answer, &f)
		fmt.Println(f)
	}
}

func kube(addr, file, service, pod string) {
	body, err := os.ReadFile(file)
	check(err)
	q := url.Values{}
	q.Add("service", service)
	q.Add("instance_id", "10.0.0.7")
	q.Add("type", "cpu")
	q.Add("labels", ",namespace=web,from=kube-profefe,pod="+pod)
	headers := http.Header{"Useragent": {"kubectl-profefe"}, "Content-Type": {"application/octet-stream"}}
	var f found
	status, answer := attempt(http.MethodPost, addr+"/api/0/profiles?"+q.Encode(), headers, body)
	decode(status, answer, &f)
	fmt.Println(f)
}

func list(addr, service, kind string) {
	now := time.Now().UTC()
	q := url.Values{"service": {service}, "type": {kind}}
	q.Add("from", now.Add(-24*time.Hour).Format(layout))
	q.Add("to", now.Format(layout))
	var all []found
	status, answer := attempt(http.MethodGet, addr+"/api/0/profiles?"+q.Encode(), nil, nil)
	decode(status, answer, &all)
	for _, f := range all {
		fmt.Println(f)
	}
}

func services(addr string) {
	var all []string
	status, answer := attempt(http.MethodGet, addr+"/api/0/services", nil, nil)
	decode(status, answer, &all)
	fmt.Println(strings.Join(all, "\n"))
}

func times(texts []string) {
	for _, text := range texts {
		if at, err := time.Parse(layout, text); err != nil || at.IsZero() {
			fmt.Println("-")
		} else {
			fmt.Println("taken")
		}
	}
}

func main() {
	args := os.Args[1:]
	switch {
	case len(args) >= 4 && args[0] == "agent":
		agent(args[1], args[2], args[3], args[4:])
	case len(args) == 5 && args[0] == "kube":
		kube(args[1], args[2], args[3], args[4])
	case len(args) == 4 && args[0] == "list":
		list(args[1], args[2], args[3])
	case len(args) == 2 && args[0] == "services":
		services(args[1])
	case len(args) >= 1 && args[0] == "times":
		times(args[1:])
	default:
		check(fmt.Errorf("unknown arguments: %q", args))
	}
}
