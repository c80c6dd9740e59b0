# Programs land in out/. `make help` lists what there is to make.
.DEFAULT_GOAL := all
.PHONY: all demo test check e2e fuzz soak bench install uninstall shim dist clean help

# Where `make install` puts things; DESTDIR stands before it for packagers.
PREFIX ?= $(if $(filter /%,$(HOME)),$(HOME)/.local,$(error HOME is no absolute path; give PREFIX))
# How many mutated files of each kind `make fuzz` tries.
FUZZ_COUNT ?= 1000000
# release, or dist with whole-program optimisation.
PROFILE ?= release
CARGO_TARGET_DIR ?= target

# Asked for once, when a recipe first needs it.
TARGET = $(eval TARGET := $$(shell tests/setup target))$(or $(TARGET),$(error no Rust target to build for))
STATIC = $(if $(findstring -gnu,$(TARGET)),-Ctarget-feature=+crt-static -Crelocation-model=static)

# Flags of the caller's environment would replace the ones that make programs static.
unexport CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS CARGO_BUILD_TARGET
BUILD = RUSTFLAGS='$(STATIC)' TARGET='$(TARGET)' CARGO_TARGET_DIR='$(CARGO_TARGET_DIR)'

TOOLS = $(notdir $(patsubst %/,%,$(wildcard bins/*/)))
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
PACKAGE = selfheal-$(VERSION)-$(firstword $(subst -, ,$(TARGET)))-linux

all: ## build the static programs into out/
	@tests/setup build
	$(BUILD) cargo build --locked --workspace --bins --target '$(TARGET)' --profile $(PROFILE)
	@mkdir -p out && for t in $(TOOLS); do \
	  from='$(CARGO_TARGET_DIR)/$(TARGET)/$(PROFILE)'/$$t; \
	  cmp -s "$$from" out/$$t || { cp "$$from" out/.$$t.new && mv -f out/.$$t.new out/$$t; } || exit 1; \
	done

demo: all ## a real engine and model answer, are wiped, heal and answer again
	@tests/setup e2e
	@tests/e2e/demo.sh

test: all ## every fast test; no network once set up
	@tests/setup test
	@$(BUILD) tests/run

check: all ## formatting, lints, shell, man pages, dependencies, sizes
	@tests/setup check
	@$(BUILD) tests/check

e2e: all ## the tests on the real engine and the real model
	@tests/setup e2e
	@tests/e2e/run
	@tests/e2e/calls

fuzz: ## FUZZ_COUNT mutated model headers, as many mutated manifests
	@tests/setup build
	@$(BUILD) cargo run --quiet --locked --release --target '$(TARGET)' -p gguf --example fuzz-gguf -- $(FUZZ_COUNT)
	@$(BUILD) cargo run --quiet --locked --release --target '$(TARGET)' -p workspace --example fuzz-manifest -- $(FUZZ_COUNT)

soak: all ## breaker calls and downloads killed at random, about five minutes
	@tests/setup test
	@$(BUILD) cargo test --quiet --locked --release --target '$(TARGET)' -p breaker --test breaker_soak -- --ignored --nocapture
	@python3 tests/soak/fetch.py out/hf-fetch 500 2026

bench: all ## times and sizes against peers measured in the same run
	@tests/setup bench
	@tests/bench/run
	@tests/bench/swr

# What is installed, a line `MODE FROM TO` each, TO below the prefix; no name has a blank in it.
define parts
for t in $(TOOLS); do echo "755 out/$$t bin/$$t"; done; echo '755 sh/swr bin/swr'; \
for f in bins/*/*.1 docs/*.1; do echo "644 $$f share/man/man1/$${f##*/}"; done; \
for f in lib/*/*.7; do echo "644 $$f share/man/man7/$${f##*/}"; done; \
for t in $(TOOLS) swr; do echo "644 sh/completions share/bash-completion/completions/$$t"; done; \
echo '644 sh/completions share/zsh/site-functions/_selfheal'; \
echo '644 manifest.json share/selfheal/manifest.json'; \
for f in sh/*; do if [ -x $$f ]; then echo "755 $$f share/selfheal/$$f"; else echo "644 $$f share/selfheal/$$f"; fi; done
endef

# Puts everything below $(1).
put = { $(parts); } | while read -r mode from to; do install -Dm$$mode $$from '$(1)/'$$to || exit 1; done

install: all ## programs, sh/, manifest.json, man pages and completions below DESTDIR and PREFIX
	@$(call put,$(DESTDIR)$(PREFIX))
	@echo 'installed in $(DESTDIR)$(PREFIX)'

uninstall: ## remove again what install puts there, and nothing else
	@[ -d '$(DESTDIR)$(PREFIX)/share/selfheal' ] || { echo 'nothing is installed in $(DESTDIR)$(PREFIX)' >&2; exit 1; }
	@{ $(parts); } | while read -r mode from to; do rm -f '$(DESTDIR)$(PREFIX)/'$$to || exit 1; done
	@rmdir '$(DESTDIR)$(PREFIX)/share/selfheal/sh' '$(DESTDIR)$(PREFIX)/share/selfheal' 2>/dev/null || :
	@[ ! -d '$(DESTDIR)$(PREFIX)/share/selfheal' ] || echo 'left, because it is not ours: what is in $(DESTDIR)$(PREFIX)/share/selfheal'
	@echo 'removed from $(DESTDIR)$(PREFIX)'

shim: all ## copies of the programs in ~/.shim
	@SELFHEAL_MODE=fix sh/install-shim

dist: PROFILE = dist
dist: all ## a release archive in out/
	@rm -rf out/stage
	@$(call put,out/stage/$(PACKAGE))
	@install -m755 install.sh out/stage/$(PACKAGE)/
	@install -m644 README.md CHANGELOG.md LICENSE SECURITY.md out/stage/$(PACKAGE)/
	@tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$$(git log -1 --format=%ct)" \
	  -C out/stage -cf - $(PACKAGE) | gzip -9n >out/$(PACKAGE).tar.gz.new
	@mv out/$(PACKAGE).tar.gz.new out/$(PACKAGE).tar.gz && rm -rf out/stage
	@cd out && sha256sum $(PACKAGE).tar.gz

clean: ## remove what was built
	@rm -rf out && cargo clean --target-dir '$(CARGO_TARGET_DIR)'

help: ## this list
	@sed -n 's/^\([a-z0-9]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | expand -t 10
