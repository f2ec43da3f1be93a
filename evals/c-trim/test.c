#include "trim.h"
#include <stdio.h>
#include <string.h>

static void show(const char *text)
{
    struct { char before[8]; char text[64]; char after[8]; } place;
    memset(&place, ' ', sizeof place);
    strcpy(place.text, text);
    char *found = trim(place.text);
    int whole = 1;
    for (int i = 0; i < 8; i++)
        whole = whole && place.before[i] == ' ' && place.after[i] == ' ';
    printf("[%s]%s\n", found, whole ? "" : " wrote outside");
}

int main(void)
{
    const char *texts[] = {"", " ", "   ", "\t \t", "a", " a", "a ", "\t a b \t", "a\tb", " \n "};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
        show(texts[i]);
    return 0;
}
