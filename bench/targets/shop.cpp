// A small server whose functions become slower on demand while it runs.
// usage: shop CONTROLS: a file of 64 numbers (int64); the first eight are set from outside, the others are its own account.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <random>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <time.h>
#include <unistd.h>

// rates and times from outside: requests a second, then percent of work more, then us
enum Control { RATE, CHECKSUM_PERCENT, RENDER_PERCENT, DB_PERCENT, LOCK_HELD_US, READ_SLEEP_US, DISK, END };
// calls and ns of each function, from here on, by itself
enum Account { CHECKSUM = 8, RENDER = 10, LOAD_DB = 12, UPDATE = 14, READ_BLOCK = 16, FLUSH = 18 };

#ifndef CHECKSUM_ROUNDS
#define CHECKSUM_ROUNDS 1
#endif
#define FUNCTION __attribute__((noinline, visibility("default")))

static volatile std::int64_t *numbers;
static std::mutex table_lock;
static thread_local std::mt19937_64 random_bits;
static thread_local volatile double sink;
static int log_file;

static std::int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void account(int place, std::int64_t begin) {
    __atomic_fetch_add(const_cast<std::int64_t *>(numbers + place), 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(const_cast<std::int64_t *>(numbers + place + 1), now_ns() - begin, __ATOMIC_RELAXED);
}

// some 10 ns a round; a fifth more or less by chance
static void work(double rounds) {
    rounds *= 0.8 + 0.4 * double(random_bits() >> 11) * 0x1p-53;
    double x = 1.5;
    for (std::int64_t i = 0; i < std::int64_t(rounds); ++i) x = std::sqrt(x + double(i));
    sink = x;
}

static double more(int control) { return 1.0 + double(numbers[control]) / 100.0; }

extern "C" FUNCTION void checksum() {
    std::int64_t begin = now_ns();
    for (int i = 0; i < CHECKSUM_ROUNDS; ++i) work(6000 * more(CHECKSUM_PERCENT));
    account(CHECKSUM, begin);
}

extern "C" FUNCTION void read_block() {
    std::int64_t begin = now_ns();
    if (numbers[READ_SLEEP_US]) usleep(useconds_t(numbers[READ_SLEEP_US]));
    work(3000);
    account(READ_BLOCK, begin);
}

extern "C" FUNCTION void load(bool from_db) {
    std::int64_t begin = now_ns();
    if (from_db) {
        read_block();
        checksum();
        work(4000 * more(DB_PERCENT));
        account(LOAD_DB, begin);
    } else {
        work(900);
    }
}

extern "C" FUNCTION void cache_get() { load(false); sink = 1; }
extern "C" FUNCTION void db_get() { load(true); sink = 2; }

extern "C" FUNCTION void update() {
    std::int64_t begin = now_ns();
    { std::lock_guard<std::mutex> held(table_lock); work(2000); }
    account(UPDATE, begin);
}

extern "C" FUNCTION void flush() {
    std::int64_t begin = now_ns();
    static thread_local char block[4096];
    if (pwrite(log_file, block, sizeof block, 0) != sizeof block || fdatasync(log_file)) std::abort();
    account(FLUSH, begin);
}

extern "C" FUNCTION void render() {
    std::int64_t begin = now_ns();
    work(3500 * more(RENDER_PERCENT));
    account(RENDER, begin);
}

extern "C" FUNCTION void serve() {
    random_bits() % 10 < 7 ? cache_get() : db_get();
    render();
    update();
    if (numbers[DISK] && random_bits() % 20 == 0) flush();
    sink = 3; // flush must not be called by a jump: it would return to a place of others
}

static void hold_lock() {
    while (!numbers[END]) {
        if (std::int64_t held_us = numbers[LOCK_HELD_US]) {
            std::lock_guard<std::mutex> held(table_lock);
            usleep(useconds_t(held_us));
        }
        usleep(2000);
    }
}

static void answer(unsigned seed) {
    random_bits.seed(seed);
    std::int64_t due = now_ns();
    while (!numbers[END]) {
        double each_ns = 1e9 * 2 / double(numbers[RATE]);
        due += std::int64_t(-std::log(1 - double(random_bits() >> 11) * 0x1p-53) * each_ns);
        std::int64_t rest = due - now_ns();
        if (rest < -1000000000) due = now_ns();
        if (rest > 0) usleep(useconds_t(rest / 1000));
        serve();
    }
}

int main(int, char **words) {
    int file = open(words[1], O_RDWR);
    log_file = open((std::string(words[1]) + ".log").c_str(), O_RDWR | O_CREAT, 0600);
    numbers = static_cast<std::int64_t *>(mmap(nullptr, 64 * 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    if (file < 0 || log_file < 0 || numbers == MAP_FAILED) return 1;
    std::thread holder(hold_lock), other(answer, 2);
    answer(1);
    other.join();
    holder.join();
}
