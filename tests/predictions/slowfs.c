/* A folder mounted over itself, each of whose calls takes a given time: storage as slow as is wanted; and a second server
 * that gets what is written there. slowfs.py compiles and starts it, and describes its options.
 *
 *     slowfs FOLDER MOUNTPOINT SECONDS [OPTION=VALUE...]
 *     slowfs replica ADDRESS PORT LOG
 *
 * In C: an emulation in Python takes time of the processors, and its threads wait for each other; both were
 * seen in what was measured. Nothing is cached, so that every call of the server comes here. Needs libfuse 3.
 *
 * Copies go over TCP in the order of the writes. A frame is a length (4 bytes, big endian) and that many bytes of data; a
 * length with the highest bit set is a flush instead: the rest of it is the time in microseconds that the second server's log
 * takes, after which the server answers with one byte. Lines of the logs of both ends: time in ns (CLOCK_REALTIME, both are on
 * one machine), bytes in total. */
#define FUSE_USE_VERSION 35
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <search.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define FLUSH (1u << 31)
#define RECEIVED (1 << 20)
/* The timer wakes up this much too late. */
#define LATE_NS 20000

static const char *folder;
static double call_s, disk_s, misses, jitter;
static double log_s = -1;
static int is_sync, copy_socket = -1;
static FILE *sent_log;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void wait_until(int64_t end) {
    int64_t wake = end - LATE_NS;
    if (wake > now(CLOCK_MONOTONIC)) {
        struct timespec time = {wake / 1000000000, wake % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
        }
    }
    while (now(CLOCK_MONOTONIC) < end) {
    }
}

/* What was written to a log's file: time and bytes in total. */
static void note(FILE *file, uint64_t total) {
    fprintf(file, "%lld %llu\n", (long long)now(CLOCK_REALTIME), (unsigned long long)total);
    fflush(file);
}

static void send_all(int to, const void *bytes, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t sent = send(to, (const char *)bytes + done, length - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            fail("send");
        done += sent > 0 ? (size_t)sent : 0;
    }
}

/* Frames that wait to be sent, and flushes that wait for their answers, each in its order. */
struct item {
    struct item *next;
    sem_t *done;
    size_t length;
    int64_t due;
    char bytes[];
};

struct queue {
    struct item *first, **last;
    pthread_mutex_t lock;
    pthread_cond_t filled;
};

#define QUEUE(name) \
    static struct queue name = {NULL, &name.first, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER}
QUEUE(frames);
QUEUE(flushes);

static void put(struct queue *queue, struct item *item) {
    item->next = NULL;
    pthread_mutex_lock(&queue->lock);
    *queue->last = item;
    queue->last = &item->next;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

static struct item *take(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    while (!queue->first)
        pthread_cond_wait(&queue->filled, &queue->lock);
    struct item *item = queue->first;
    queue->first = item->next;
    if (!queue->first)
        queue->last = &queue->first;
    pthread_mutex_unlock(&queue->lock);
    return item;
}

static struct item *new_item(size_t length) {
    struct item *item = calloc(1, sizeof *item + length);
    if (!item)
        fail("calloc");
    item->length = length;
    return item;
}

static void *send_frames(void *unused) {
    (void)unused;
    for (;;) {
        struct item *item = take(&frames);
        send_all(copy_socket, item->bytes, item->length);
        free(item);
    }
    return NULL;
}

static void *take_answers(void *unused) {
    (void)unused;
    char answers[256];
    ssize_t length;
    /* Logs take equally long, so that the answers come in the order of the flushes. */
    while ((length = recv(copy_socket, answers, sizeof answers, 0)) > 0) {
        for (ssize_t place = 0; place < length; place++) {
            struct item *item = take(&flushes);
            sem_post(item->done);
            free(item);
        }
    }
    return NULL;
}

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

static void copy_write(const char *bytes, size_t length) {
    static uint64_t total;
    struct item *item = new_item(4 + length);
    uint32_t head = htonl((uint32_t)length);
    memcpy(item->bytes, &head, 4);
    memcpy(item->bytes + 4, bytes, length);
    pthread_mutex_lock(&order);
    total += length;
    note(sent_log, total);
    put(&frames, item);
    pthread_mutex_unlock(&order);
}

/* Waits until the second server has all that was written before, and its log, too. */
static void copy_flush(double seconds) {
    sem_t done;
    sem_init(&done, 0, 0);
    struct item *frame = new_item(4), *flush = new_item(0);
    uint32_t head = htonl(FLUSH | (uint32_t)(seconds * 1e6));
    memcpy(frame->bytes, &head, 4);
    flush->done = &done;
    pthread_mutex_lock(&order);
    put(&flushes, flush);
    put(&frames, frame);
    pthread_mutex_unlock(&order);
    while (sem_wait(&done) < 0 && errno == EINTR) {
    }
    sem_destroy(&done);
}

/* Files that were written since their last flush. */
static pthread_mutex_t written_lock = PTHREAD_MUTEX_INITIALIZER;
static void *written;

static int by_number(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static void set_written(int file) {
    struct stat st;
    if (fstat(file, &st) < 0)
        return;
    uint64_t *number = malloc(sizeof *number);
    *number = st.st_ino;
    pthread_mutex_lock(&written_lock);
    uint64_t **known = tsearch(number, &written, by_number);
    pthread_mutex_unlock(&written_lock);
    if (!known || *known != number)
        free(number);
}

/* Whether it was written; `takes` ends that. */
static int was_written(int file, int takes) {
    struct stat st;
    if (fstat(file, &st) < 0)
        return 0;
    uint64_t number = st.st_ino;
    pthread_mutex_lock(&written_lock);
    uint64_t **known = tfind(&number, &written, by_number), *found = known ? *known : NULL;
    if (found && takes) {
        tdelete(&number, &written, by_number);
        free(found);
    }
    pthread_mutex_unlock(&written_lock);
    return found != NULL;
}

static double chance(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned short state[3] = {1, 2, 3};
    pthread_mutex_lock(&lock);
    double value = erand48(state);
    pthread_mutex_unlock(&lock);
    return value;
}

/* Where a path is below; the text is the thread's own. */
static const char *at(const char *path) {
    static __thread char places[2][4096];
    static __thread int which;
    char *place = places[which ^= 1];
    snprintf(place, sizeof places[0], "%s%s", folder, path);
    return place;
}

/* The end of a call: what it gives, after its time. */
static int after(int64_t begin, double seconds, long result) {
    int given = result < 0 ? -errno : (int)result;
    if (jitter > 0)
        seconds *= 1 + jitter * (2 * chance() - 1);
    if (seconds > 0)
        wait_until(begin + (int64_t)(seconds * 1e9));
    return given;
}

#define CALL(expression) \
    int64_t begin = now(CLOCK_MONOTONIC); \
    return after(begin, call_s, (expression))

static int fs_access(const char *path, int mode) {
    (void)path, (void)mode;
    CALL(0);
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *file) {
    (void)file;
    CALL(chmod(at(path), mode));
}

static int fs_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *file) {
    (void)file;
    CALL(lchown(at(path), user, group));
}

static int opened(struct fuse_file_info *file, int handle) {
    file->fh = (uint64_t)handle;
    file->direct_io = 1;
    return handle < 0 ? -1 : 0;
}

static int created(const char *path, mode_t mode, struct fuse_file_info *file) {
    struct fuse_context *user = fuse_get_context();
    int handle = open(at(path), O_RDWR | O_CREAT | O_TRUNC, mode);
    if (handle >= 0 && fchown(handle, user->uid, user->gid) < 0) {
        close(handle);
        return -1;
    }
    return opened(file, handle);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *file) {
    CALL(created(path, mode, file));
}

static int fs_open(const char *path, struct fuse_file_info *file) {
    CALL(opened(file, open(at(path), file->flags)));
}

static int fs_flush(const char *path, struct fuse_file_info *file) {
    (void)path, (void)file;
    CALL(0);
}

static int fs_fsync(const char *path, int data, struct fuse_file_info *file) {
    (void)path, (void)data;
    int64_t begin = now(CLOCK_MONOTONIC);
    if (is_sync && was_written((int)file->fh, 0))
        copy_flush(log_s < 0 ? 0 : log_s);
    int result = fsync((int)file->fh);
    double seconds = call_s;
    if (log_s >= 0)
        seconds = was_written((int)file->fh, 1) ? log_s : 0;
    return after(begin, seconds, result);
}

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *file) {
    (void)file;
    CALL(lstat(at(path), st));
}

static int fs_getxattr(const char *path, const char *name, char *value, size_t size) {
    CALL(lgetxattr(at(path), name, value, size));
}

static int fs_listxattr(const char *path, char *names, size_t size) {
    CALL(llistxattr(at(path), names, size));
}

static int fs_setxattr(const char *path, const char *name, const char *value, size_t size, int flags) {
    CALL(lsetxattr(at(path), name, value, size, flags));
}

static int fs_removexattr(const char *path, const char *name) {
    CALL(lremovexattr(at(path), name));
}

static int fs_link(const char *from, const char *to) {
    CALL(link(at(from), at(to)));
}

static int made(const char *path, mode_t mode) {
    struct fuse_context *user = fuse_get_context();
    const char *place = at(path);
    return mkdir(place, mode) < 0 ? -1 : chown(place, user->uid, user->gid);
}

static int fs_mkdir(const char *path, mode_t mode) {
    CALL(made(path, mode));
}

static int fs_read(const char *path, char *bytes, size_t size, off_t offset, struct fuse_file_info *file) {
    (void)path;
    int64_t begin = now(CLOCK_MONOTONIC);
    ssize_t result = pread((int)file->fh, bytes, size, offset);
    return after(begin, chance() < misses ? disk_s : call_s, result);
}

static int listed(const char *path, void *buffer, fuse_fill_dir_t fill) {
    DIR *directory = opendir(at(path));
    if (!directory)
        return -1;
    struct dirent *entry;
    while ((entry = readdir(directory)))
        fill(buffer, entry->d_name, NULL, 0, 0);
    closedir(directory);
    return 0;
}

static int fs_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *file,
                      enum fuse_readdir_flags flags) {
    (void)offset, (void)file, (void)flags;
    CALL(listed(path, buffer, fill));
}

static int link_text(const char *path, char *text, size_t size) {
    ssize_t length = readlink(at(path), text, size - 1);
    if (length < 0)
        return -1;
    text[length] = 0;
    return 0;
}

static int fs_readlink(const char *path, char *text, size_t size) {
    CALL(link_text(path, text, size));
}

static int fs_release(const char *path, struct fuse_file_info *file) {
    (void)path;
    CALL(close((int)file->fh));
}

static int fs_rename(const char *from, const char *to, unsigned flags) {
    CALL(renameat2(AT_FDCWD, at(from), AT_FDCWD, at(to), flags));
}

static int fs_rmdir(const char *path) {
    CALL(rmdir(at(path)));
}

static int fs_statfs(const char *path, struct statvfs *st) {
    CALL(statvfs(at(path), st));
}

static int cut(const char *path, off_t length, struct fuse_file_info *file) {
    int handle = file ? (int)file->fh : open(at(path), O_WRONLY);
    if (handle < 0)
        return -1;
    set_written(handle);
    int result = ftruncate(handle, length), error = errno;
    if (!file)
        close(handle);
    errno = error;
    return result;
}

static int fs_truncate(const char *path, off_t length, struct fuse_file_info *file) {
    CALL(cut(path, length, file));
}

static int fs_unlink(const char *path) {
    CALL(unlink(at(path)));
}

static int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *file) {
    (void)file;
    CALL(utimensat(AT_FDCWD, at(path), times, AT_SYMLINK_NOFOLLOW));
}

static int fs_write(const char *path, const char *bytes, size_t size, off_t offset, struct fuse_file_info *file) {
    (void)path;
    int64_t begin = now(CLOCK_MONOTONIC);
    if (copy_socket >= 0)
        copy_write(bytes, size);
    ssize_t result = pwrite((int)file->fh, bytes, size, offset);
    set_written((int)file->fh);
    return after(begin, call_s, result);
}

static void start(void *(*work)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL))
        fail("pthread_create");
}

/* Threads of a process that libfuse made are gone: they start here. */
static void *fs_init(struct fuse_conn_info *connection, struct fuse_config *config) {
    (void)connection;
    config->attr_timeout = config->entry_timeout = config->negative_timeout = 0;
    config->direct_io = 1;
    if (copy_socket >= 0) {
        start(send_frames);
        start(take_answers);
    }
    return NULL;
}

static const struct fuse_operations operations = {
    .access = fs_access,
    .chmod = fs_chmod,
    .chown = fs_chown,
    .create = fs_create,
    .flush = fs_flush,
    .fsync = fs_fsync,
    .getattr = fs_getattr,
    .getxattr = fs_getxattr,
    .init = fs_init,
    .link = fs_link,
    .listxattr = fs_listxattr,
    .mkdir = fs_mkdir,
    .open = fs_open,
    .read = fs_read,
    .readdir = fs_readdir,
    .readlink = fs_readlink,
    .release = fs_release,
    .removexattr = fs_removexattr,
    .rename = fs_rename,
    .rmdir = fs_rmdir,
    .setxattr = fs_setxattr,
    .statfs = fs_statfs,
    .truncate = fs_truncate,
    .unlink = fs_unlink,
    .utimens = fs_utimens,
    .write = fs_write,
};

static struct sockaddr_in place_of(const char *address, const char *port) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, address, &place.sin_addr) != 1) {
        fprintf(stderr, "slowfs: not an address: %s\n", address);
        exit(2);
    }
    return place;
}

static void send_at_once(int connection) {
    int yes = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static void *answer_flushes(void *connection) {
    for (;;) {
        struct item *item = take(&flushes);
        wait_until(item->due);
        send_all(*(int *)connection, "f", 1);
        free(item);
    }
    return NULL;
}

static int serve(const char *address, const char *port, const char *log_name) {
    struct sockaddr_in place = place_of(address, port);
    int yes = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listening < 0 || bind(listening, (struct sockaddr *)&place, sizeof place) < 0 || listen(listening, 1) < 0)
        fail("listen");
    FILE *log = fopen(log_name, "w");
    if (!log)
        fail(log_name);
    static int connection;
    if ((connection = accept(listening, NULL, NULL)) < 0)
        fail("accept");
    send_at_once(connection);
    pthread_t thread;
    if (pthread_create(&thread, NULL, answer_flushes, &connection))
        fail("pthread_create");
    static char bytes[RECEIVED];
    uint64_t total = 0;
    uint32_t length = 0, left = 0, head = 0;
    int head_bytes = 0;
    ssize_t received;
    while ((received = recv(connection, bytes, sizeof bytes, 0)) > 0) {
        for (ssize_t used = 0; used < received;) {
            if (left) {
                uint32_t here = (uint32_t)(received - used) < left ? (uint32_t)(received - used) : left;
                used += here;
                left -= here;
                /* A part of a write is of no use. */
                if (!left)
                    note(log, total += length);
                continue;
            }
            head = head << 8 | (unsigned char)bytes[used++];
            if (++head_bytes < 4)
                continue;
            head_bytes = 0;
            if (head & FLUSH) {
                struct item *item = new_item(0);
                item->due = now(CLOCK_MONOTONIC) + (int64_t)(head & ~FLUSH) * 1000;
                put(&flushes, item);
            } else {
                length = left = head;
            }
            head = 0;
        }
    }
    return 0;
}

static void connect_copy(char *place) {
    char *port = strrchr(place, ':');
    if (!port) {
        fprintf(stderr, "slowfs: copy= takes ADDRESS:PORT\n");
        exit(2);
    }
    *port++ = 0;
    struct sockaddr_in to = place_of(place, port);
    copy_socket = socket(AF_INET, SOCK_STREAM, 0);
    if (copy_socket < 0 || connect(copy_socket, (struct sockaddr *)&to, sizeof to) < 0)
        fail(place);
    send_at_once(copy_socket);
}

int main(int count, char **words) {
    /* Threads inherit it: timers end as late as the hardware needs. */
    prctl(PR_SET_TIMERSLACK, 1);
    if (count == 5 && !strcmp(words[1], "replica"))
        return serve(words[2], words[3], words[4]);
    if (count < 4) {
        fprintf(stderr, "usage: slowfs FOLDER MOUNTPOINT SECONDS [OPTION=VALUE...]\n");
        return 2;
    }
    folder = words[1];
    call_s = atof(words[3]);
    double distance_s = 0;
    char *copy = NULL;
    for (int place = 4; place < count; place++) {
        char *value = strchr(words[place], '=');
        if (!value) {
            fprintf(stderr, "slowfs: %s: expected OPTION=VALUE\n", words[place]);
            return 2;
        }
        *value++ = 0;
        const char *name = words[place];
        if (!strcmp(name, "log"))
            log_s = atof(value);
        else if (!strcmp(name, "distance"))
            distance_s = atof(value);
        else if (!strcmp(name, "disk"))
            disk_s = atof(value);
        else if (!strcmp(name, "misses"))
            misses = atof(value);
        else if (!strcmp(name, "jitter"))
            jitter = atof(value);
        else if (!strcmp(name, "sync"))
            is_sync = atoi(value);
        else if (!strcmp(name, "copy"))
            copy = value;
        else if (!strcmp(name, "sent_log")) {
            if (!(sent_log = fopen(value, "w")))
                fail(value);
        } else {
            fprintf(stderr, "slowfs: no option %s\n", name);
            return 2;
        }
    }
    /* The local one and the second one begin together; the second one's answer comes later. */
    if (log_s >= 0)
        log_s += distance_s;
    if (copy && !sent_log) {
        fprintf(stderr, "slowfs: copy= needs sent_log=\n");
        return 2;
    }
    if (copy)
        connect_copy(copy);
    char *fuse_words[] = {words[0], words[2], "-f", "-o", "allow_other,default_permissions", NULL};
    umask(0);
    return fuse_main(5, fuse_words, &operations, NULL);
}
