// Package main is what profiles for the compiler are recorded of: calls that are inlined, those that are only inlined
// where they are hot, recursion, interfaces, generics, and the runtime at work for them.
package main

import (
	"sort"
	"strconv"
	"strings"
)

var sink int

// works are run one at a time; each returns soon and is called again.
var works = map[string]func(){
	"inlined":   inlined,
	"recursion": recursion,
	"dynamic":   dynamic,
	"generic":   generic,
	"runtime":   allocating,
}

/* ---- chains that are inlined as they are ---- */

func one(x int) int   { return x*3 ^ x>>2 }
func two(x int) int   { return one(x) + one(x+1) }
func three(x int) int { return two(x) ^ two(x+2) }

//go:noinline
func callsThree(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += three(i)
		if i%3 == 0 {
			s ^= two(s)
		}
	}
	return s
}

// Too much for the compiler to inline unless it is known to be hot.
func large(a, b, c int) int {
	x := a*b ^ c
	for i := 0; i < 4; i++ {
		x ^= one(x+i) + a>>1
		x += two(x) * (b | i)
		if x&7 == 3 {
			x -= c * 5
		} else if x&15 == 9 {
			x ^= b << 3
		}
		x = x<<1 | x>>7
	}
	return x + one(a) - two(b)
}

// Nearly all it costs is in what is inlined here: whoever counts its own line alone takes it for cold.
func heavy(x int) int {
	return spin(x, 40) ^ spin(x+1, 50) + spin(x+2, 60) ^ spin(x+3, 70) + spin(x+4, 80) ^ spin(x+5, 90)
}

func spin(x, n int) int {
	for i := 0; i < n; i++ {
		x = x*5 ^ x>>3
	}
	return x
}

//go:noinline
func callsHeavy(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += heavy(i)
	}
	return s
}

func inlined() {
	s := callsThree(20000) + callsHeavy(1500)
	for i := 0; i < 5000; i++ {
		s += large(i, s, 7)
	}
	sink += s
}

/* ---- recursion ---- */

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

// Caller and callee are on one line.
func down(n int) bool { return n == 0 || down(n-1) }

func even(n int) bool {
	if n == 0 {
		return true
	}
	return odd(n - 1)
}

func odd(n int) bool {
	if n == 0 {
		return false
	}
	return even(n - 1)
}

func recursion() {
	sink += fib(18)
	for i := 0; i < 20; i++ {
		if even(300+i) == down(200) {
			sink++
		}
	}
}

/* ---- interfaces and functions as values ---- */

type shape interface{ area() int }
type square struct{ a int }
type oblong struct{ a, b int }

func (s square) area() int { return s.a*s.a + one(s.a) }
func (o oblong) area() int { return large(o.a, o.b, 3) }

//go:noinline
func total(shapes []shape) int {
	n := 0
	for _, s := range shapes {
		n += s.area()
	}
	return n
}

//go:noinline
func each(n int, f func(int) int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += f(i)
	}
	return s
}

func dynamic() {
	shapes := make([]shape, 0, 1000)
	for i := 0; i < 1000; i++ {
		if i%10 == 0 {
			shapes = append(shapes, square{i})
		} else {
			shapes = append(shapes, oblong{i, 2})
		}
	}
	sink += total(shapes)
	sink += each(5000, func(i int) int { return large(i, sink, 1) + three(i) })
}

/* ---- generics ---- */

type number interface{ ~int | ~int32 | ~float64 }

func scale[T number](v []T, by T) (s T) {
	for _, x := range v {
		s += mix(x, by)
	}
	return s
}

func mix[T number](a, b T) T {
	if a > b {
		return a*b - blend(b, a)
	}
	return blend(a, b)
}

func blend[T number](a, b T) T { return a + b*a }

func generic() {
	ints, floats, small := make([]int, 3000), make([]float64, 3000), make([]int32, 3000)
	for i := range ints {
		ints[i], floats[i], small[i] = i^5, float64(i)/3, int32(i%77)
	}
	sink += scale(ints, 3) + int(scale(floats, 1.5)) + int(scale(small, 2))
	sort.Slice(ints, func(i, j int) bool { return ints[i]^21 < ints[j]^21 })
}

/* ---- the runtime ---- */

func allocating() {
	m := map[string]int{}
	var b strings.Builder
	for i := 0; i < 3000; i++ {
		key := "key" + strconv.Itoa(i%700)
		m[key] += len(key)
		b.WriteString(key)
	}
	sink += len(m) + strings.Count(b.String(), "7")
}
