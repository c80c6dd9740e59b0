# Programs land in out/. `make help` lists what there is to make.
.DEFAULT_GOAL := all
.PHONY: all demo test check e2e fuzz soak bench install shim dist clean help

# Where `make install` puts things; DESTDIR stands before it for packagers.
PREFIX ?= $(HOME)/.local
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

# Puts everything below $(1).
define put
set -e; for t in $(TOOLS); do \
  install -Dm755 out/$$t '$(1)/bin/'$$t; \
  install -Dm644 bins/$$t/$$t.1 '$(1)/share/man/man1/'$$t.1; \
done; \
install -Dm644 lib/contract/selfheal.7 '$(1)/share/man/man7/selfheal.7'; \
install -Dm644 manifest.json '$(1)/share/selfheal/manifest.json'; \
for t in $(TOOLS) swr; do install -Dm644 sh/completions '$(1)/share/bash-completion/completions/'$$t; done; \
install -Dm644 sh/completions '$(1)/share/zsh/site-functions/_selfheal'; \
for f in sh/*; do \
  if [ -x $$f ]; then mode=755; else mode=644; fi; \
  install -Dm$$mode $$f '$(1)/share/selfheal/'$$f; \
done
endef

install: all ## programs, sh/, manifest.json, man pages and completions below DESTDIR and PREFIX
	@$(call put,$(DESTDIR)$(PREFIX))
	@echo 'installed in $(DESTDIR)$(PREFIX)'

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
