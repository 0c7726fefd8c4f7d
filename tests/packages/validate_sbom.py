"""validate_sbom.py SPDX CYCLONEDX: checks bills of materials by the validators of SPDX's and CycloneDX's own projects, and that both
name the same packages. Then documents with a fault each, which these validators must refuse."""
import json
import sys
import tempfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.error import SPDXParsingError
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document


def faults_of_spdx(document):
    with tempfile.NamedTemporaryFile("w", suffix=".spdx.json") as file:
        json.dump(document, file)
        file.flush()
        try:
            return [m.validation_message for m in validate_full_spdx_document(parse_file(file.name))]
        except SPDXParsingError as error:
            return error.get_messages()


def faults_of_cyclonedx(document):
    fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(json.dumps(document))
    return [str(fault)] if fault else []


def check(what, good):
    global failed
    if not good:
        failed += 1
        print("FAIL", what)
    else:
        print("ok", what)


failed = 0
with open(sys.argv[1]) as file:
    spdx = json.load(file)
with open(sys.argv[2]) as file:
    cyclonedx = json.load(file)
faults = faults_of_spdx(spdx)
check(f"SPDX 2.3 {faults}", not faults)
faults = faults_of_cyclonedx(cyclonedx)
check(f"CycloneDX 1.5 {faults}", not faults)
purls = sorted(p["externalRefs"][0]["referenceLocator"] for p in spdx["packages"][1:])
check(f"the same {len(purls)} packages", len(purls) > 25 and purls == sorted(c["purl"] for c in cyclonedx["components"]))
check("each has a version", all(p["versionInfo"] not in ("", "unknown") for p in spdx["packages"]))

spdx["packages"][1]["licenseDeclared"] = "No-Such-1.0"
check("a licence that nobody knows is refused", faults_of_spdx(spdx))
del cyclonedx["components"][0]["name"]
check("a component without a name is refused", faults_of_cyclonedx(cyclonedx))
sys.exit(1 if failed else 0)
