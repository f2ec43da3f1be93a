#include "list.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *held[1000];
static int count, taken, twice;
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *t);
void __real_free(void *p);
static void *keep(void *p) { held[count++] = p; taken++; return p; }
void *__wrap_malloc(size_t n) { return keep(__real_malloc(n)); }
void *__wrap_calloc(size_t n, size_t m) { return keep(__real_calloc(n, m)); }
char *__wrap_strdup(const char *t) { return keep(__real_strdup(t)); }
static int forget(void *p)
{
    for (int i = 0; i < count; i++)
        if (held[i] == p) { held[i] = held[--count]; return 1; }
    return 0;
}
void __wrap_free(void *p) { if (!p) return; if (forget(p)) __real_free(p); else twice++; }
void *__wrap_realloc(void *p, size_t n) { if (p && !forget(p)) twice++; return keep(__real_realloc(p, n)); }

int main(void)
{
    struct list *list = list_new();
    list_set(list, "a", "1"); list_set(list, "b", "2"); list_set(list, "c", "3");
    list_set(list, "b", "two"); list_set(list, "b", list_get(list, "b"));
    fprintf(stderr, "%s %s %s\n", list_get(list, "a"), list_get(list, "b"), list_get(list, "c"));
    int first = list_remove(list, "b"), second = list_remove(list, "b");
    fprintf(stderr, "removed %d %d\n", first, second);
    fprintf(stderr, "%d %d\n", list_get(list, "b") == NULL, list_remove(list, "zz"));
    list_set(list, "b", "again");
    fprintf(stderr, "%s\n", list_get(list, "b"));
    list_free(list);
    list_free(list_new());
    fprintf(stderr, "left %d twice %d taken %d\n", count, twice, taken > 8);
    return 0;
}
