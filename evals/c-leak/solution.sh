python3 - <<'X'
s = open("list.c").read()
s = s.replace("        at->text = copy(text);\n        return;", "        char *old = at->text; /* text may be this one */\n        at->text = copy(text);\n        free(old);\n        return;")
s = s.replace("            *at = (*at)->next;\n", "            struct entry *gone = *at;\n            *at = gone->next;\n            drop(gone);\n")
s = s.replace("    free(list->first);\n", "    while (list->first) {\n        struct entry *gone = list->first;\n        list->first = gone->next;\n        drop(gone);\n    }\n")
s = s.replace("int list_remove", "static void drop(struct entry *entry)\n{\n    free(entry->name);\n    free(entry->text);\n    free(entry);\n}\n\nint list_remove")
open("list.c", "w").write(s)
X
