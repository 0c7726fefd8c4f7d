// Oracle gives each body on standard input as google/pprof reads it: a byte 'a' (accepted), 'r' (rejected) or 'p'
// (it is protobuf), a length of four bytes with the highest first, and the profile as protobuf or the reason. Bodies
// come as lengths and bytes, too.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"os"

	"github.com/google/pprof/profile"
)

func read(body []byte) (byte, []byte) {
	if _, err := profile.ParseUncompressed(body); err == nil {
		return 'p', nil
	}
	p, err := profile.ParseData(body)
	if err != nil {
		return 'r', []byte(err.Error())
	}
	var out bytes.Buffer
	if err := p.WriteUncompressed(&out); err != nil {
		panic(err)
	}
	return 'a', out.Bytes()
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
		verdict, answer := read(body)
		out.WriteByte(verdict)
		if err := binary.Write(out, binary.BigEndian, uint32(len(answer))); err != nil {
			panic(err)
		}
		out.Write(answer)
	}
}
