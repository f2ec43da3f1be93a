/* Texts by name. The list keeps copies of both. */
struct list;
struct list *list_new(void);
void list_set(struct list *list, const char *name, const char *text); /* replaces the text of a name */
const char *list_get(const struct list *list, const char *name);      /* NULL: no such name */
int list_remove(struct list *list, const char *name);                 /* 1 if it was there */
void list_free(struct list *list);
