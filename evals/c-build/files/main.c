#include "tally.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    int numbers[64], unused;
    for (int i = 1; i < argc && i <= 64; i++)
        numbers[i - 1] = atoi(argv[i]);
    printf("%d over %d\n", over(numbers, argc - 1), limit);
    return 0;
}
