"""Keeps the parts of the first agent requests that it gets: sink.py PORT OUT N, for record.sh."""
import gzip
import http.server
import os
import re
import sys

port, out, last = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
seen = 0


class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while (n := int(self.rfile.readline().split(b";")[0], 16)) > 0:
            body += self.rfile.read(n)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_POST(self):
        global seen
        body = self.body()
        seen += 1
        if seen == last:
            mark = body.split(b"\r\n", 1)[0]
            for part in body.split(mark)[1:-1]:
                head, _, data = part[2:].partition(b"\r\n\r\n")
                name = re.search(rb'name="(\w+)"', head).group(1).decode()
                data = data[:-2]
                if data[:2] == b"\x1f\x8b":
                    data = gzip.decompress(data)
                with open(os.path.join(out, "agent." + name), "wb") as f:
                    f.write(data)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


http.server.HTTPServer(("127.0.0.1", port), Sink).serve_forever()
