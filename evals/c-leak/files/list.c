#include "list.h"
#include <stdlib.h>
#include <string.h>

struct entry { char *name, *text; struct entry *next; };
struct list { struct entry *first; };

static char *copy(const char *text)
{
    char *made = malloc(strlen(text) + 1);
    return made ? strcpy(made, text) : NULL;
}

struct list *list_new(void) { return calloc(1, sizeof(struct list)); }

static struct entry *find(const struct list *list, const char *name)
{
    struct entry *at = list->first;
    while (at && strcmp(at->name, name))
        at = at->next;
    return at;
}

void list_set(struct list *list, const char *name, const char *text)
{
    struct entry *at = find(list, name);
    if (at) {
        at->text = copy(text);
        return;
    }
    at = malloc(sizeof *at);
    at->name = copy(name);
    at->text = copy(text);
    at->next = list->first;
    list->first = at;
}

const char *list_get(const struct list *list, const char *name)
{
    struct entry *at = find(list, name);
    return at ? at->text : NULL;
}

int list_remove(struct list *list, const char *name)
{
    for (struct entry **at = &list->first; *at; at = &(*at)->next)
        if (!strcmp((*at)->name, name)) {
            *at = (*at)->next;
            return 1;
        }
    return 0;
}

void list_free(struct list *list)
{
    free(list->first);
    free(list);
}
