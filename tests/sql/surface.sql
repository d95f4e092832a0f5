-- The whole SQL surface: every function with its numbers of arguments and its
-- flags, every table with its columns. A change here is a change for users.
SELECT name, narg, iif(flags & 0x800, 'deterministic', '') AS d,
       iif(flags & 0x200000, 'innocuous', '') AS i, iif(flags & 0x80000, 'directonly', '') AS o
  FROM pragma_function_list WHERE name LIKE 'bert%' OR name LIKE 'attn%' OR
       name IN ('self_attention', 'positional_encoding') ORDER BY name, narg;
SELECT name FROM pragma_module_list WHERE name LIKE 'bert%' OR name LIKE 'attn%' ORDER BY name;
.mode list
SELECT m.name, group_concat(x.name || iif(x.hidden, ' (hidden)', ''), ', ')
  FROM pragma_module_list AS m JOIN pragma_table_xinfo(m.name) AS x
 WHERE m.name LIKE 'bert%' OR m.name LIKE 'attn%' GROUP BY m.name ORDER BY m.name;
