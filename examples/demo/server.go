package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
)

// route is a page of the shop; weight is how many of a cycle's requests the load sends there.
type route struct {
	path   string
	weight int
	serve  func(*shop, http.ResponseWriter, *http.Request)
}

var routes = []route{
	{"/search", 8, (*shop).search},
	{"/cart", 6, (*shop).cart},
	{"/checkout", 6, (*shop).checkout},
	{"/account", 6, (*shop).account},
	{"/recommend", 6, (*shop).recommend},
	{"/image", 4, (*shop).image},
	{"/export", 4, (*shop).export},
	{"/watch", 0, (*shop).watch}, // the load holds these open apart from its cycle
}

var regions = []string{"eu", "us", "ap"}

// regionOf bounds what a client can make of the label.
func regionOf(r *http.Request) string {
	asked := r.URL.Query().Get("region")
	for _, known := range regions {
		if asked == known {
			return asked
		}
	}
	return "other"
}

// newHandler gives the whole service: the shop's pages under pprof labels, the profiles, and the
// pages for operators under /-/. Once stopping is done, the service is no longer ready.
func newHandler(s *shop, version string, stopping context.Context) http.Handler {
	mux := http.NewServeMux()
	for i := range routes {
		at := routes[i]
		mux.HandleFunc(at.path, func(w http.ResponseWriter, r *http.Request) {
			labels := runtimepprof.Labels("handler", at.path, "region", regionOf(r))
			runtimepprof.Do(r.Context(), labels, func(ctx context.Context) {
				at.serve(s, w, r.WithContext(ctx))
			})
		})
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/-/ready", func(w http.ResponseWriter, r *http.Request) {
		if stopping.Err() != nil {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("/-/regression", serveRegression)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "demo shop, version %s, regression %s\n", version, regressionName())
		for _, at := range routes {
			fmt.Fprintln(w, at.path)
		}
	})
	return mux
}

// serveRegression: GET names the regressed function, POST with ?name= chooses another or none.
func serveRegression(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		if err := setRegression(r.URL.Query().Get("name")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	fmt.Fprintln(w, regressionName())
}
