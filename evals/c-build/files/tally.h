int limit = 3;
int over(const int *numbers, int count);
