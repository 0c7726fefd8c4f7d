//go:build !record

package main

// main does each work once: little else is compiled with it.
func main() {
	for _, work := range works {
		work()
	}
	println(sink)
}
