// Gen draws OTLP profile requests from seeds and prints what they hold, as the collector's own types decode them:
//
//	gen DIR FIRST N   writes SEED.pb, SEED.json and SEED.txt of N seeds
//	gen bench FILE    prints how many requests a second those types decode, on one core
//	gen serve FILE    takes requests over HTTP, decodes them, and appends their bodies to FILE (serve.go)
//
// The text is that of tests/proto/otlp/show.c, without the sample attributes thread.id and cpu.logical_number. Every
// third seed has its samples numbered as OTLP 1.9 did.
package main

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

var dropped = map[string]bool{"thread.id": true, "cpu.logical_number": true}

type gen struct {
	r    *rand.Rand
	d    pprofile.ProfilesDictionary
	strs map[string]int32
}

func (g *gen) str(s string) int32 {
	if i, ok := g.strs[s]; ok {
		return i
	}
	i := int32(g.d.StringTable().Len())
	g.d.StringTable().Append(s)
	g.strs[s] = i
	return i
}

func (g *gen) pick(of ...string) string { return of[g.r.IntN(len(of))] }

// value draws each kind that an attribute may have.
func (g *gen) value(v pcommon.Value, depth int) {
	switch n := g.r.IntN(9); {
	case n == 0:
		v.SetBool(g.r.IntN(2) == 0)
	case n == 1:
		v.SetInt([]int64{0, 1, -7, 1 << 60, int64(g.r.IntN(100))}[g.r.IntN(5)])
	case n == 2:
		v.SetDouble([]float64{0.5, -1.25, 3, 1024.125}[g.r.IntN(4)])
	case n == 3:
		v.SetEmptyBytes().FromRaw([]byte("some bytes \xff\x00!")[:g.r.IntN(14)])
	case n == 4 && depth < 3:
		s := v.SetEmptySlice()
		for i := g.r.IntN(4); i > 0; i-- {
			g.value(s.AppendEmpty(), depth+1)
		}
	case n == 5 && depth < 3:
		m := v.SetEmptyMap()
		for i := g.r.IntN(4); i > 0; i-- {
			g.value(m.PutEmpty(fmt.Sprint("k", i)), depth+1)
		}
	case n == 6:
	default:
		v.SetStr(g.pick("", "a", "b c", "größe", "x\"y", "/usr/bin/node"))
	}
}

func (g *gen) tables() {
	d := g.d
	g.str("")
	d.AttributeTable().AppendEmpty()
	for _, key := range []string{"process.executable.build_id.htlhash", "process.executable.build_id.go",
		"process.executable.build_id.gnu"} {
		for i := 0; i < 2; i++ {
			a := d.AttributeTable().AppendEmpty()
			a.SetKeyStrindex(g.str(key))
			a.Value().SetStr(fmt.Sprintf("%x", g.r.Uint32()))
		}
	}
	for i := 0; i < 12; i++ {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(g.str(g.pick("thread.id", "cpu.logical_number", "thread.name", "k", "bytes", "http.route")))
		g.value(a.Value(), 0)
		if g.r.IntN(3) == 0 {
			a.SetUnitStrindex(g.str(g.pick("By", "ns")))
		}
	}
	d.MappingTable().AppendEmpty()
	for i := 0; i < 4; i++ {
		m := d.MappingTable().AppendEmpty()
		m.SetMemoryStart(uint64(i) << 22)
		m.SetMemoryLimit(uint64(i+1) << 22)
		m.SetFileOffset(uint64(g.r.IntN(2)) << 12)
		m.SetFilenameStrindex(g.str(g.pick("", "/bin/x", "libc.so.6")))
		for k := g.r.IntN(3); k > 0; k-- {
			m.AttributeIndices().Append(int32(1 + g.r.IntN(d.AttributeTable().Len()-1)))
		}
	}
	for i := 0; i < 12; i++ {
		f := d.FunctionTable().AppendEmpty()
		if i > 0 {
			f.SetNameStrindex(g.str(fmt.Sprint("fn", i)))
			f.SetSystemNameStrindex(g.str(g.pick("", "_Zfn")))
			f.SetFilenameStrindex(g.str(g.pick("", "a.go", "b/c.java")))
			f.SetStartLine(int64(g.r.IntN(500)))
		}
	}
	for i := 0; i < 30; i++ {
		l := d.LocationTable().AppendEmpty()
		if i == 0 {
			continue
		}
		l.SetMappingIndex(int32(g.r.IntN(d.MappingTable().Len())))
		l.SetAddress(g.r.Uint64() >> (g.r.IntN(8) * 8))
		for k := g.r.IntN(4); k > 0; k-- {
			line := l.Lines().AppendEmpty()
			line.SetFunctionIndex(int32(g.r.IntN(d.FunctionTable().Len())))
			line.SetLine(int64(g.r.IntN(1000)))
			line.SetColumn(int64(g.r.IntN(3)))
		}
		if g.r.IntN(2) == 0 {
			l.AttributeIndices().Append(1)
		}
	}
	for i := 0; i < 15; i++ {
		s := d.StackTable().AppendEmpty()
		for k := g.r.IntN(10); i > 0 && k > 0; k-- {
			s.LocationIndices().Append(int32(g.r.IntN(d.LocationTable().Len())))
		}
	}
	for i := 0; i < 4; i++ {
		l := d.LinkTable().AppendEmpty()
		if i > 0 {
			l.SetTraceID(pcommon.TraceID{byte(i), 2, 3, 15: 0xff})
			l.SetSpanID(pcommon.SpanID{byte(i), 7: 0xee})
		}
	}
}

// sample draws each shape of values; wrong ones where the profile is to be refused.
func (g *gen) sample(s pprofile.Sample, wrong bool) {
	values, times := 0, 0
	switch g.r.IntN(3) {
	case 0:
		times = 1 + g.r.IntN(5)
	case 1:
		values = 1
	case 2:
		values = 1 + g.r.IntN(4)
		times = values
	}
	if wrong {
		values, times = []int{0, 2, 1, 3}[g.r.IntN(4)], 0
		if values > 0 {
			times = values + 1
		}
	}
	s.SetStackIndex(int32(g.r.IntN(g.d.StackTable().Len())))
	if g.r.IntN(4) == 0 {
		s.SetLinkIndex(int32(g.r.IntN(g.d.LinkTable().Len())))
	}
	for k := g.r.IntN(5); k > 0; k-- {
		s.AttributeIndices().Append(int32(g.r.IntN(g.d.AttributeTable().Len())))
	}
	for ; values > 0; values-- {
		s.Values().Append(int64(g.r.IntN(2000)) - 100)
	}
	for ; times > 0; times-- {
		s.TimestampsUnixNano().Append(1_700_000_000_000_000_000 + uint64(g.r.IntN(1<<30)))
	}
}

func (g *gen) profile(p pprofile.Profile) {
	types := [][2]string{{"samples", "count"}, {"off_cpu", "nanoseconds"}, {"inuse_space", "bytes"}}[g.r.IntN(3)]
	p.SampleType().SetTypeStrindex(g.str(types[0]))
	p.SampleType().SetUnitStrindex(g.str(types[1]))
	p.PeriodType().SetTypeStrindex(g.str(g.pick("cpu", "space")))
	p.PeriodType().SetUnitStrindex(g.str("nanoseconds"))
	p.SetPeriod(int64(g.r.IntN(3)) * 10_101_010)
	p.SetTime(pcommon.Timestamp(1_700_000_000_000_000_000 + g.r.Uint64()>>20))
	p.SetDurationNano(g.r.Uint64() >> 30)
	if g.r.IntN(2) == 0 {
		p.SetProfileID(pprofile.ProfileID{1, 2, byte(g.r.IntN(256)), 15: 9})
	}
	for k := g.r.IntN(3); k > 0; k-- {
		p.AttributeIndices().Append(int32(1 + g.r.IntN(6)))
	}
	wrong := -1
	n := g.r.IntN(25)
	if n > 0 && g.r.IntN(8) == 0 {
		wrong = g.r.IntN(n)
	}
	for i := 0; i < n; i++ {
		g.sample(p.Samples().AppendEmpty(), i == wrong)
	}
}

func draw(seed uint64) pprofile.Profiles {
	ps := pprofile.NewProfiles()
	g := gen{rand.New(rand.NewPCG(seed, 1)), ps.Dictionary(), map[string]int32{}}
	g.tables()
	for i := g.r.IntN(4); i > 0; i-- {
		rp := ps.ResourceProfiles().AppendEmpty()
		for k := g.r.IntN(6); k > 0; k-- {
			g.value(rp.Resource().Attributes().PutEmpty(g.pick("service.name", "process.pid", "host", "k8s.pod.name")), 0)
		}
		for k := g.r.IntN(3); k > 0; k-- {
			sp := rp.ScopeProfiles().AppendEmpty()
			sp.Scope().SetName(g.pick("", "go.opentelemetry.io/ebpf-profiler"))
			sp.Scope().SetVersion(g.pick("", "v1"))
			for j := g.r.IntN(4); j > 0; j-- {
				g.profile(sp.Profiles().AppendEmpty())
			}
		}
	}
	return ps
}

// ---- what the types of the collector hold, as text

var kinds = map[pcommon.ValueType]string{pcommon.ValueTypeEmpty: "empty", pcommon.ValueTypeStr: "string",
	pcommon.ValueTypeBool: "bool", pcommon.ValueTypeInt: "int", pcommon.ValueTypeDouble: "double",
	pcommon.ValueTypeSlice: "array", pcommon.ValueTypeMap: "map", pcommon.ValueTypeBytes: "bytes"}

func jsonText(v pcommon.Value) string {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		return "null"
	case pcommon.ValueTypeStr:
		return quote(v.Str())
	case pcommon.ValueTypeSlice:
		var all []string
		for i := 0; i < v.Slice().Len(); i++ {
			all = append(all, jsonText(v.Slice().At(i)))
		}
		return "[" + strings.Join(all, ",") + "]"
	case pcommon.ValueTypeMap:
		var all []string
		for k, m := range v.Map().All() {
			all = append(all, quote(k)+":"+jsonText(m))
		}
		return "{" + strings.Join(all, ",") + "}"
	case pcommon.ValueTypeBytes:
		return quote(v.AsString())
	default:
		return text(v)
	}
}

func text(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		return jsonText(v)
	case pcommon.ValueTypeDouble:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	default:
		return v.AsString()
	}
}

type shower struct {
	d   pprofile.ProfilesDictionary
	out strings.Builder
}

func (s *shower) str(i int32) string { return s.d.StringTable().At(int(i)) }

func (s *shower) lines(lines []string) {
	sort.Strings(lines)
	for _, l := range lines {
		s.out.WriteString(l + "\n")
	}
}

func (s *shower) label(index int32) string {
	a := s.d.AttributeTable().At(int(index))
	key, unit := s.str(a.KeyStrindex()), s.str(a.UnitStrindex())
	switch {
	case text(a.Value()) == "" || dropped[key] || index == 0:
		return ""
	case a.Value().Type() != pcommon.ValueTypeInt:
		return fmt.Sprintf(`%s="%s"`, key, text(a.Value()))
	case a.Value().Int() == 0 && unit == "":
		unit = key
	}
	return fmt.Sprintf("%s=%d %s", key, a.Value().Int(), unit)
}

func (s *shower) buildID(m pprofile.Mapping) (id string) {
	for _, kind := range []string{"htlhash", "go", "gnu"} {
		found := false
		for _, i := range m.AttributeIndices().AsRaw() {
			a := s.d.AttributeTable().At(int(i))
			if !found && s.str(a.KeyStrindex()) == "process.executable.build_id."+kind {
				id, found = a.Value().Str(), true
			}
		}
	}
	return
}

func (s *shower) frame(index int32) string {
	l := s.d.LocationTable().At(int(index))
	t := fmt.Sprintf(" | %x", l.Address())
	if l.MappingIndex() > 0 {
		m := s.d.MappingTable().At(int(l.MappingIndex()))
		t += fmt.Sprintf("@%s(%s) %x-%x+%x", s.str(m.FilenameStrindex()), s.buildID(m), m.MemoryStart(),
			m.MemoryLimit(), m.FileOffset())
	}
	for _, line := range l.Lines().All() {
		f := s.d.FunctionTable().At(int(line.FunctionIndex()))
		t += fmt.Sprintf(" < %s,%s,%s,%d:%d:%d", s.str(f.NameStrindex()), s.str(f.SystemNameStrindex()),
			s.str(f.FilenameStrindex()), f.StartLine(), line.Line(), line.Column())
	}
	return t
}

// tail is a sample's line behind its values: samples with one tail are merged, if they share the stack too.
func (s *shower) tail(v pprofile.Sample) string {
	set := map[string]bool{}
	for _, i := range v.AttributeIndices().AsRaw() {
		if l := s.label(i); l != "" {
			set[l] = true
		}
	}
	var labels []string
	for l := range set {
		labels = append(labels, l)
	}
	sort.Strings(labels)
	t := " {" + strings.Join(labels, ", ") + "}"
	if v.LinkIndex() > 0 {
		l := s.d.LinkTable().At(int(v.LinkIndex()))
		trace, span := l.TraceID(), l.SpanID()
		t += " " + hex.EncodeToString(trace[:]) + "/" + hex.EncodeToString(span[:])
	}
	for _, i := range s.d.StackTable().At(int(v.StackIndex())).LocationIndices().AsRaw() {
		t += s.frame(i)
	}
	return t
}

func fault(v pprofile.Sample) string {
	values, times := v.Values().Len(), v.TimestampsUnixNano().Len()
	switch {
	case values == 0 && times == 0:
		return "neither values nor timestamps"
	case values > 0 && values != times && (values > 1 || times > 0):
		return fmt.Sprintf("%d values for %d timestamps", values, times)
	}
	return ""
}

func (s *shower) profile(r pprofile.ResourceProfiles, scope pcommon.InstrumentationScope, p pprofile.Profile) string {
	type key struct {
		stack int32
		tail  string
	}
	sums := map[key]int64{}
	var first, last, times uint64
	for i, v := range p.Samples().All() {
		if why := fault(v); why != "" {
			return fmt.Sprintf("samples[%d]: %s", i, why)
		}
		k := key{v.StackIndex(), s.tail(v)}
		if v.Values().Len() == 0 {
			sums[k] += int64(v.TimestampsUnixNano().Len())
		}
		for _, n := range v.Values().AsRaw() {
			sums[k] += n
		}
		for _, t := range v.TimestampsUnixNano().AsRaw() {
			if times == 0 || t < first {
				first = t
			}
			last = max(last, t)
			times++
		}
	}
	types := " " + s.str(p.SampleType().TypeStrindex()) + "/" + s.str(p.SampleType().UnitStrindex())
	period := s.str(p.PeriodType().TypeStrindex()) + "/" + s.str(p.PeriodType().UnitStrindex())
	cpu := types == " samples/count" && period == "cpu/nanoseconds" && p.Period() > 0
	if cpu {
		types += " cpu/nanoseconds"
	}
	id := p.ProfileID()
	fmt.Fprintf(&s.out, "profile of %s %s%s per %d %s at %d for %d rows %d times %d from %d to %d id %s\n", scope.Name(),
		scope.Version(), types, p.Period(), period, p.Time(), p.DurationNano(), p.Samples().Len(), times, first, last,
		hex.EncodeToString(id[:]))
	var lines []string
	for k, v := range r.Resource().Attributes().All() {
		lines = append(lines, "resource "+k+"="+kinds[v.Type()]+":"+text(v))
	}
	s.lines(lines)
	lines = nil
	for _, i := range p.AttributeIndices().AsRaw() {
		a := s.d.AttributeTable().At(int(i))
		lines = append(lines, "attribute "+s.str(a.KeyStrindex())+"="+kinds[a.Value().Type()]+":"+text(a.Value()))
	}
	s.lines(lines)
	lines = nil
	for k, v := range sums {
		t := fmt.Sprintf(" %d", v)
		if cpu {
			t += fmt.Sprintf(" %d", v*p.Period())
		}
		lines = append(lines, t+k.tail)
	}
	s.lines(lines)
	return ""
}

func show(ps pprofile.Profiles) string {
	s := shower{d: ps.Dictionary()}
	rejected, why := 0, ""
	for i, r := range ps.ResourceProfiles().All() {
		for k, sp := range r.ScopeProfiles().All() {
			for j, p := range sp.Profiles().All() {
				if fault := s.profile(r, sp.Scope(), p); fault != "" {
					if rejected++; rejected == 1 {
						why = fmt.Sprintf("resourceProfiles[%d].scopeProfiles[%d].profiles[%d]: %s", i, k, j, fault)
					}
				}
			}
		}
	}
	if rejected > 0 {
		fmt.Fprintf(&s.out, "rejected %d: %s\n", rejected, why)
	}
	return s.out.String()
}

// ---- OTLP 1.9

// fields calls f with each field's number, its tag's place and its value.
func fields(b []byte, f func(number int, tag *byte, value []byte)) {
	varint := func(at int) (uint64, int) {
		v := uint64(0)
		for shift := 0; ; shift += 7 {
			v |= uint64(b[at]&0x7f) << shift
			at++
			if b[at-1] < 0x80 {
				return v, at
			}
		}
	}
	for at := 0; at < len(b); {
		tag := &b[at]
		key, next := varint(at)
		end := next
		switch key & 7 {
		case 0:
			_, end = varint(next)
		case 1:
			end += 8
		case 2:
			n, begin := varint(next)
			next, end = begin, begin+int(n)
		}
		f(int(key>>3), tag, b[next:end])
		at = end
	}
}

// numberAs19 changes the numbers of samples' fields in place.
func numberAs19(b []byte, path ...int) {
	fields(b, func(number int, tag *byte, value []byte) {
		if len(path) == 0 && number >= 2 && number <= 4 {
			*tag = *tag&7 | []byte{0, 0, 3, 4, 2}[number]<<3
		} else if len(path) > 0 && number == path[0] {
			numberAs19(value, path[1:]...)
		}
	})
}

func write(dir string, seed uint64) error {
	request := pprofileotlp.NewExportRequestFromProfiles(draw(seed))
	asJSON, err := request.MarshalJSON()
	if err != nil {
		return err
	}
	asProto, err := request.MarshalProto()
	if err != nil {
		return err
	}
	again := pprofileotlp.NewExportRequest()
	if err := again.UnmarshalProto(asProto); err != nil {
		return err
	}
	if seed%3 == 0 {
		numberAs19(asProto, 1, 2, 2, 2)
	}
	for name, body := range map[string][]byte{"pb": asProto, "json": asJSON, "txt": []byte(show(again.Profiles()))} {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.%s", seed, name)), body, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Of the process, so that other work on the machine does not count.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func bench(name string) error {
	runtime.GOMAXPROCS(1)
	body, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	best := 0.0
	for round := 0; round < 7; round++ {
		n, begin := 0, cpu()
		for cpu()-begin < 200*time.Millisecond {
			for i := 0; i < 16; i++ {
				if err := pprofileotlp.NewExportRequest().UnmarshalProto(body); err != nil {
					return err
				}
				n++
			}
		}
		best = max(best, float64(n)/(cpu()-begin).Seconds())
	}
	fmt.Printf("%.0f\n", best)
	return nil
}

func main() {
	var err error
	if len(os.Args) == 3 && os.Args[1] == "bench" {
		err = bench(os.Args[2])
	} else if len(os.Args) == 3 && os.Args[1] == "serve" {
		err = serve(os.Args[2])
	} else {
		first, _ := strconv.ParseUint(os.Args[2], 10, 64)
		n, _ := strconv.ParseUint(os.Args[3], 10, 64)
		for seed := first; err == nil && seed < first+n; seed++ {
			err = write(os.Args[1], seed)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
