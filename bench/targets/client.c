// Asks a server as fast as it answers, over some connections, and counts the answers where others can see.
//
//     client ADDRESS PROTOCOL REQUESTS COUNTER CONNECTIONS
//
// ADDRESS: a port of the loopback, or the path of a socket. PROTOCOL: http, redis, memcached, postgres, mariadb.
// REQUESTS: a file of requests, each after its length (4 bytes), asked in turn; the first is said once in the beginning, after the
// server's greeting with mariadb. COUNTER: a file of 8 bytes. Ends when its stdin does, or with 1 at an error.
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST_CONNECTIONS 64
#define MOST_REQUESTS 4096
#define BUFFER (1 << 20)

struct connection {
    int fd;
    int greeted; // how much of the greeting is behind us
    long next;   // request
    size_t length;
    char *data;
};

static const char *address, *protocol;
static struct {
    const char *data;
    uint32_t length;
} requests[MOST_REQUESTS];
static long request_count;

static void fail(const char *what)
{
    fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int opened(void)
{
    int port = atoi(address), fd = socket(port ? AF_INET : AF_UNIX, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    strncpy(un.sun_path, address, sizeof(un.sun_path) - 1);
    if (connect(fd, port ? (void *)&in : (void *)&un, port ? sizeof(in) : sizeof(un)))
        fail("connect");
    if (port)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static void ask(struct connection *c, long number)
{
    c->length = 0;
    if (write(c->fd, requests[number].data, requests[number].length) != (ssize_t)requests[number].length)
        fail("write");
}

static int ends_with(const struct connection *c, const char *end, size_t length)
{
    return c->length >= length && !memcmp(c->data + c->length - length, end, length);
}

// 1: the answer is whole; 2: and the connection goes
static int http(struct connection *c)
{
    c->data[c->length] = 0;
    char *end = strstr(c->data, "\r\n\r\n");
    if (!end)
        return 0;
    if (strncmp(c->data, "HTTP/1.1 200 ", 13))
        fail("status");
    *end = 0;
    char *says = strcasestr(c->data, "\r\nContent-Length: "), *closes = strcasestr(c->data, "\r\nConnection: close");
    *end = '\r';
    int chunked = !says;
    if (chunked ? !ends_with(c, "\r\n0\r\n\r\n", 7)
                : c->length < (size_t)(end + 4 - c->data) + (size_t)atol(says + 18))
        return 0;
    return closes ? 2 : 1;
}

// Packets: a result set ends with its second EOF, all else is one packet.
static int mariadb(struct connection *c)
{
    const unsigned char *p = (const unsigned char *)c->data, *end = p + c->length;
    int ends = 0, first = 1;
    while (p + 4 <= end) {
        size_t length = p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16;
        if (p + 4 + length > end)
            return 0;
        if (p[4] == 0xff)
            fail((const char *)p + 13);
        if (first && (p[4] == 0 || p[4] == 10)) // OK, or the greeting
            return 1;
        first = 0;
        if (p[4] == 0xfe && length < 9 && ++ends == 2)
            return 1;
        p += 4 + length;
    }
    return 0;
}

static int whole(struct connection *c)
{
    if (!strcmp(protocol, "http"))
        return http(c);
    if (!strcmp(protocol, "redis"))
        return ends_with(c, "+PONG\r\n", 7);
    if (!strcmp(protocol, "memcached"))
        return ends_with(c, "END\r\n", 5);
    if (!strcmp(protocol, "postgres"))
        return ends_with(c, "Z\0\0\0\5I", 6);
    return mariadb(c);
}

static void begin(struct connection *c, long number)
{
    c->fd = opened();
    c->length = 0;
    c->next = 1 + number;
    c->greeted = 0;
    if (strcmp(protocol, "mariadb"))
        ask(c, 0);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    address = argv[1];
    protocol = argv[2];
    int file = open(argv[3], O_RDONLY), counts = open(argv[4], O_RDWR), count = atoi(argv[5]);
    off_t size = lseek(file, 0, SEEK_END);
    const char *all = mmap(0, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0);
    volatile uint64_t *counter = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, counts, 0);
    if (all == MAP_FAILED || counter == MAP_FAILED || count > MOST_CONNECTIONS - 1)
        fail("arguments");
    for (const char *p = all; p < all + size && request_count < MOST_REQUESTS; request_count++) {
        memcpy(&requests[request_count].length, p, 4);
        requests[request_count].data = p + 4;
        p += 4 + requests[request_count].length;
    }
    static struct connection connections[MOST_CONNECTIONS];
    struct pollfd watched[MOST_CONNECTIONS] = {{.fd = 0, .events = POLLIN}};
    for (int i = 1; i <= count; i++) {
        connections[i].data = malloc(BUFFER);
        begin(&connections[i], i * 37 % (request_count - 1));
        watched[i] = (struct pollfd){.fd = connections[i].fd, .events = POLLIN};
    }
    while (poll(watched, (nfds_t)count + 1, -1) > 0) {
        if (watched[0].revents)
            return 0;
        for (int i = 1; i <= count; i++) {
            struct connection *c = &connections[i];
            if (!watched[i].revents)
                continue;
            ssize_t got = read(c->fd, c->data + c->length, BUFFER - 1 - c->length);
            if (got < 0 || (!got && strcmp(protocol, "http")))
                fail("read");
            c->length += (size_t)got;
            int state = got ? whole(c) : 2;
            if (!state)
                continue;
            if (!strcmp(protocol, "mariadb") && !c->greeted) {
                c->greeted = 1;
                ask(c, 0);
                continue;
            }
            *counter += 1;
            if (state == 2) {
                close(c->fd);
                begin(c, c->next % (request_count - 1));
                watched[i].fd = c->fd;
                continue;
            }
            ask(c, c->next);
            c->next = c->next % (request_count - 1) + 1;
        }
    }
    return 1;
}
