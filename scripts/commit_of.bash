# To be sourced. commit_of FOLDER sets `commit` to what the checkout in FOLDER stands on, or to nothing. It asks files,
# not git: git may be absent, or refuse a folder that belongs to somebody else, and starting it takes longer.
commit_of() {
  commit=
  [[ -f $1/.git/HEAD ]] || return 0
  read -r commit <"$1/.git/HEAD"
  [[ $commit == ref:* ]] || return 0
  local ref=$1/.git/${commit#ref: }
  commit=
  if [[ -f $ref ]]; then read -r commit <"$ref"; fi
}
