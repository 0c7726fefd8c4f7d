package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net/http"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

const (
	inFlightMax  = 16
	watchersMean = 12
	watchersWave = 10 // how far the number of watchers swings from its mean
	wavePeriod   = 2 * time.Minute
)

// load is the shop's own customers: an open loop at a fixed rate, so that the cost of the
// process follows the cost of its code, through the same fixed mix again and again, so that two
// versions are asked for the same.
type load struct {
	base   string // "http://127.0.0.1:6061"
	rate   float64
	client *http.Client

	done    atomic.Int64
	failed  atomic.Int64
	skipped atomic.Int64 // requests whose turn came while inFlightMax were under way

	watching atomic.Int64
	waiting  sync.WaitGroup
}

func newLoad(addr string, rate float64) *load {
	return &load{
		base: "http://" + addr,
		rate: rate,
		client: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: inFlightMax + watchersMean + watchersWave,
			IdleConnTimeout:     30 * time.Second,
		}},
	}
}

// run sends requests until ctx is done, and returns when all are answered.
func (l *load) run(ctx context.Context) {
	pprof.Do(ctx, pprof.Labels("component", "load"), func(ctx context.Context) {
		l.waiting.Add(1)
		go l.holdWatchers(ctx)
		l.sendCycles(ctx)
	})
	l.waiting.Wait()
	l.client.CloseIdleConnections()
}

// cycle is each path as often as it weighs, shuffled.
func cycle(rnd *rand.Rand) []string {
	var paths []string
	for _, at := range routes {
		for i := 0; i < at.weight; i++ {
			paths = append(paths, at.path)
		}
	}
	rnd.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	return paths
}

func (l *load) sendCycles(ctx context.Context) {
	rnd := rand.New(rand.NewSource(2))
	free := make(chan struct{}, inFlightMax)
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := time.Now()
	paths := cycle(rnd)
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		url := fmt.Sprintf("%s%s?region=%s&seed=%d", l.base, paths[turn%len(paths)],
			regions[rnd.Intn(len(regions))], rnd.Intn(seedMax))
		select {
		case free <- struct{}{}:
			l.waiting.Add(1)
			go func() {
				defer l.waiting.Done()
				l.get(ctx, url)
				<-free
			}()
		default:
			l.skipped.Add(1)
		}
		// Up to half a turn early or late; a machine that slept does not make up for it.
		due = due.Add(time.Duration((0.5 + rnd.Float64()) / l.rate * float64(time.Second)))
		if now := time.Now(); due.Before(now.Add(-time.Second)) {
			due = now
		}
		timer.Reset(time.Until(due))
	}
}

// holdWatchers keeps a number of long requests open that rises and falls in a slow wave.
func (l *load) holdWatchers(ctx context.Context) {
	defer l.waiting.Done()
	rnd := rand.New(rand.NewSource(3))
	began := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		angle := 2 * math.Pi * time.Since(began).Seconds() / wavePeriod.Seconds()
		want := int64(watchersMean + watchersWave*math.Sin(angle))
		for l.watching.Load() < want {
			l.watching.Add(1)
			l.waiting.Add(1)
			url := fmt.Sprintf("%s/watch?region=%s&wait=%dms", l.base,
				regions[rnd.Intn(len(regions))], 4000+rnd.Intn(4000))
			go func() {
				defer l.waiting.Done()
				l.get(ctx, url)
				l.watching.Add(-1)
			}()
		}
	}
}

// get fetches a page and throws it away; a request cut off by the end of ctx is no failure.
func (l *load) get(ctx context.Context, url string) {
	err := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := l.client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err = io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	}()
	if err == nil {
		l.done.Add(1)
	} else if ctx.Err() == nil {
		l.failed.Add(1)
	}
}
