// A linked list, string functions and allocation.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
	char *text;
	struct node *next;
};

static struct node *push(struct node *list, const char *text) {
	struct node *node = malloc(sizeof *node);
	node->text = strdup(text);
	node->next = list;
	return node;
}

static size_t longest(const struct node *list) {
	size_t most = 0;
	for (; list; list = list->next)
		if (strlen(list->text) > most)
			most = strlen(list->text);
	return most;
}

int main(void) {
	struct node *list = NULL;
	char text[64];
	for (int i = 0; i < 400; i++) {
		snprintf(text, sizeof text, "entry %d of %x", i, i * 37);
		list = push(list, text);
	}
	printf("%zu\n", longest(list));
	while (list) {
		struct node *next = list->next;
		free(list->text);
		free(list);
		list = next;
	}
	return 0;
}
