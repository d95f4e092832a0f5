#!/bin/bash
# SVG documents of attn_svg are XML, whatever the text; heat maps keep to their width.
source tests/tools/assert.sh
source tests/tools/shell_output.sh

# svg TEXT_SQL OPTIONS: the document, in $work/a.svg.
svg() {
  run_sqlite :memory: ".load bertsql" "SELECT writefile('$work/a.svg', attn_svg($1, 2, 3, '$2'))" >/dev/null
}

test_svg_is_xml() {
  for text in "'time flies'" "''" "'a <b> & \"c\" ]]> <!-- -- <![CDATA['" "char(1, 8, 11, 27, 127, 133, 0xFFFE, 0xD800, 0x202E) || ' x'" \
    "CAST(x'C0AF41FF00E28041' AS TEXT)" "'مرحبا 東京 👩‍👩‍👧‍👦'" "replace(hex(zeroblob(90)), '00', 'word salad ')"; do
    svg "$text" '{}'
    xmllint --noout "$work/a.svg"
    svg "$text" '{"words": true, "special": false}'
    xmllint --noout "$work/a.svg"
  done
}

test_svg_title_is_text() {
  svg "'x'" '{"title": "</title><script>alert(1)</script>"}'
  xmllint --noout "$work/a.svg"
  expect_equal 0 "$(xmllint --xpath 'count(//*[local-name()="script"])' "$work/a.svg")"
}

test_heatmap_fits_the_terminal() {
  for width in 40 80 132; do
    run_sqlite :memory: ".load bertsql" \
      "SELECT attn_heatmap('a fairly long line of plain words that goes on and on, as such lines do, and then some more', 1, 2, '{\"width\": $width}')" \
      >"$work/map.txt"
    # The legend stands below and is as long as it is.
    widest=$(grep -v 'rows attend' "$work/map.txt" | wc -L)
    [ "$widest" -le "$width" ] || fail "a line of $widest columns for a width of $width"
  done
}

run_tests
