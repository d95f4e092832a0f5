# examples.awk: takes the examples out of a Markdown file and into `folder`.
#
# A fenced block that starts with ```sql is an example; the block ```text after
# it, with nothing but blank lines between, is what the sqlite3 shell prints.
# Writes folder/session.sql, in which a line "=== NUMBER" is printed before each
# example, and folder/expected, in which the same line stands before each output.

BEGIN { session = folder "/session.sql"; expected = folder "/expected" }

/^```sql *$/ {
  number++
  print ".print === " number > session
  print "=== " number > expected
  inside = "sql"
  next
}
/^```text *$/ && after_example { inside = "text"; next }
/^```/ {
  if (inside == "" ) inside = "other"
  else { after_example = (inside == "sql"); inside = "" }
  next
}
inside == "sql" { print > session; next }
inside == "text" { print > expected; next }
inside == "" && !/^[ \t]*$/ { after_example = 0 }
