# Manual pages, with the texts of the program's help; and the files of an installation (packaging/files.txt).
.PHONY: man install uninstall
PAGES = $(B)/man/written
man: $(PAGES)
$(PAGES): $(PROGRAM)
	@rm -rf $(@D) && mkdir -p $(@D) && packaging/manual.sh $(PROGRAM) $(@D) && touch $@

# The package files find the headers and the archive relative to themselves, so the folder can be moved.
VERSION := $(shell sed -n 's/^\#define VLMPROF_VERSION "\(.*\)"/\1/p' vlmprof.h)
PACKAGE = $(patsubst packaging/%.in,$(B)/package/%,$(wildcard packaging/*.in))
$(B)/package/%: packaging/%.in vlmprof.h
	@mkdir -p $(@D)
	@sed 's/@VERSION@/$(VERSION)/' $< >$@
INSTALL = @B="$(B)" PROGRAM="$(PROGRAM)" GPU_OBJECT="$(GPU_OBJECT)" packaging/install.sh
install: $(PROGRAM) $(PAGES) $(PACKAGE)
	$(INSTALL) install "$(DESTDIR)$(PREFIX)"
	@echo "installed below $(DESTDIR)$(PREFIX): vlmprof, its header and library, manual pages, completion; make uninstall removes them"
uninstall: $(PROGRAM) $(PAGES) $(PACKAGE)
	$(INSTALL) uninstall "$(DESTDIR)$(PREFIX)"
