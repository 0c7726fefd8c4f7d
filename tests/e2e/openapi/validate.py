"""validate.py DOCUMENT ANSWERS: whether a document is OpenAPI 3.1, its examples fit their schemas, and the answers of a server do.

ANSWERS is a list of {path, method, status, media, body}; path as in the document. No field may come that the document lacks.
Prints a JSON list of faults."""
import copy
import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

METHODS = {"get", "post", "put", "delete"}


def closed(node):
    """The same with no other properties than those that are named."""
    if isinstance(node, list):
        return [closed(x) for x in node]
    if not isinstance(node, dict):
        return node
    out = {k: closed(v) for k, v in node.items()}
    if out.get("type") == "object" and "properties" in out and isinstance(out["properties"], dict):
        out.setdefault("additionalProperties", False)
    return out


def main():
    document, answers = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:3])
    faults = [f"{list(e.absolute_path)}: {e.message}" for e in OpenAPIV31SpecValidator(document).iter_errors()]
    strict = closed(copy.deepcopy(document))
    checked = 0

    def check(what, schema, value):
        nonlocal checked
        checked += 1
        validator = Draft202012Validator({**schema, "components": strict["components"]},
                                         format_checker=Draft202012Validator.FORMAT_CHECKER)
        for e in validator.iter_errors(value):
            best = e
            while best.context:
                best = max(best.context, key=lambda c: len(c.absolute_path))
            faults.append(f"{what}: {list(best.absolute_path)}: {best.message[:300]}")

    for path, item in strict["paths"].items():
        for method in METHODS & item.keys():
            for p in item[method].get("parameters", []):
                if "example" in p:
                    check(f"{method} {path} {p['name']}", p["schema"], p["example"])
            for status, response in item[method]["responses"].items():
                for media, content in response.get("content", {}).items():
                    if "example" in content:
                        check(f"example of {method} {path} {status} {media}", content["schema"], content["example"])
    for a in answers:
        what = f"{a['method']} {a['path']} {a['status']}"
        responses = strict["paths"][a["path"]][a["method"]]["responses"]
        if str(a["status"]) not in responses:
            faults.append(f"{what}: this status is not in the document: {str(a['body'])[:200]}")
            continue
        content = responses[str(a["status"])].get("content", {})
        if not content and not a["body"]:
            checked += 1
            continue
        media = {m.split(";")[0]: c for m, c in content.items()}.get(a["media"])
        if media is None:
            faults.append(f"{what}: {a['media']} is not in the document: {str(a['body'])[:200]}")
            continue
        if a["media"] == "application/json" and "schema" in media:
            check(what, media["schema"], json.loads(a["body"]))
        else:
            checked += 1
    json.dump({"faults": faults, "checked": checked}, sys.stdout)


main()
