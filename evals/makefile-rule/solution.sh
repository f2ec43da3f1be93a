cat > Makefile <<'X'
PAGES := $(sort $(wildcard pages/*.txt))
SITE := $(PAGES:pages/%.txt=site/%.html)

.PHONY: all clean
.DELETE_ON_ERROR:
all: $(SITE) site/index

site/%.html: pages/%.txt render header.html | site
	./render $< > $@

site/index: $(PAGES) | site
	printf '%s\n' $(PAGES:pages/%.txt=%) > $@

site:
	mkdir -p $@

clean:
	rm -rf site
X
