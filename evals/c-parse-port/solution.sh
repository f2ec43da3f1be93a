cat > port.c <<'X'
#include "port.h"
#include <stddef.h>

int parse_port(const char *text)
{
    if (text == NULL || *text < '1' || *text > '9')
        return -1;
    long number = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        number = number * 10 + (*text - '0');
        if (number > 65535)
            return -1;
    }
    return (int)number;
}
X
