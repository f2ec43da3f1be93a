char *trim(char *text);
