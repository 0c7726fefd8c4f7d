// Answers of Prometheus's own engine to queries over numbers. Rows of standard input are written to standard output, each
// query with its answer below:
//
//	clear
//	number STEP LABELS VALUE ...     from 0 on, a value every STEP seconds; _ is none, stale a stale mark
//	at TIME QUERY
//	range START END STEP QUERY
package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// base is the time that rows count from: a multiple of most steps.
const base = 1209600000 * time.Second

type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

type series struct {
	labels  labels.Labels
	samples []sample
}

// numbers are a storage of series in memory.
type numbers []series

type querier struct {
	all        numbers
	mint, maxt int64
}

func (n numbers) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{n, mint, maxt}, nil
}

func (q *querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q *querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q *querier) Close() error { return nil }

type set struct {
	v []storage.Series
	i int
}

func (s *set) Next() bool                        { s.i++; return s.i <= len(s.v) }
func (s *set) At() storage.Series                { return s.v[s.i-1] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

func (q *querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	var out []storage.Series
	for _, s := range q.all {
		ok := true
		for _, m := range ms {
			ok = ok && m.Matches(s.labels.Get(m.Name))
		}
		if !ok {
			continue
		}
		var kept []chunks.Sample
		for _, x := range s.samples {
			if x.t >= q.mint && x.t <= q.maxt {
				kept = append(kept, x)
			}
		}
		if len(kept) > 0 {
			out = append(out, storage.NewListSeries(s.labels, kept))
		}
	}
	slices.SortFunc(out, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &set{v: out}
}

func number(text string) float64 {
	if text == "stale" {
		return math.Float64frombits(value.StaleNaN)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return v
}

func seconds(text string) time.Duration {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return time.Duration(math.Round(v*1000)) * time.Millisecond
}

// metric is written as labels_print writes it.
func metric(l labels.Labels) string {
	name := l.Get("__name__")
	if !plain(name, true) {
		name = ""
	}
	var rest []string
	l.Range(func(x labels.Label) {
		if x.Name == "__name__" && name != "" {
			return
		}
		n := x.Name
		if !plain(n, false) {
			n = strconv.Quote(n)
		}
		rest = append(rest, n+"="+strconv.Quote(x.Value))
	})
	if len(rest) == 0 && name != "" {
		return name
	}
	return name + "{" + strings.Join(rest, ", ") + "}"
}

func plain(s string, colons bool) bool {
	for i, c := range s {
		if !(c == '_' || c == ':' && colons || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

func shown(v float64) string {
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func stamp(ms int64) string {
	return strconv.FormatFloat(float64(ms-base.Milliseconds())/1000, 'f', -1, 64)
}

func answer(out *bufio.Writer, query promql.Query, err error) {
	if err != nil {
		fmt.Fprintf(out, "\trefused\n")
		if os.Getenv("ORACLE_ERRORS") != "" {
			fmt.Fprintf(os.Stderr, "%v\n", err)
		}
		return
	}
	r := query.Exec(context.Background())
	defer query.Close()
	if r.Err != nil {
		fmt.Fprintf(out, "\terror: %s\n", strings.ReplaceAll(r.Err.Error(), "\n", " "))
		return
	}
	switch v := r.Value.(type) {
	case promql.Scalar:
		fmt.Fprintf(out, "\t%s\n", shown(v.V))
	case promql.String:
		fmt.Fprintf(out, "\t%s\n", v.V)
	case promql.Vector:
		for _, s := range v {
			fmt.Fprintf(out, "\t%s %s\n", metric(s.Metric), shown(s.F))
		}
	case promql.Matrix:
		slices.SortFunc(v, func(a, b promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
		for _, s := range v {
			fmt.Fprintf(out, "\t%s", metric(s.Metric))
			for _, p := range s.Floats {
				fmt.Fprintf(out, " %s=%s", stamp(p.T), shown(p.F))
			}
			fmt.Fprintln(out)
		}
	}
	_, infos := r.Warnings.AsStrings("", 0, 0)
	slices.Sort(infos)
	for _, w := range infos {
		fmt.Fprintf(out, "\tinfo: %s\n", strings.TrimPrefix(w, "PromQL info: "))
	}
}

func main() {
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true})
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10000000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60000 },
		EnableAtModifier:         true, EnableNegativeOffset: true, Parser: p,
	})
	var all numbers
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		line := in.Text()
		word, rest, _ := strings.Cut(line, " ")
		if word == "" || strings.HasPrefix(line, "\t") {
			continue
		}
		fmt.Fprintln(out, line)
		next := func() (w string) {
			w, rest, _ = strings.Cut(rest, " ")
			return w
		}
		switch word {
		case "clear":
			all = nil
		case "number":
			step := seconds(next())
			end := 0
			for quoted := false; end < len(rest) && (quoted || rest[end] != ' '); end++ {
				if rest[end] == '"' {
					quoted = !quoted
				} else if rest[end] == '\\' {
					end++
				}
			}
			l, err := p.ParseMetric(rest[:end])
			if err != nil {
				panic(fmt.Sprint(line, ": ", err))
			}
			s := series{labels: l}
			for i, v := range strings.Fields(rest[end:]) {
				if v != "_" {
					s.samples = append(s.samples, sample{(base + time.Duration(i)*step).Milliseconds(), number(v)})
				}
			}
			all = append(all, s)
		case "at":
			t := time.UnixMilli(0).Add(base + seconds(next()))
			q, err := engine.NewInstantQuery(context.Background(), all, nil, rest, t)
			answer(out, q, err)
		case "range":
			from, to, step := seconds(next()), seconds(next()), seconds(next())
			q, err := engine.NewRangeQuery(context.Background(), all, nil, rest, time.UnixMilli(0).Add(base+from), time.UnixMilli(0).Add(base+to), step)
			answer(out, q, err)
		default:
			panic(line)
		}
	}
}
