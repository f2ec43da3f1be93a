sh ./release.sh -n 1.2 > /tmp/said || { echo "-n failed"; exit 1; }
[ ! -e dist ] || { echo "-n did something"; exit 1; }
[ "$(grep -c '^+ ' /tmp/said)" = 3 ] && [ "$(wc -l < /tmp/said)" = 3 ] || { cat /tmp/said; exit 1; }
grep -q '^+ mkdir -p dist' /tmp/said && grep -q '^+ cp notes.txt .*dist/notes-1.2.txt' /tmp/said && grep -q '1\.2.*dist/LATEST' /tmp/said || { cat /tmp/said; exit 1; }
sh ./release.sh -x 1.2 2> /dev/null; [ $? = 2 ] || { echo "-x is taken"; exit 1; }
sh ./release.sh 2> /dev/null; [ $? = 2 ] || { echo "no version is taken"; exit 1; }
sh ./release.sh -n 2> /dev/null > /tmp/said; [ $? = 2 ] || { echo "-n without a version is taken"; exit 1; }
sh ./release.sh 1.3 > /tmp/said || exit 1
[ ! -s /tmp/said ] && [ "$(cat dist/LATEST dist/notes-1.3.txt)" = "$(printf '1.3\nfirst')" ]
