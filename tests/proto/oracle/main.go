// Oracle says of each body on standard input whether google/pprof accepts it: one line per body, "accept" or
// "reject" and why. A body comes as its length, four bytes with the highest first, and its bytes.
//
// What ParseData does, without its attempts at the legacy formats: gunzip, parse, check. Debian's package is
// older than doc_url and column; these two follow the rules of their neighbours here.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/pprof/profile"
)

// fields calls f for each field of a message that is known to be well-formed.
func fields(data []byte, f func(number uint64, wireType int, v uint64, b []byte) error) error {
	varint := func() (v uint64) {
		for i := 0; ; i++ {
			c := data[0]
			data = data[1:]
			v |= uint64(c&0x7f) << uint(7*i)
			if c < 0x80 {
				return v
			}
		}
	}
	for len(data) > 0 {
		tag := varint()
		var v uint64
		var b []byte
		switch tag & 7 {
		case 0:
			v = varint()
		case 1:
			data = data[8:]
		case 2:
			n := varint()
			b, data = data[:n], data[n:]
		case 5:
			data = data[4:]
		}
		if err := f(tag>>3, int(tag&7), v, b); err != nil {
			return err
		}
	}
	return nil
}

func column(number uint64, wireType int, _ uint64, _ []byte) error {
	if number == 3 && wireType != 0 {
		return errors.New("column: type mismatch")
	}
	return nil
}

func newerFields(data []byte) error {
	var url, strings uint64
	err := fields(data, func(number uint64, wireType int, v uint64, b []byte) error {
		switch number {
		case 4:
			return fields(b, func(number uint64, _ int, _ uint64, b []byte) error {
				if number == 4 {
					return fields(b, column)
				}
				return nil
			})
		case 6:
			strings++
		case 15:
			if wireType != 0 {
				return errors.New("doc_url: type mismatch")
			}
			url = v
		}
		return nil
	})
	if err == nil && url >= strings {
		err = errors.New("doc_url: no such string")
	}
	return err
}

func verdict(body []byte) error {
	if len(body) >= 2 && body[0] == 0x1f && body[1] == 0x8b {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return err
		}
		if body, err = io.ReadAll(z); err != nil {
			return err
		}
	}
	p, err := profile.ParseUncompressed(body)
	if err != nil {
		return err
	}
	if err := p.CheckValid(); err != nil {
		return err
	}
	return newerFields(body)
}

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		var length uint32
		if err := binary.Read(in, binary.BigEndian, &length); err == io.EOF {
			return
		} else if err != nil {
			panic(err)
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(in, body); err != nil {
			panic(err)
		}
		if err := verdict(body); err != nil {
			fmt.Fprintln(out, "reject", err)
		} else {
			fmt.Fprintln(out, "accept")
		}
	}
}
