# house_rules.awk: what a compiler does not check. Run over the C sources and
# headers of encoder/ and ext/; prints "file:line: rule" for each breach.
#
#   layers     base <- kernels <- search, files <- tokenizers, forward <- analysis <- model <- ext
#   sqlite3    is not mentioned in encoder/
#   libraries  utf8proc.h is included by unicode.c alone, cblas.h by gemm.c alone,
#              xxhash.h by digest.c alone
#   length     no function has more than 80 lines

BEGIN {
  rank["base"] = 0; rank["kernels"] = 1; rank["search"] = 2; rank["files"] = 2
  rank["tokenizers"] = 3; rank["forward"] = 3; rank["analysis"] = 4; rank["model"] = 5; rank["ext"] = 6
}

function breach(text) {
  print FILENAME ":" FNR ": " text
  breaches++
}

FNR == 1 {
  parts = split(FILENAME, path, "/")
  file = path[parts]
  folder = path[parts - 1]
  start = 0
}

/^#include "\.\.\// {
  split($2, included, "/")
  target = included[2] == "encoder" ? included[3] : included[2]
  if (target in rank && target != folder && rank[target] >= rank[folder])
    breach(folder " includes " target ", which is not below it")
  if (folder == "ext" && $2 !~ /encoder\/(bert|base\/base|search\/search)\.h/)
    breach("ext includes " $2 "; it sees the encoder through bert.h, base.h and search.h")
}

/sqlite3/ && FILENAME ~ /^encoder\// { breach("encoder mentions sqlite3") }
/^#include *<utf8proc/ && file != "unicode.c" { breach("only unicode.c includes utf8proc") }
/^#include *<xxhash/ && file != "digest.c" { breach("only digest.c includes xxhash.h") }
/^#include *<cblas/ && file != "gemm.c" { breach("only gemm.c includes cblas.h") }

# A function begins with a line that starts in the first column and is not a
# directive, a comment or a bare declaration, and ends with a brace there.
/^[A-Za-z_]/ && !start { start = FNR; name = $0 }
/^[A-Za-z_].*;[ \t]*$/ && !/[{]/ { start = 0 }
/^$/ && !open { start = 0 }
/[{][ \t]*$/ && start { open = 1 }
/^}/ {
  if (start && open && name ~ /\(/ && FNR - start + 1 > 80)
    breach("a function of " (FNR - start + 1) " lines: " name)
  start = 0; open = 0
}

END { exit breaches > 0 }
