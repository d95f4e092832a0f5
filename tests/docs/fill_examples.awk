# fill_examples.awk: a page with the outputs of its examples put in anew.
# `found` holds what the session of examples.awk printed, `demo` the excerpt of
# the demo. An example that printed something should be followed by ```text.

BEGIN {
  while ((getline line < found) > 0)
    if (line ~ /^=== [0-9]+$/) number = substr(line, 5)
    else output[number] = output[number] line "\n"
  while ((getline line < demo) > 0) excerpt = excerpt line "\n"
  number = 0
}

/<!-- from make demo -->/ { fill = excerpt; pending = 1 }
/^```sql *$/ { number++; inside = "sql"; print; next }
/^```text *$/ && pending { inside = "text"; pending = 0; print; printf "%s", fill; next }
/^```/ {
  if (inside == "") inside = "other"
  else {
    if (inside == "sql") { pending = 1; fill = output[number] }
    inside = ""
  }
  print
  next
}
inside == "text" { next }
inside == "" && !/^[ \t]*$/ && !/<!--/ { pending = 0 }
{ print }
