#include "port.h"
#include <stdio.h>

int main(void)
{
    const char *texts[] = {"1", "80", "65535", "65536", "0", "", "080", "+80", "-1", " 80", "80 ", "8a", "0x50",
                           "99999999999999999999", "4294967376", "12.5", "９", "65530"};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
        printf("%d ", parse_port(texts[i]));
    printf("%d\n", parse_port(NULL));
    return 0;
}
