"""The files that programs run or obey, as a table: patterns, flag, and the reason that people read.

Here: data only; one row is one reason. The manual's page is made from it (`page.py`). Not here: how
patterns are matched (`names.py`), what follows from content or surroundings (`surroundings.py`).

Patterns are in lower case and fit at any depth, whatever the case of the path:
    name      a file (or link) of this name; `x*` and `*x` leave the end or the beginning open
    a/name    such a file in a directory `a`
    a/        a directory of this name and everything in it; `a/b/` a directory `b` in `a`
"""

from typing import Literal

import msgspec

Grade = Literal["needs_accept", "held", "free"]


class Flag(msgspec.Struct, frozen=True):
    """A kind of path.

    Attributes:
        grade: what a landing asks for: `needs_accept` = a person names the path, under every policy;
            `held` = a person's landing takes it, an automatic one leaves it on the branch.
        reason: what people read where no row says it closer.
    """

    grade: Grade
    reason: str


class Row(msgspec.Struct, frozen=True):
    """Some patterns (divided by blanks) with one flag for one reason."""

    flag: str
    patterns: str
    reason: str


FLAGS: dict[str, Flag] = {
    "git-exec": Flag("needs_accept", "Git would run or obey this: hooks, filters, configuration, pointers."),
    "git-dir": Flag("needs_accept", "Makes a directory a git directory, whose configuration git would run."),
    "git-data": Flag("held", "Git's own data: commits, branches, the index."),
    "shell-rc": Flag("needs_accept", "Read by shells and programs when they start."),
    "login": Flag("needs_accept", "Decides who may sign in, and how."),
    "package-rc": Flag("needs_accept", "Package managers and build tools obey it on their next run."),
    "editor-exec": Flag("needs_accept", "Editors and development environments run what it says."),
    "agent-config": Flag(
        "needs_accept", "Changes what agents are told, what they start, or what they may do."
    ),
    "ci": Flag("needs_accept", "Runs on the build server, with its secrets."),
    "autostart": Flag("needs_accept", "Started by the system, by a desktop, or on a schedule."),
    "symlink-out": Flag("needs_accept", "A link that leads out of the workspace, or may come to."),
    "symlink-in": Flag("needs_accept", "A link to a path that needs to be accepted by name."),
    "setuid": Flag("needs_accept", "Would run with another user's rights."),
    "case-clash": Flag("needs_accept", "Another file has the same name in different case."),
    "configured": Flag("needs_accept", "Your settings ask for a review of this path."),
    "build-exec": Flag("held", "Runs when the project is built, tested or started."),
    "lockfile": Flag("held", "Decides which packages are installed."),
    "exec-bit": Flag("held", "Becomes executable."),
    "permissions": Flag("held", "Other people may read or write it, or you may no longer."),
    "dotfile": Flag("held", "Hidden by its name; many programs read such files on their own."),
    "hard-link": Flag("held", "It has other names (hard links), which keep the old bytes."),
    "tainted": Flag("held", "Written by a turn that had read text from outside."),
}

NEEDS_ACCEPT = (
    # git, besides what lies in git directories
    Row("git-exec", ".gitattributes .gitmodules", "git runs filters and fetches repositories named in it"),
    Row("git-exec", ".gitconfig .config/git/", "git runs aliases, pagers, filters and hooks named in it"),
    Row("git-exec", "commondir gitdir", "tells git where a repository's configuration lies"),
    Row("git-exec", ".githooks/ .git-hooks/ .husky/ .git_template/", "a directory of git hooks"),
    Row("git-exec", "lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml lefthook.toml .lefthook.toml "
        "lefthook.json lefthook-local.yml .lefthook/ .overcommit.yml .git-hooks.yml",
        "git hooks run what it says"),
    Row("git-exec", ".pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml",
        "pre-commit runs it at the next commit"),
    Row("git-exec", ".lintstagedrc* lint-staged.config.* .huskyrc* .commitlintrc* commitlint.config.*",
        "run by git hooks at the next commit"),
    Row("git-exec", ".hg/ .hgrc .bzr/ .svn/ .jj/ .sl/ _darcs/ .pijul/",
        "another version control's hooks and settings"),
    # shells and what they read
    Row("shell-rc", ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion "
        ".profile", "bash runs it when it starts or ends"),
    Row("shell-rc", ".zshrc .zshenv .zprofile .zlogin .zlogout .zsh/ .oh-my-zsh/ .zsh_plugins.txt",
        "zsh runs it"),
    Row("shell-rc", ".config/fish/ .config/nushell/ .config/elvish/ .config/xonsh/ .xonshrc "
        ".config/powershell/", "a shell runs it when it starts"),
    Row("shell-rc", ".kshrc .mkshrc .cshrc .tcshrc .login .logout .shrc .rcrc",
        "a shell runs it when it starts"),
    Row("shell-rc", "microsoft.powershell_profile.ps1 profile.ps1", "PowerShell runs it when it starts"),
    Row("shell-rc", ".inputrc .config/readline/ .config/starship.toml .tmux.conf .config/tmux/ .screenrc",
        "a terminal program binds keys or runs commands from it"),
    Row("shell-rc", ".config/alacritty/ .config/kitty/ .config/wezterm/ .wezterm.lua .config/ghostty/ "
        ".hyper.js", "a terminal starts the programs it names"),
    Row("shell-rc", ".env .env.* .env-* .env_* .flaskenv .dev.vars",
        "loaded into the environment of programs"),
    Row("shell-rc", ".envrc .direnv/ .direnvrc .config/direnv/ .autoenv .autoenv.zsh .in .out "
        ".smartcd_enter", "run on entering the directory"),
    Row("shell-rc", "mise.toml .mise.toml mise.*.toml .mise.*.toml mise/config.toml .mise/ .config/mise/ "
        ".mise-tasks/ mise-tasks/", "mise sets environments and runs hooks on entering the directory"),
    Row("shell-rc", "flake.nix shell.nix default.nix devenv.nix devenv.yaml .envrc.nix devbox.json",
        "run on entering or building the environment"),
    Row("shell-rc", ".rvmrc", "rvm runs it on entering the directory"),
    Row("shell-rc", ".local/bin/ .bin/", "programs that shells find by name"),
    # signing in
    Row("login", ".ssh/", "keys, hosts, and commands that ssh runs"),
    Row("login", ".gnupg/ .password-store/", "keys, and programs that gpg runs"),
    Row("login", ".netrc _netrc .authinfo .authinfo.gpg .git-credentials .config/gh/",
        "credentials that programs use"),
    Row("login", ".aws/ .azure/ .config/gcloud/ .kube/ .docker/ .oci/ .config/doctl/",
        "cloud tools run credential helpers named in it"),
    Row("login", "authorized_keys sshd_config ssh_config .shosts .rhosts .pam_environment sudoers",
        "decides who may sign in"),
    # package managers and build tools
    Row("package-rc", ".npmrc .yarnrc .yarnrc.yml .yarnrc.yaml .yarn/ .pnpmrc .pnpmfile.cjs .pnpmfile.mjs "
        "pnpmfile.js .bunfig.toml bunfig.toml .noderc .node-gyp/ .npmignore.js",
        "a JavaScript package manager runs or obeys it"),
    Row("package-rc", "pip.conf pip.ini .pip/ .config/pip/ .pypirc uv.toml .config/uv/ poetry.toml "
        ".condarc .pdm.toml pdm.toml .pydistutils.cfg .config/pypoetry/ .pixi/config.toml",
        "a Python package manager fetches from where it says"),
    Row("package-rc", ".cargo/ .config/cargo/ rust-toolchain rust-toolchain.toml",
        "cargo runs the wrappers, runners and linkers named in it"),
    Row("package-rc", ".gemrc .bundle/ .irbrc .pryrc", "Ruby tools run or obey it"),
    Row("package-rc", ".mvn/ .m2/ .gradle/gradle.properties .gradle/init.d/ init.gradle init.gradle.kts "
        ".sbtopts .jvmopts .sdkman/", "Java build tools start with what it says"),
    Row("package-rc", "auth.json .composer/ nuget.config .nuget/ .config/nuget/ .swiftpm/",
        "a package manager obeys it"),
    Row("package-rc", ".config/go/ go.env .bazelrc .bazeliskrc .buckconfig .buckroot tools/bazel "
        "user.bazelrc", "a build tool starts with what it says"),
    Row("package-rc", "pip.conf.d/ .pythonrc .pythonrc.py .pythonstartup .config/ipython/ .ipython/ "
        ".jupyter/ .pdbrc .pdbrc.py", "Python runs it when it starts or debugs"),
    Row("package-rc", ".rprofile .renviron .juliarc.jl .julia/ .octaverc .ghci .ghc/ .lldbinit .gdbinit "
        ".gdbearlyinit .config/gdb/ .erlang .iex.exs .luarc.lua .sqliterc .psqlrc .my.cnf .mylogin.cnf "
        ".duckdbrc .perldb .replyrc", "an interpreter, debugger or client runs it when it starts"),
    Row("package-rc", ".wgetrc .curlrc .aria2/ .config/aria2/ .lessfilter .lesskey .lessrc .dircolors "
        ".ackrc .ripgreprc .config/ripgrep/ .config/bat/ .screenlayout/",
        "a command-line tool starts with what it says"),
    Row("package-rc", ".terraformrc terraform.rc .terraform.d/ .terraform/ .ansible.cfg ansible.cfg "
        ".ansible/ .vagrant.d/ .helm/ .pulumi/ .config/helm/",
        "an infrastructure tool runs plugins named in it"),
    # editors and development environments
    Row("editor-exec", ".vscode/ .vscode-insiders/ .vscodium/ .vs/ .fleet/ .theia/ *.code-workspace",
        "the editor runs tasks and programs named in it"),
    Row("editor-exec", ".idea/ *.iml *.ipr *.iws .run/",
        "a JetBrains editor runs configurations named in it"),
    Row("editor-exec", ".zed/ .config/zed/ .nova/ .lapce/ .helix/ .config/helix/ .kakrc .config/kak/ "
        ".micro/", "the editor runs tasks and language servers named in it"),
    Row("editor-exec", ".vimrc _vimrc .gvimrc .exrc _exrc .vim/ .nvimrc .nvim.lua .nvim/ .config/nvim/ "
        ".ideavimrc .lvimrc .local.vimrc .vimspector.json .vim-bookmarks",
        "vim or neovim runs it on opening the directory"),
    Row("editor-exec", ".emacs .emacs.el .emacs.d/ .config/emacs/ .dir-locals.el .dir-locals-2.el "
        ".spacemacs .projectile .doom.d/", "emacs runs it on opening a file"),
    Row("editor-exec", "*.sublime-project *.sublime-workspace *.sublime-build .atom/ .brackets.json "
        ".nanorc .kateproject *.komodoproject .editorconfig-local",
        "the editor runs build commands named in it"),
    Row("editor-exec", ".settings/ .project .classpath .cproject .pydevproject nbproject/ "
        ".externaltoolbuilders/", "Eclipse or NetBeans runs builders named in it"),
    Row("editor-exec", ".devcontainer/ .devcontainer.json devcontainer.json .gitpod.yml "
        ".gitpod.dockerfile .gitpod/ .devfile.yaml devfile.yaml .codesandbox/ .stackblitzrc .replit "
        "replit.nix .idx/ .daytona/ .coder/", "run when a development container starts"),
    Row("editor-exec", ".xcode.env .xcode.env.local", "Xcode runs it"),
    # agents
    Row("agent-config", "agents.md agent.md agents.override.md identity.md soul.md skill.md .agents/ "
        ".agent.md agents.local.md", "agents obey it"),
    Row("agent-config", ".mcp.json mcp.json mcp_servers.json mcp_config.json .mcp/ mcp-config.json "
        "mcp_settings.json claude_desktop_config.json", "agents start the programs named in it"),
    Row("agent-config", "claude.md claude.local.md .claude/ .claude.json .claudeignore",
        "Claude obeys it, and runs its hooks"),
    Row("agent-config", ".codex/ codex.md", "Codex obeys it"),
    Row("agent-config", "gemini.md .gemini/ .geminiignore .jules/",
        "Gemini obeys it, and starts its servers"),
    Row("agent-config", ".cursor/ .cursorrules .cursorignore .cursorindexingignore",
        "Cursor obeys it, and runs its hooks"),
    Row("agent-config", ".windsurf/ .windsurfrules .codeium/ .codeiumignore", "Windsurf obeys it"),
    Row("agent-config", ".cline/ .clinerules .clinerules/ .clineignore .roo/ .roorules* .roomodes "
        ".rooignore .kilocode/ .kilocodemodes", "Cline or Roo obeys it"),
    Row("agent-config", ".github/copilot-instructions.md .github/instructions/ .github/prompts/ "
        ".github/agents/ .github/chatmodes/ .github/skills/ .github/hooks/ .copilot/ "
        "copilot-setup-steps.yml", "Copilot obeys it"),
    Row("agent-config", ".aider* .continue/ .continuerules .continuerc.json", "Aider or Continue obeys it"),
    Row("agent-config", "opencode.json opencode.jsonc .opencode/ crush.json .crush.json .crush/ crush.md",
        "the agent obeys it, and starts its servers"),
    Row("agent-config", ".goosehints .goose/ .config/goose/ .amazonq/ .q/ .kiro/ .junie/ .augment/ "
        ".augment-guidelines .trae/ .qoder/ .rules warp.md .warp/ .openhands/ .openhands_instructions "
        ".devin/ .tabnine/ .cody/ .sourcegraph/ .factory/ .amp/ amp.md agent-config.json qwen.md .qwen/ "
        ".iflow/ .grok/", "another agent obeys it"),
    Row("agent-config", ".bowerbird/ bowerbird.yaml bowerbird.yml .bowerbird.yaml /config.yaml "
        "/config.local.yaml", "Bowerbird's settings, or named like them: they can name programs to start"),
    # build servers
    Row("ci", ".github/workflows/ .github/actions/ .github/dependabot.yml .github/renovate.json",
        "runs on GitHub"),
    Row("ci", "action.yml action.yaml", "a GitHub action: runs wherever a workflow uses it"),
    Row("ci", ".gitlab-ci.yml .gitlab-ci.yaml .gitlab-ci/ .gitlab/", "runs on GitLab"),
    Row("ci", ".gitea/ .forgejo/", "runs on Gitea or Forgejo"),
    Row("ci", ".circleci/ circle.yml .travis.yml .travis/ appveyor.yml .appveyor.yml appveyor.yaml "
        ".appveyor.yaml .semaphore/ .buildkite/ .cirrus.yml .cirrus.star .drone.yml .drone.yaml "
        ".drone.star .drone.jsonnet .woodpecker.yml .woodpecker.yaml .woodpecker/ .codeship-services.yml "
        "codeship-steps.yml wercker.yml", "runs on the build server"),
    Row("ci", "jenkinsfile jenkinsfile.* *.jenkinsfile .jenkins/ .jenkins-x/ jenkins-x.yml",
        "runs on Jenkins"),
    Row("ci", "azure-pipelines*.yml azure-pipelines*.yaml .azure-pipelines/ .azuredevops/ .vsts-ci.yml",
        "runs on Azure"),
    Row("ci", "bitbucket-pipelines.yml bitbucket-pipelines.yaml", "runs on Bitbucket"),
    Row("ci", "cloudbuild*.yaml cloudbuild*.yml cloudbuild.json buildspec.yml buildspec.yaml appspec.yml "
        "amplify.yml .gcloudignore skaffold.yaml .ebextensions/ .platform/ .elasticbeanstalk/",
        "runs at the cloud provider"),
    Row("ci", ".teamcity/ .builds/ .build.yml .copr/ .packit.yaml .packit.yml .zuul.yaml .zuul.d/ "
        "zuul.yaml .tekton/ .prow.yaml .prow/ .kokoro/ .ci/ .sourcehut/ .onedev-buildspec.yml .harness/ "
        ".vela.yml .screwdriver.yaml screwdriver.yaml .shippable.yml shippable.yml .scrutinizer.yml "
        "bamboo-specs/ codemagic.yaml bitrise.yml .xcode-cloud/ ci_scripts/ .earthly/",
        "runs on the build server"),
    Row("ci", "netlify.toml vercel.json .vercel/ now.json render.yaml fly.toml wrangler.toml "
        "wrangler.json wrangler.jsonc railway.json railway.toml heroku.yml firebase.json .firebaserc "
        "dokku.yml captain-definition .do/ .upsun/ .platform.app.yaml nixpacks.toml zeabur.json",
        "runs at the hosting provider on the next push"),
    Row("ci", ".readthedocs.yml .readthedocs.yaml readthedocs.yml .goreleaser.yml .goreleaser.yaml "
        ".releaserc* release.config.js .mergify.yml renovate.json renovate.json5 .renovaterc "
        ".renovaterc.json .changeset/config.json", "a service runs it, with rights on the repository"),
    # the system and desktops
    Row("autostart", ".config/systemd/ systemd/system/ systemd/user/ *.service *.timer *.socket *.mount "
        "*.automount", "systemd starts it"),
    Row("autostart", ".config/autostart/ .config/autostart-scripts/ *.desktop .local/share/applications/ "
        ".config/plasma-workspace/ .kde/autostart/", "a desktop starts it"),
    Row("autostart", "library/launchagents/ library/launchdaemons/ *.command *.workflow/",
        "macOS starts it"),
    Row("autostart", "startup/*.bat startup/*.cmd startup/*.vbs autorun.inf desktop.ini",
        "Windows starts it"),
    Row("autostart", "crontab .crontab cron.d/ cron.daily/ cron.hourly/ cron.weekly/ cron.monthly/ "
        "anacrontab", "cron runs it"),
    Row("autostart", ".xinitrc .xsession .xsessionrc .xprofile .xserverrc .xresources .config/i3/ .i3/ "
        ".config/sway/ .config/hypr/ .config/bspwm/ .config/sxhkd/ .config/awesome/ .xbindkeysrc "
        ".config/openbox/ .fluxbox/ .config/qtile/ .xmonad/ .config/polybar/ .config/waybar/",
        "a desktop runs it when it starts"),
    Row("autostart", "init.d/ rc.local rc.d/ udev/rules.d/ profile.d/ ld.so.preload ld.so.conf.d/ "
        "modprobe.d/ dbus-1/services/ .local/share/dbus-1/ polkit-1/ pam.d/ sudoers.d/",
        "the system runs or obeys it"),
    Row("autostart", ".config/environment.d/ .forward .procmailrc .mailcap .config/mimeapps.list "
        ".local/share/mime/ .mime.types .config/user-dirs.dirs .config/user-tmpfiles.d/",
        "the system or a mail program obeys it"),
    Row("autostart", ".config/watchexec/ .watchmanconfig .watchr nodemon.json .nodemonrc bacon.toml "
        ".guardfile guardfile", "a watcher that runs may start what it names"),
)  # fmt: skip

HELD = (
    Row("build-exec", "config.yaml config.local.yaml", "programs start with the settings in it"),
    Row("build-exec", "*.pbxproj *.xcscheme *.xcworkspacedata podfile.rb",
        "Xcode runs script phases named in it"),
    Row("build-exec", "makefile makefile.* *.mk *.mak gnumakefile bsdmakefile", "make runs it"),
    Row("build-exec", "justfile .justfile justfile.* *.just taskfile.yml taskfile.yaml taskfile.*.yml "
        "magefile.go xtask/ rakefile rakefile.rb *.rake thorfile invoke.yml tasks.py fabfile.py dodo.py "
        "noxfile.py snakefile sconstruct sconscript wscript waf earthfile build.ninja meson.build "
        "meson_options.txt", "a task runner runs it"),
    Row("build-exec", "package.json deno.json deno.jsonc jsr.json pnpm-workspace.yaml lerna.json nx.json "
        "turbo.json rush.json workspace.json project.json gulpfile.* gruntfile.* vite.config.* "
        "vitest.config.* vitest.workspace.* jest.config.* jest.setup.* webpack.config.* rollup.config.* "
        "esbuild.config.* babel.config.* .babelrc* tsup.config.* next.config.* nuxt.config.* "
        "svelte.config.* astro.config.* remix.config.* angular.json playwright.config.* cypress.config.* "
        "karma.conf.* .mocharc.* ava.config.* eslint.config.* prettier.config.* postcss.config.* "
        "tailwind.config.* metro.config.* rspack.config.* rolldown.config.* tsconfig*.json "
        "*.config.js *.config.cjs *.config.mjs *.config.ts *.config.mts *.config.cts gatsby-*.js gatsby-*.ts "
        "ecosystem.config.*",
        "scripts and plugins of a JavaScript build"),
    Row("build-exec", "pyproject.toml setup.py setup.cfg conftest.py pytest.ini tox.ini "
        "manage.py hatch.toml hatch_build.py build.py pavement.py sitecustomize.py usercustomize.py *.pth "
        "*.egg-link _custom_build.py mypy.ini .mypy.ini .coveragerc .pylintrc pylintrc .flake8 "
        "pdm_build.py pixi.toml environment.yml environment.yaml requirements*.txt "
        "requirements*.in constraints*.txt pipfile gunicorn.conf.py gunicorn_config.py alembic.ini "
        "alembic/env.py", "Python builds, tests or starts with it"),
    Row("build-exec", "dockerfile dockerfile.* *.dockerfile containerfile containerfile.* compose.yml "
        "compose.yaml compose.*.yml compose.*.yaml docker-compose*.yml docker-compose*.yaml "
        "docker-bake.hcl docker-bake.json .dockerignore vagrantfile procfile procfile.* tiltfile mprocs.yaml "
        "chart.yaml kustomization.yaml kustomization.yml", "containers are built or started from it"),
    Row("build-exec", "build.gradle build.gradle.kts settings.gradle settings.gradle.kts "
        "gradle.properties gradlew gradlew.bat gradle/wrapper/ buildsrc/ *.gradle *.gradle.kts pom.xml "
        "mvnw mvnw.cmd build.xml ivy.xml build.sbt project/*.sbt project/*.scala build.sc build.mill "
        "project.clj deps.edn build.boot", "a Java build runs it"),
    Row("build-exec", "cmakelists.txt *.cmake cmakepresets.json cmakeuserpresets.json configure "
        "configure.ac configure.in *.m4 *.am conanfile.py conanfile.txt vcpkg.json xmake.lua premake5.lua "
        "*.pro *.pri *.vcxproj *.props *.targets", "a C or C++ build runs it"),
    Row("build-exec", "cargo.toml build.rs go.mod go.work package.swift gemfile gems.rb *.gemspec "
        "composer.json mix.exs rebar.config stack.yaml cabal.project *.cabal setup.hs dune dune-project "
        "*.opam opam build.zig build.zig.zon shard.yml pubspec.yaml build.yaml makefile.pl build.pl "
        "brewfile dangerfile fastfile appfile config.ru cpanfile *.nimble *.rockspec dub.json "
        "dub.sdl", "a build or an installation runs it"),
    Row("build-exec", "*.csproj *.fsproj *.vbproj *.sln directory.build.props directory.build.targets "
        "global.json build.cake build.fsx paket.dependencies", "a .NET build runs it"),
    Row("build-exec", "workspace workspace.bazel module.bazel build build.bazel *.bzl buck pants.toml "
        "pants *.star", "Bazel, Buck or Pants runs it"),
    Row("build-exec", "phpunit.xml phpunit.xml.dist behat.yml codeception.yml karma.conf.js .rspec-local "
        "spec_helper.rb rails_helper.rb test_helper.rb testhelper.cmake ctestconfig.cmake",
        "tests start with it"),
    Row("build-exec", "playbook.yml playbook.yaml site.yml *.tf *.tfvars *.hcl pulumi.yaml serverless.yml "
        "serverless.yaml template.yaml samconfig.toml cdk.json", "infrastructure is changed by it"),
    Row("build-exec", "mkdocs.yml conf.py book.toml _config.yml hugo.toml docusaurus.config.* .vitepress/ "
        ".storybook/ quarto.yml _quarto.yml latexmkrc .latexmkrc", "a documentation build runs it"),
    Row("build-exec", "hie.yaml omnisharp.json analysis_options.yaml renv/activate.r",
        "a language server or R runs what it names"),
    Row("lockfile", "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml yarn.lock bun.lock bun.lockb "
        "deno.lock", "decides which JavaScript packages are installed"),
    Row("lockfile", "uv.lock poetry.lock pdm.lock pipfile.lock pixi.lock pylock.toml pylock.*.toml "
        "conda-lock.yml", "decides which Python packages are installed"),
    Row("lockfile", "cargo.lock go.sum go.work.sum gemfile.lock gems.locked composer.lock mix.lock "
        "package.resolved flake.lock devbox.lock devenv.lock pubspec.lock shard.lock stack.yaml.lock "
        "gradle.lockfile buildscript-gradle.lockfile packages.lock.json paket.lock podfile podfile.lock "
        "cartfile.resolved chart.lock .terraform.lock.hcl module.bazel.lock vcpkg-lock.json conan.lock "
        "mise.lock", "decides which packages are installed"),
)  # fmt: skip

ROWS: tuple[Row, ...] = NEEDS_ACCEPT + HELD
