# links.awk: what a Markdown file points at, and what in it can be pointed at.
#
# Writes "link TARGET" for each link or picture in the text, and "anchor NAME" for
# each heading, named as GitHub names it: lower case, no punctuation, a hyphen for
# each blank, -1, -2 … where the name was there before. Nothing inside code counts.

/^ *```/ { code = !code; next }
code { next }

/^#+ / {
  name = tolower($0)
  sub(/^#+ +/, "", name)
  sub(/ +$/, "", name)
  gsub(/\]\([^)]*\)/, "", name)
  gsub(/[][`.,:;!?()'"…*\/|+&=<>{}$%@~^]/, "", name)
  gsub(/ /, "-", name)
  print "anchor " (name in seen ? name "-" seen[name] : name)
  seen[name]++
}

{
  text = $0
  gsub(/`[^`]*`/, "", text)
  while (match(text, /\]\([^)]*\)/)) {
    print "link " substr(text, RSTART + 2, RLENGTH - 3)
    text = substr(text, RSTART + RLENGTH)
  }
}
