// The calls of Grafana's profilecli, made by the client that it is built with: Pyroscope's generated one.
//
// usage: profilecli [-protocol P] [-type T] [-query Q] [-from MS] [-to MS] URL COMMAND [ARGUMENT...]
//
// Prints the answer as JSON or, of profiles, writes pprof to the file that is the first argument. Exit code 1: the error is
// on standard error, as profilecli prints it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	google "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	push "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	querier "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	query "github.com/grafana/pyroscope/api/gen/proto/go/query/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/query/v1/queryv1connect"
	types "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
)

var (
	protocol = flag.String("protocol", "connect", "connect, grpc or grpc-web")
	typeID   = flag.String("type", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "profile type")
	selector = flag.String("query", "{}", "label selector")
	from     = flag.Int64("from", 0, "milliseconds since 1970")
	to       = flag.Int64("to", 0, "milliseconds since 1970")
)

// agent adds what profilecli says about itself.
type agent struct{}

func (agent) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "pyroscope/2.3.0")
	r.Header.Add("Accept", "*/*;allow-utf8-labelnames=true")
	return http.DefaultTransport.RoundTrip(r)
}

type client struct {
	querierv1connect.QuerierServiceClient
	url     string
	http    *http.Client
	options []connect.ClientOption
	args    []string
}

func (c *client) argument(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

func show(v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		fmt.Println(string(text))
	}
	return err
}

func (c *client) save(p *google.Profile) error {
	bytes, err := proto.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(c.argument(0), bytes, 0o644)
}

// frontend is what profilecli asks first: a server of Pyroscope's second kind answers it.
func (c *client) frontend(ctx context.Context) error {
	_, err := queryv1connect.NewQueryFrontendServiceClient(c.http, c.url, c.options...).Query(ctx,
		connect.NewRequest(&query.QueryRequest{StartTime: *from, EndTime: *to, LabelSelector: *selector}))
	code := connect.CodeOf(err)
	if err == nil || code == connect.CodeUnimplemented || code == connect.CodeNotFound {
		return nil
	}
	return fmt.Errorf("query frontend: %w", err)
}

func (c *client) profile(ctx context.Context, stacks *types.StackTraceSelector) error {
	r, err := c.SelectMergeProfile(ctx, connect.NewRequest(&querier.SelectMergeProfileRequest{
		ProfileTypeID: *typeID, LabelSelector: *selector, Start: *from, End: *to, StackTraceSelector: stacks}))
	if err != nil {
		return err
	}
	return c.save(r.Msg)
}

func (c *client) stacktraces(ctx context.Context, format querier.ProfileFormat) (*querier.SelectMergeStacktracesResponse, error) {
	r, err := c.SelectMergeStacktraces(ctx, connect.NewRequest(&querier.SelectMergeStacktracesRequest{
		ProfileTypeID: *typeID, LabelSelector: *selector, Start: *from, End: *to, Format: format}))
	if err != nil {
		return nil, err
	}
	return r.Msg, nil
}

func (c *client) tree(ctx context.Context) error {
	m, err := c.stacktraces(ctx, querier.ProfileFormat_PROFILE_FORMAT_TREE)
	if err != nil {
		return err
	}
	return show(m.Tree)
}

func (c *client) dot(ctx context.Context) error {
	m, err := c.stacktraces(ctx, querier.ProfileFormat_PROFILE_FORMAT_DOT)
	if err != nil {
		return err
	}
	return show(m.Dot)
}

func (c *client) callSite(ctx context.Context) error {
	var site []*types.Location
	for _, name := range c.args[1:] {
		site = append(site, &types.Location{Name: name})
	}
	return c.profile(ctx, &types.StackTraceSelector{CallSite: site})
}

// goPGO takes a file, the number of locations to keep, and whether callees are aggregated.
func (c *client) goPGO(ctx context.Context) error {
	keep, err := strconv.ParseUint(c.argument(1), 10, 32)
	if err != nil {
		return err
	}
	return c.profile(ctx, &types.StackTraceSelector{GoPgo: &types.GoPGO{
		KeepLocations: uint32(keep), AggregateCallees: c.argument(2) == "true"}})
}

func (c *client) series(ctx context.Context) error {
	r, err := c.Series(ctx, connect.NewRequest(&querier.SeriesRequest{
		Start: *from, End: *to, Matchers: []string{*selector}, LabelNames: c.args}))
	if err != nil {
		return err
	}
	return show(r.Msg.LabelsSet)
}

// selectSeries is top (one step, grouped), exemplars and list-profile-ids (of individual profiles).
func (c *client) selectSeries(ctx context.Context, exemplars types.ExemplarType) error {
	r, err := c.SelectSeries(ctx, connect.NewRequest(&querier.SelectSeriesRequest{
		ProfileTypeID: *typeID, LabelSelector: *selector, Start: *from, End: *to,
		Step: float64(*to-*from) / 1000, GroupBy: c.args, ExemplarType: exemplars}))
	if err != nil {
		return err
	}
	return show(r.Msg.Series)
}

// cardinality asks for the names of labels, then for the values of each.
func (c *client) cardinality(ctx context.Context) error {
	names, err := c.LabelNames(ctx, connect.NewRequest(&types.LabelNamesRequest{
		Start: *from, End: *to, Matchers: []string{*selector}}))
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, name := range names.Msg.Names {
		values, err := c.LabelValues(ctx, connect.NewRequest(&types.LabelValuesRequest{
			Name: name, Start: *from, End: *to, Matchers: []string{*selector}}))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		counts[name] = len(values.Msg.Names)
	}
	return show(counts)
}

func (c *client) profileTypes(ctx context.Context) error {
	r, err := c.ProfileTypes(ctx, connect.NewRequest(&querier.ProfileTypesRequest{Start: *from, End: *to}))
	if err != nil {
		return err
	}
	return show(r.Msg.ProfileTypes)
}

func (c *client) heatmap(ctx context.Context) error {
	_, err := c.SelectHeatmap(ctx, connect.NewRequest(&querier.SelectHeatmapRequest{
		ProfileTypeID: *typeID, LabelSelector: *selector, Start: *from, End: *to, Step: 15}))
	return err
}

// upload sends a file with the labels that follow it as NAME VALUE.
func (c *client) upload(ctx context.Context) error {
	bytes, err := os.ReadFile(c.argument(0))
	if err != nil {
		return err
	}
	var labels []*types.LabelPair
	for i := 1; i+1 < len(c.args); i += 2 {
		labels = append(labels, &types.LabelPair{Name: c.args[i], Value: c.args[i+1]})
	}
	_, err = pushv1connect.NewPusherServiceClient(c.http, c.url, c.options...).Push(ctx,
		connect.NewRequest(&push.PushRequest{Series: []*push.RawProfileSeries{{Labels: labels,
			Samples: []*push.RawSample{{ID: "b2d5f3a4-1c1f-4f0e-9a6d-2f1f0c7a9e11", RawProfile: bytes}}}}}))
	return err
}

func (c *client) ready(ctx context.Context) error {
	r, err := c.http.Get(c.url + "/ready")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", r.Status)
	}
	return nil
}

func run(url, command string, args []string) error {
	c := &client{url: url, http: &http.Client{Transport: agent{}}, args: args}
	switch *protocol {
	case "grpc":
		c.options = append(c.options, connect.WithGRPC())
	case "grpc-web":
		c.options = append(c.options, connect.WithGRPCWeb())
	}
	c.QuerierServiceClient = querierv1connect.NewQuerierServiceClient(c.http, url, c.options...)
	commands := map[string]func(context.Context) error{
		"profile":                  func(ctx context.Context) error { return c.profile(ctx, nil) },
		"profile-tree":             c.tree,
		"profile-dot":              c.dot,
		"call-site":                c.callSite,
		"go-pgo":                   c.goPGO,
		"series":                   c.series,
		"top":                      func(ctx context.Context) error { return c.selectSeries(ctx, types.ExemplarType_EXEMPLAR_TYPE_UNSPECIFIED) },
		"exemplars":                func(ctx context.Context) error { return c.selectSeries(ctx, types.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL) },
		"label-values-cardinality": c.cardinality,
		"profile-types":            c.profileTypes,
		"heatmap":                  c.heatmap,
		"upload":                   c.upload,
		"ready":                    c.ready,
	}
	f, ok := commands[command]
	if !ok {
		return errors.New("no such command: " + command)
	}
	ctx := context.Background()
	if command != "upload" && command != "ready" && *protocol == "connect" {
		if err := c.frontend(ctx); err != nil {
			return err
		}
	}
	return f(ctx)
}

func main() {
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), flag.Args()[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
