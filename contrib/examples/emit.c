/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A job in plain C that tells Sluice its loss: one line for each, appended to the file that
 * SLUICE_EMIT names. It fits a straight line by gradient descent.
 *
 *     cc -o emit emit.c && sbatch --train-resize=off --wrap ./emit
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The file is there where the batch script runs, if the job is watched; without it nothing is told.
 * O_APPEND: lines of several processes do not mix. */
static int open_told(void) {
    const char *path = getenv("SLUICE_EMIT");
    return path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
}

/* One write() is one line. What cannot be told is no reason to stop training. */
static void tell(int told, long step, double loss) {
    char line[80];
    int size = snprintf(line, sizeof line, "{\"step\":%ld,\"loss\":%.9g}\n", step, loss);
    if (told >= 0 && write(told, line, (size_t)size) != size) perror("SLUICE_EMIT");
}

int main(int count, char **words) {
    const long steps = count > 1 ? atol(words[1]) : 1000;
    const int told = open_told();
    double slope = 0, offset = 0;
    for (long step = 1; step <= steps; ++step) {
        double loss = 0, by_slope = 0, by_offset = 0;
        for (int i = 0; i < 100; ++i) {
            const double x = i / 100.0;
            const double error = slope * x + offset - (3 * x + 1);
            loss += error * error / 100;
            by_slope += 2 * error * x / 100;
            by_offset += 2 * error / 100;
        }
        slope -= 0.05 * by_slope;
        offset -= 0.05 * by_offset;
        if (step % 10 == 0) tell(told, step, loss);
    }
    printf("y = %.3f x + %.3f after %ld steps\n", slope, offset, steps);
    return 0;
}
