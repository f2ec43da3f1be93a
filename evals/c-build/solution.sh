printf '%s\n' 'extern int limit;' 'int over(const int *numbers, int count);' > tally.h
sed -i 's/^int over/int limit = 3;\n\nint over/; s/unsigned i/int i/' over.c
sed -i 's/numbers\[64\], unused;/numbers[64];/; s/#include <stdio.h>/#include <stdio.h>\n#include <stdlib.h>/' main.c
