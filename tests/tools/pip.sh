# pip.sh: sourced; pip however this machine starts it. The caller has die().
pip() {
  if python3 -m pip --version >/dev/null 2>&1; then
    python3 -m pip "$@"
  elif command -v pip3 >/dev/null; then
    command pip3 "$@"
  else
    die "needs pip to fetch a package: apt-get install python3-pip"
  fi
}
