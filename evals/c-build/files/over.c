#include "tally.h"

int over(const int *numbers, int count)
{
    int found = 0;
    for (unsigned i = 0; i < count; i++)
        found += numbers[i] > limit;
    return found;
}
