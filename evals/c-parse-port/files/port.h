/* Returns the port that the text names, -1 if it names none. */
int parse_port(const char *text);
