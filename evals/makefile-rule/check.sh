chmod +x render
say() { echo "$1"; cat render.log; exit 1; }
rm -rf site render.log
make -s || say "make failed"
[ "$(cat site/one.html)" = "$(printf '<h1>Pages</h1>\n<p>first</p>')" ] && [ -e site/two.html ] || say "a page is missing"
[ "$(cat site/index)" = "$(printf 'one\ntwo')" ] || say "index: $(cat site/index)"
: > render.log; make -s; [ ! -s render.log ] || say "made again though nothing changed"
touch -d '+2 seconds' pages/two.txt; make -s; [ "$(cat render.log)" = "rendering pages/two.txt" ] || say "one changed page"
touch -d '+4 seconds' header.html; : > render.log; make -s; [ "$(wc -l < render.log)" = 2 ] || say "header.html changed"
touch -d '+6 seconds' render; : > render.log; make -s; [ "$(wc -l < render.log)" = 2 ] || say "render changed"
echo third > pages/three.txt; make -s; [ -e site/three.html ] && grep -q '^three$' site/index || say "a new page"
: > pages/four.txt; make -s 2> /dev/null && say "a failure is no failure"; [ ! -e site/four.html ] || say "half a page was left"
make -s clean; [ ! -e site ]
