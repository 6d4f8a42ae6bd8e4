# `packaging` for scripts: its submodule `version`.
