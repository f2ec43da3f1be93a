#include "trim.h"
#include <string.h>

char *trim(char *text)
{
    char *end = text + strlen(text) - 1;
    while (*end == ' ')
        end--;
    end[1] = '\0';
    while (*text == ' ')
        text++;
    return text;
}
