"""Signs requests by AWS Signature Version 4, with Python's hmac and hashlib.

Each line of the input is a JSON array: method, path, query and headers as lists of pairs, hash of the body, time, region,
service, access key, secret key; texts as hex digits of their bytes. Each line of the output is the target and the
Authorization header.
"""
import hashlib
import hmac
import json
import re
import sys
import urllib.parse


def text(digits):
    return bytes.fromhex(digits)


def encode(raw):
    return urllib.parse.quote(raw, safe="-_.~")


def sign(key, message):
    return hmac.new(key, message.encode(), hashlib.sha256).digest()


for line in sys.stdin:
    method, path, query, headers, payload, time, region, service, access, secret = json.loads(line)
    pairs = sorted((encode(text(k)), encode(text(v))) for k, v in query)
    path = "/".join(encode(part) for part in text(path).split(b"/"))
    query = "&".join(f"{k}={v}" for k, v in pairs)
    values = {}
    for name, value in headers:
        value = re.sub(rb" +", b" ", text(value).strip())
        values.setdefault(text(name).decode().lower(), []).append(value)
    signed = ";".join(sorted(values))
    canonical = f"{method}\n{path}\n{query}\n".encode()
    for name in sorted(values):
        canonical += name.encode() + b":" + b",".join(values[name]) + b"\n"
    canonical += f"\n{signed}\n{payload}".encode()
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical).hexdigest()
    key = b"AWS4" + text(secret)
    for part in (time[:8], region, service, "aws4_request"):
        key = sign(key, part)
    signature = sign(key, f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}").hex()
    target = path + ("?" + query if query else "")
    print(f"{target} AWS4-HMAC-SHA256 Credential={text(access).decode()}/{scope}, SignedHeaders={signed}, Signature={signature}")
