cat > trim.c <<'X'
#include "trim.h"
#include <string.h>

char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t", text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}
X
