python3 - <<'X'
p = "count.py"
s = open(p).read()
s = s.replace("import argparse\n", "import argparse\nimport json\n")
s = s.replace('add_argument("file")\n', 'add_argument("file")\n    parser.add_argument("--json", action="store_true", help="print JSON")\n')
s = s.replace("    print(content.count", '''    if options.json:
        print(json.dumps({"lines": content.count(b"\\n"), "words": len(content.split()), "bytes": len(content)}))
        return 0
    print(content.count''')
open(p, "w").write(s)
X
