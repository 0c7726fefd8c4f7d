// Dense writes the profiles of the files named on standard input as a column store would like to get them: no strings, a dense
// id for each stack of a service. A line is "SERIES SCRAPE SERVICE FILE". The stack that most profiles have is number 0. Into
// the directory go
//
//	samples.bin    series u16, scrape u16, service u16, stack u16, samples u32; little endian, in the order of the files
//	leaves.bin     service u16, stack u16, function u32: its leaf
//	frames.bin     service u16, stack u16, function u32: each function of a stack once
//	functions.txt  names, by id
//	folded.txt     of the service SERVICE: names of a stack's frames from the root, by id
//
// usage: dense DIR SERVICE
//
// Prints as JSON how many there are, the CPU seconds of decoding and of looking stacks up.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"github.com/google/pprof/profile"
)

type sample struct {
	series, scrape uint16
	stack, value   uint32 // stack: service << 16 | number, in the end
}

type stack struct {
	service, profiles, id uint32
	functions             []uint32 // from the leaf
}

type dense struct {
	samples     []sample
	stacks      []stack
	stackIDs    map[string]uint32
	locationIDs map[string]uint32
	functionIDs map[string]uint32
	functions   []string
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func cpu() float64 {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9
}

func idOf(ids map[string]uint32, key []byte) (id uint32, isNew bool) {
	id, ok := ids[string(key)]
	if !ok {
		id = uint32(len(ids))
		ids[string(key)] = id
	}
	return id, !ok
}

func (d *dense) function(name string) uint32 {
	id, isNew := idOf(d.functionIDs, []byte(name))
	if isNew {
		d.functions = append(d.functions, name)
	}
	return id
}

// Locations are equal if their lines and addresses are; processes differ in where a mapping is.
func (d *dense) location(l *profile.Location) uint32 {
	address := l.Address
	if l.Mapping != nil {
		address -= l.Mapping.Start
	}
	key := binary.LittleEndian.AppendUint64(nil, address)
	for _, line := range l.Line {
		key = binary.LittleEndian.AppendUint32(key, d.function(line.Function.Name))
		key = binary.LittleEndian.AppendUint64(key, uint64(line.Line))
	}
	id, _ := idOf(d.locationIDs, key)
	return id
}

func (d *dense) stack(service uint32, locations []*profile.Location, ids map[*profile.Location]uint32) uint32 {
	key := binary.LittleEndian.AppendUint32(nil, service)
	for _, l := range locations {
		key = binary.LittleEndian.AppendUint32(key, ids[l])
	}
	id, isNew := idOf(d.stackIDs, key)
	if isNew {
		s := stack{service: service}
		for _, l := range locations {
			for _, line := range l.Line {
				s.functions = append(s.functions, d.function(line.Function.Name))
			}
		}
		d.stacks = append(d.stacks, s)
	}
	d.stacks[id].profiles++
	return id
}

func (d *dense) add(p *profile.Profile, series, scrape, service uint32) {
	ids := map[*profile.Location]uint32{}
	for _, l := range p.Location {
		ids[l] = d.location(l)
	}
	for _, s := range p.Sample {
		d.samples = append(d.samples, sample{uint16(series), uint16(scrape), d.stack(service, s.Location, ids), uint32(s.Value[0])})
	}
}

// renumber gives ids within a service, the stack of the most profiles first.
func (d *dense) renumber() {
	order := make([]uint32, len(d.stacks))
	for i := range order {
		order[i] = uint32(i)
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := d.stacks[order[i]], d.stacks[order[j]]
		return a.service < b.service || a.service == b.service && a.profiles > b.profiles
	})
	stacks, ids := make([]stack, len(order)), make([]uint32, len(order))
	for i, old := range order {
		stacks[i] = d.stacks[old]
		if i > 0 && stacks[i-1].service == stacks[i].service {
			stacks[i].id = stacks[i-1].id + 1
		} else {
			stacks[i].id = stacks[i].service << 16
		}
		if stacks[i].id>>16 != stacks[i].service {
			panic("a service has more than 65,536 stacks")
		}
		ids[old] = stacks[i].id
	}
	for i := range d.samples {
		d.samples[i].stack = ids[d.samples[i].stack]
	}
	d.stacks = stacks
}

func write(dir, name string, fill func(out *bufio.Writer)) {
	file, err := os.Create(filepath.Join(dir, name))
	must(err)
	out := bufio.NewWriterSize(file, 1<<20)
	fill(out)
	must(out.Flush())
	must(file.Close())
}

func put(out *bufio.Writer, values ...uint32) {
	var bytes []byte
	for _, v := range values {
		bytes = binary.LittleEndian.AppendUint32(bytes, v)
	}
	_, err := out.Write(bytes)
	must(err)
}

// As two numbers of 16 bits: the service, then the stack.
func pair(id uint32) uint32 {
	return id>>16 | id<<16
}

func (d *dense) write(dir, service string) {
	write(dir, "samples.bin", func(out *bufio.Writer) {
		for _, s := range d.samples {
			put(out, uint32(s.series)|uint32(s.scrape)<<16, pair(s.stack), s.value)
		}
	})
	write(dir, "leaves.bin", func(out *bufio.Writer) {
		for _, s := range d.stacks {
			put(out, pair(s.id), s.functions[0])
		}
	})
	write(dir, "frames.bin", func(out *bufio.Writer) {
		for _, s := range d.stacks {
			seen := map[uint32]bool{}
			for _, f := range s.functions {
				if !seen[f] {
					put(out, pair(s.id), f)
				}
				seen[f] = true
			}
		}
	})
	write(dir, "functions.txt", func(out *bufio.Writer) { fmt.Fprintln(out, strings.Join(d.functions, "\n")) })
	write(dir, "folded.txt", func(out *bufio.Writer) {
		for _, s := range d.stacks {
			if fmt.Sprint(s.service) != service {
				continue
			}
			names := make([]string, 0, len(s.functions))
			for i := len(s.functions) - 1; i >= 0; i-- {
				names = append(names, d.functions[s.functions[i]])
			}
			fmt.Fprintln(out, strings.Join(names, ";"))
		}
	})
}

func main() {
	d := &dense{stackIDs: map[string]uint32{}, locationIDs: map[string]uint32{}, functionIDs: map[string]uint32{}}
	var decoding, lookingUp float64
	lines := bufio.NewScanner(os.Stdin)
	profiles := 0
	for ; lines.Scan(); profiles++ {
		var series, scrape, service uint32
		var name string
		_, err := fmt.Sscan(lines.Text(), &series, &scrape, &service, &name)
		must(err)
		body, err := os.ReadFile(name)
		must(err)
		began := cpu()
		p, err := profile.ParseData(body)
		must(err)
		decoded := cpu()
		d.add(p, series, scrape, service)
		decoding += decoded - began
		lookingUp += cpu() - decoded
	}
	d.renumber()
	d.write(os.Args[1], os.Args[2])
	must(json.NewEncoder(os.Stdout).Encode(map[string]interface{}{"profiles": profiles, "samples": len(d.samples),
		"stacks": len(d.stacks), "functions": len(d.functions), "decode_cpu_s": decoding, "lookup_cpu_s": lookingUp}))
}
